#ifndef DISTRIBUTED_WORKER_SESSION_H_
#define DISTRIBUTED_WORKER_SESSION_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "distributed/worker_plan.h"
#include "distributed/worker_step.h"

namespace millrace {

// What one session of one master has on this task: peers, plans and steps. Made by
// std::make_shared. Thread-safe; no callback is called under its lock.
class WorkerSession : public std::enable_shared_from_this<WorkerSession> {
 public:
  using Done = absl::AnyInvocable<void(Status)>;

  // `task`: what this task is called in the session.
  WorkerSession(std::shared_ptr<WorkerContext> context, uint64_t id, std::string task);

  const std::string& task() const { return task_; }

  // Adds tasks that plans may exchange tensors with. Those that are known must be the same.
  Status AddPeers(const CreateWorkerSessionRequest& request);

  // Compiles the plan in a task of the scheduler. A repeat waits for the first, and changes
  // nothing.
  void RegisterPlan(const RegisterPlanRequest* request, Done done);
  // Steps under way go on. OK if there is no such plan.
  void DeregisterPlan(uint64_t plan);

  // Runs a step, or joins it, or answers with what is kept of it.
  void RunStep(const WorkerRunStepRequest* request, WorkerRunStepResponse* response,
               const CallOptions& options, CallDone done);
  // Also for a step that has not come yet.
  void AbortStep(uint64_t step, const Status& reason);
  // Marks torn what the step, which is over, updated here.
  void MarkTorn(uint64_t step);
  // Forgets the steps below `floor`, which are over everywhere.
  void EndBelow(uint64_t floor);

  // Aborts what runs and refuses all else from now on. Idempotent.
  void End(const Status& reason);

  // A sign of life of the master, and the last one.
  void Touch();
  int64_t last_touch_nanos() const;

  struct Usage {
    int plans = 0;
    int live_steps = 0;
    int kept_replies = 0;
  };
  Usage usage() const;

 private:
  struct Peer {
    std::string address;
    uint64_t incarnation = 0;
    LinkId link = -1;
  };
  struct PlanEntry {
    std::shared_ptr<const WorkerPlan> plan;  // null: being compiled
    std::vector<Done> waiting;
    bool dropped = false;  // was deregistered while it was being compiled
  };
  // A call that waits for a step.
  struct Caller {
    WorkerRunStepResponse* response = nullptr;
    CallDone done;
    Cancellation* cancellation = nullptr;
    Cancellation::Id id = 0;
  };
  struct StepEntry {
    std::shared_ptr<WorkerStep> step;
    std::vector<std::shared_ptr<Caller>> callers;
    std::shared_ptr<const WorkerStepReply> reply;  // null: running
    int64_t reply_bytes = 0;
    bool open = false;  // on the data plane, with the step as its sink
    bool torn = false;  // to be marked when it ends
  };
  using Steps = std::map<uint64_t, StepEntry>;

  StatusOr<LinkId> LinkTo(const std::string& task);
  void OnPlanCompiled(uint64_t id, StatusOr<std::shared_ptr<WorkerPlan>> plan);
  // Why a step that is not known may not run.
  StatusOr<std::shared_ptr<const WorkerPlan>> CheckStep(const WorkerRunStepRequest& request) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnCallerGone(uint64_t step, const Caller* caller);
  void OnStepDone(uint64_t step, WorkerStepReply reply);
  static void Answer(Caller& caller, const WorkerStepReply& reply);
  // Keeps within the limits: drops fetches, then whole replies, the oldest first.
  void DropReplies(Steps& dropped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Moves the entry of an ended step to `dropped`.
  void Forget(Steps::iterator entry, Steps& dropped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RaiseFloor(uint64_t floor, Steps& dropped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the session has ended and nothing runs any more, for the first time.
  bool IsOver() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends steps, or the whole session, on the data plane.
  void Close(const Steps& dropped, bool over);

  const std::shared_ptr<WorkerContext> context_;
  const uint64_t id_;
  const std::string task_;

  mutable Mutex mutex_;
  Status ended_ ABSL_GUARDED_BY(mutex_);  // not OK: no more calls
  int64_t last_touch_nanos_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Peer> peers_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, PlanEntry> plans_ ABSL_GUARDED_BY(mutex_);
  Steps steps_ ABSL_GUARDED_BY(mutex_);  // running, or replies kept
  std::map<uint64_t, Status> aborted_early_ ABSL_GUARDED_BY(mutex_);
  uint64_t floor_ ABSL_GUARDED_BY(mutex_) = 0;  // steps below it are over
  int live_steps_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t kept_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;  // on the data plane
};

}  // namespace millrace

#endif  // DISTRIBUTED_WORKER_SESSION_H_
