#ifndef CORE_RUNTIME_EXECUTOR_H_
#define CORE_RUNTIME_EXECUTOR_H_

#include <atomic>
#include <memory>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "core/base/scheduler.h"
#include "core/runtime/execution_plan.h"
#include "core/runtime/step_stats.h"

namespace millrace {

// Counts a step's updates of variables, over all its plans. A step that fails with
// 0 < finished < the sum of its plans' num_updates() leaves a torn set: whoever runs it calls
// MarkTorn on all of them. (An update that fails has changed nothing: see Variable.)
struct UpdateProgress {
  std::atomic<int> finished{0};
};

// One run of one plan.
struct ExecutorRun {
  StepContext context;                // device and cancellation are set; rendezvous if needed
  std::vector<Tensor> feeds;          // in the plan's order (feed_indices)
  StepObserver* observer = nullptr;   // null: no clock is read
  Clock* clock = nullptr;             // needed with an observer
  UpdateProgress* updates = nullptr;  // may be null; outlives the run
  // Run cheap nodes, and the first expensive ones, on the calling thread instead of handing the
  // step to the pool: lowest latency for a caller that would wait anyway.
  bool caller_runs = false;
};

// Runs plans: cheap kernels inline on the thread that made them ready, expensive ones on the pool,
// asynchronous ones without a thread. Per node no allocation, string or map. Step states are
// recycled. The first error cancels the step (its Cancellation and Rendezvous), and `done` gets it,
// with node, op, device and input shapes, after every started kernel has ended.
class Executor {
 public:
  using Done = absl::AnyInvocable<void(Status, std::vector<Tensor> fetches)>;
  // Both outlive the executor.
  Executor(const ExecutionPlan& plan, Scheduler& scheduler);
  ~Executor();  // REQUIRES: no run is in flight

  // Never blocks for asynchronous kernels. `done` runs once, perhaps in this call.
  void Run(ExecutorRun run, Done done);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace millrace

#endif  // CORE_RUNTIME_EXECUTOR_H_
