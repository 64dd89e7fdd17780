#ifndef DISTRIBUTED_MASTER_SESSION_H_
#define DISTRIBUTED_MASTER_SESSION_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "distributed/master.h"
#include "distributed/reply_cache.h"
#include "distributed/session_plans.h"

namespace millrace {

// One client's graph and its steps. Made by std::make_shared, then Init. Thread-safe; no callback
// is called under its lock.
class MasterSession : public std::enable_shared_from_this<MasterSession> {
 public:
  struct Options {
    std::string handle;
    uint64_t id = 0;  // on the workers: random, never reused
    SessionSettings settings;
    std::string own_task;  // what the master's own task is called
    PlannerOptions planner;
    absl::Duration idle_lease;
  };
  MasterSession(std::shared_ptr<MasterContext> context, Options options,
                std::shared_ptr<const Graph> graph);
  // REQUIRES: called once, before all else.
  void Init(Inventory inventory);

  const Options& options() const { return options_; }
  int64_t graph_version() const;

  // The version after the extension. A repeat of the last one changes nothing.
  StatusOr<int64_t> Extend(const ExtendSessionRequest& request);
  void Prepare(const PrepareRequest* request, PrepareResponse* response, CallDone done);
  void RunPrepared(const RunPreparedRequest* request, RunPreparedResponse* response,
                   const CallOptions& options, CallDone done);
  void RunStep(const RunStepRequest* request, RunStepResponse* response, const CallOptions& options,
               CallDone done);
  Status Describe(uint64_t step_handle, DescribeStepResponse* response) const;
  std::vector<DeviceInfo> devices() const { return plans_->devices(); }
  std::vector<std::string> absent_tasks() const { return plans_->absent_tasks(); }

  // Cancels what runs, refuses all from now on, and ends the session on the workers. `done` runs
  // once.
  void End(const Status& reason, absl::AnyInvocable<void()> done);

  // A call of the client; and when the last one was, unless something runs.
  void Touch();
  bool IsIdleSince(int64_t nanos) const;

  Master::Usage usage() const;

 private:
  using Feeds = std::vector<const TensorProto*>;
  struct StepSettings {
    absl::Duration timeout = absl::InfiniteDuration();
    bool trace = false;
  };
  static StepSettings SettingsOf(const RunOptionsMessage& options);

  std::shared_ptr<const Graph> graph() const;
  // Checks the feeds and runs the step; ReplyCache::Finish gets the outcome. The feeds are not used
  // after that.
  void Run(std::shared_ptr<MasterPlan> plan, const Feeds& feeds, const StepSettings& settings,
           ReplyCache::Key key, const Cancellation& stop);
  void OnStepEnded(uint64_t step);
  // Steps below it are over.
  uint64_t EndedBelow() const;

  const std::shared_ptr<MasterContext> context_;
  const Options options_;
  std::shared_ptr<SessionPlans> plans_;
  const std::shared_ptr<ReplyCache> replies_;

  mutable Mutex mutex_;
  std::shared_ptr<const Graph> graph_ ABSL_GUARDED_BY(mutex_);
  int64_t graph_version_ ABSL_GUARDED_BY(mutex_) = 1;
  int64_t last_touch_nanos_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t last_step_ ABSL_GUARDED_BY(mutex_) = 0;
  std::set<uint64_t> running_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace millrace

#endif  // DISTRIBUTED_MASTER_SESSION_H_
