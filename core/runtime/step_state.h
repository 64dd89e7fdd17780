#ifndef CORE_RUNTIME_STEP_STATE_H_
#define CORE_RUNTIME_STEP_STATE_H_

#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/runtime/compiled_plan.h"
#include "core/runtime/executor.h"

namespace millrace {

struct StepState;

// An asynchronous kernel that runs: what must stay valid until it is done.
struct AsyncRun {
  enum Phase : int { kStarting, kStarted, kDone };
  StepState* step = nullptr;
  int32_t node = 0;
  std::vector<Tensor*> inputs;
  std::optional<KernelContext> context;
  std::unique_ptr<ShapeFacts> own_facts;  // if the memo is full
  // Whichever of the starter and `done` comes second goes on with the node.
  std::atomic<int> phase{kStarting};
  Status status;
  int64_t start_nanos = 0;
  int64_t end_nanos = 0;
};

// Everything that changes while one run of a plan is under way. Recycled: a run allocates none of
// it. Counts are plain integers that are accessed through std::atomic_ref, so that they can be
// copied from the plan in one go.
struct StepState {
  explicit StepState(const CompiledPlan& plan)
      : slots(std::make_unique<Tensor[]>(plan.slots.size())),
        pending(std::make_unique<int32_t[]>(plan.nodes.size())),
        uses(std::make_unique<int32_t[]>(plan.slots.size())),
        next(std::make_unique<int32_t[]>(plan.nodes.size())),
        async(std::make_unique<AsyncRun[]>(plan.num_async)) {}

  void Begin(const CompiledPlan& plan) {
    std::memcpy(pending.get(), plan.initial_pending.data(), plan.nodes.size() * sizeof(int32_t));
    std::memcpy(uses.get(), plan.initial_uses.data(), plan.slots.size() * sizeof(int32_t));
    activities.store(1, std::memory_order_relaxed);
    stopped.store(false, std::memory_order_relaxed);
    failed.store(false, std::memory_order_relaxed);
  }

  std::unique_ptr<Tensor[]> slots;
  Tensor memory;                       // CompiledPlan::memory_bytes, during a run
  std::unique_ptr<int32_t[]> pending;  // by node: predecessors that have not run
  std::unique_ptr<int32_t[]> uses;     // by slot: readers that have not run
  // By node: links of the stacks of ready nodes. A node is in one stack at most.
  std::unique_ptr<int32_t[]> next;
  std::unique_ptr<AsyncRun[]> async;
  std::unique_ptr<int64_t[]> ready_nanos;  // by node; made when first observed

  ExecutorRun run;
  Executor::Done done;
  Cancellation::Id cancel_id = 0;
  // Loops that run or are scheduled, and asynchronous kernels under way. Who takes it to 0 ends
  // the run.
  std::atomic<int> activities{0};
  std::atomic<bool> stopped{false};  // start no more nodes
  std::atomic<bool> failed{false};   // who sets it first writes `error`
  Status error;
  void* executor = nullptr;
};

}  // namespace millrace

#endif  // CORE_RUNTIME_STEP_STATE_H_
