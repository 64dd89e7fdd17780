#ifndef DISTRIBUTED_STEP_COORDINATOR_H_
#define DISTRIBUTED_STEP_COORDINATOR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "core/base/cancellation.h"
#include "core/base/mutex.h"
#include "core/base/scheduler.h"
#include "distributed/master_plan.h"
#include "distributed/step_outcome.h"
#include "distributed/worker.pb.h"

namespace millrace {

struct StepCoordinatorOptions {
  Environment environment;
  uint64_t session = 0;
  uint64_t step = 0;
  absl::Duration timeout = absl::InfiniteDuration();
  // See SessionSettings.independent_updates.
  bool independent_updates = false;
  // How long a step that failed waits for tasks that are still at it before its client hears of
  // it; a step that is cancelled or late has a client who does not want to wait.
  absl::Duration error_grace = absl::Seconds(4);
  absl::Duration cancel_grace = absl::Milliseconds(200);
};

// One step over all tasks of its plan: starts them, and when one fails, ends the others. Made by
// std::make_shared. Thread-safe.
class StepCoordinator : public std::enable_shared_from_this<StepCoordinator> {
 public:
  StepCoordinator(std::shared_ptr<MasterPlan> plan, StepCoordinatorOptions options);

  // `requests`: by part of the plan. Cancelling `stop` ends the step. `replied` runs once, when all
  // tasks have answered or are known to be down, or, if the step failed, at the end of its grace;
  // `ended` once, after it, when nothing of the step is under way any more.
  void Start(std::vector<WorkerRunStepRequest> requests, Cancellation stop,
             absl::AnyInvocable<void(StepOutcome)> replied, absl::AnyInvocable<void()> ended);

 private:
  struct Task {
    bool answered = false;
    bool updated = false;
    Cancellation down;  // of this life of the task
    Cancellation::Id down_id = 0;
  };

  const MasterPlan::Part& part(size_t i) const { return plan_->parts()[i]; }
  void OnAnswer(size_t index, const Status& status, WorkerRunStepResponse& response);
  void TakeResponse(size_t index, WorkerRunStepResponse& response)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnTimeout();
  // Watches a task until all have answered: one that has answered, and dies then, may take along
  // what others of the step still wait for.
  void WatchTask(size_t index);
  // The step fails for `cause`, if it has not before.
  void Fail(const Status& cause, absl::Duration grace);
  // It has failed: ends the tasks that are still at it.
  void EndOthers(absl::Duration grace);
  void SendAbort(size_t index, const Status& reason, bool torn, absl::AnyInvocable<void()> done);
  // All tasks have answered.
  void OnAllAnswered();
  void Reply();
  void End();

  const std::shared_ptr<MasterPlan> plan_;
  const StepCoordinatorOptions options_;

  Mutex mutex_;
  std::vector<Task> tasks_ ABSL_GUARDED_BY(mutex_);  // by part
  size_t left_ ABSL_GUARDED_BY(mutex_) = 0;
  Status cause_ ABSL_GUARDED_BY(mutex_);
  StepOutcome outcome_ ABSL_GUARDED_BY(mutex_);
  std::vector<bool> fetched_ ABSL_GUARDED_BY(mutex_);
  std::vector<ChannelCount> received_ ABSL_GUARDED_BY(mutex_);
  size_t marks_left_ ABSL_GUARDED_BY(mutex_) = 0;
  Timers::Id timeout_timer_ ABSL_GUARDED_BY(mutex_) = 0;
  Timers::Id grace_timer_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::AnyInvocable<void(StepOutcome)> replied_ ABSL_GUARDED_BY(mutex_);
  absl::AnyInvocable<void()> ended_ ABSL_GUARDED_BY(mutex_);
  Cancellation stop_;
  Cancellation::Id stop_id_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace millrace

#endif  // DISTRIBUTED_STEP_COORDINATOR_H_
