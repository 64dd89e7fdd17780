#ifndef DISTRIBUTED_WORKER_STEP_H_
#define DISTRIBUTED_WORKER_STEP_H_

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/cancellation.h"
#include "core/base/mutex.h"
#include "core/runtime/step_stats.h"
#include "distributed/step_rendezvous.h"
#include "distributed/worker.pb.h"
#include "distributed/worker_plan.h"

namespace millrace {

// What became of one task's part of a step.
struct WorkerStepReply {
  Status status;
  std::vector<std::pair<int, Tensor>> fetches;  // by position in the step's signature
  std::vector<KernelEvent> events;              // if traced
  std::vector<StepRendezvous::Received> received;
  bool updates_started = false;

  int64_t fetched_bytes() const;
  void CopyTo(WorkerRunStepResponse* response) const;
};

// One task's part of one step while it runs. Made by std::make_shared. Thread-safe.
class WorkerStep : public std::enable_shared_from_this<WorkerStep> {
 public:
  using Done = absl::AnyInvocable<void(WorkerStepReply)>;

  // `task`: what this task is called in the session, for messages.
  WorkerStep(std::shared_ptr<const WorkerPlan> plan, std::string task, uint64_t session,
             uint64_t step, bool trace);

  // Begins the step on the data plane, if it has links, and on all devices. `done` runs once,
  // perhaps in this call, when nothing of the step runs any more. Its tensors for other tasks may
  // still be on the way: the step stays open on the data plane if it went well and has links.
  void Start(const WorkerRunStepRequest& request, Done done);

  // Ends the step early; one that is about to update variables and waits for nothing gets some time
  // to end by itself first.
  void Abort(const Status& reason);

  const std::shared_ptr<const WorkerPlan>& plan() const { return plan_; }

 private:
  StatusOr<std::map<int, Tensor>> ReadFeeds(const WorkerRunStepRequest& request) const;
  void AbortNow(const Status& reason);
  void RunPiece(size_t index, std::map<int, Tensor>& feeds);
  void OnPieceDone(size_t index, const Status& status, std::vector<Tensor> fetches);
  void Finish();
  void CommitRandomCounters();

  const std::shared_ptr<const WorkerPlan> plan_;
  const WorkerOptions& options_;
  const std::string task_;
  const uint64_t session_;
  const uint64_t step_;

  Cancellation cancellation_;
  StepRendezvous rendezvous_;
  UpdateProgress updates_;
  std::unique_ptr<StepStatsCollector> stats_;  // null: not traced
  std::vector<uint64_t> random_counters_;      // by piece, as read when the step began

  Mutex mutex_;
  int pieces_left_ ABSL_GUARDED_BY(mutex_) = 0;
  Status first_error_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::pair<int, Tensor>> fetches_ ABSL_GUARDED_BY(mutex_);
  Timers::Id abort_timer_ ABSL_GUARDED_BY(mutex_) = 0;
  Done done_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace millrace

#endif  // DISTRIBUTED_WORKER_STEP_H_
