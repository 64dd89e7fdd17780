#ifndef DISTRIBUTED_SESSION_PLANS_H_
#define DISTRIBUTED_SESSION_PLANS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "distributed/inventory.h"
#include "distributed/master.h"
#include "distributed/master_plan.h"

namespace millrace {

// What all of a master shares, and the last to go.
struct MasterContext {
  explicit MasterContext(MasterOptions given)
      : options(std::move(given)),
        directory(options.workers, options.own_worker, options.build_version),
        monitor(std::make_shared<TaskMonitor>(options.environment, options.monitor)) {}
  ~MasterContext() {
    monitor = nullptr;
    if (drained) drained();
  }
  MasterContext(const MasterContext&) = delete;
  MasterContext& operator=(const MasterContext&) = delete;

  const MasterOptions options;
  TaskDirectory directory;
  std::shared_ptr<TaskMonitor> monitor;
  absl::AnyInvocable<void()> drained;
};

// The plans of one session: made at first use, registered with just the tasks that they use, kept
// by signature. Made by std::make_shared. Thread-safe; no callback is called under its lock.
class SessionPlans : public std::enable_shared_from_this<SessionPlans> {
 public:
  using Done = absl::AnyInvocable<void(StatusOr<std::shared_ptr<MasterPlan>>)>;

  struct Options {
    uint64_t session = 0;  // its incarnation on the workers
    std::string own_task;  // what the master's own task is called
    PlannerOptions planner;
    std::function<uint64_t()> ended_below;  // see TaskMonitor::Watch
  };
  SessionPlans(std::shared_ptr<MasterContext> context, Options options, Inventory inventory);

  // `graph` holds what the signature names. `keep`: until the session ends; else the plan may be
  // dropped when others are used more. Two calls with one signature give one plan.
  void Prepare(std::shared_ptr<const Graph> graph, const StepSignature& signature, bool keep,
               Done done);
  // NotFound if it is none of the kept ones.
  StatusOr<std::shared_ptr<MasterPlan>> Find(uint64_t handle) const;

  // Devices of the tasks that are there, and the other tasks.
  std::vector<DeviceInfo> devices() const;
  std::vector<std::string> absent_tasks() const;
  int num_plans() const;

  // Refuses all from now on and ends the session on the workers. `done` runs once, when they have
  // answered or are given up.
  void End(const Status& reason, absl::AnyInvocable<void()> done);

 private:
  struct Entry {
    std::shared_ptr<MasterPlan> plan;  // null: being made
    std::vector<Done> waiting;
    bool keep = false;
    uint64_t last_use = 0;
  };
  // What a task's worker knows of the session.
  struct SessionTask {
    std::shared_ptr<TaskWatch> watch;
    std::set<std::string> peers;
    bool created = false;
  };
  struct Registration;

  void Plan(std::shared_ptr<const Graph> graph, const StepSignature& signature, bool retried);
  // Looks again for absent tasks that the step asks for; false if there are none.
  bool LookForAbsent(std::shared_ptr<const Graph> graph, const StepSignature& signature,
                     bool retried);
  StatusOr<std::shared_ptr<TaskWatch>> WatchOf(const std::string& task);
  void Register(std::shared_ptr<MasterPlan> plan);
  void CreateOnWorker(const std::shared_ptr<Registration>& registration, size_t part);
  void RegisterWithWorker(const std::shared_ptr<Registration>& registration, size_t part);
  void OnRegistered(const std::shared_ptr<Registration>& registration, size_t part,
                    const Status& status);
  void Deregister(const MasterPlan& plan);
  // Ends the making of a plan.
  void Settle(const std::string& key, StatusOr<std::shared_ptr<MasterPlan>> plan);

  const std::shared_ptr<MasterContext> context_;
  const Options options_;
  mutable Mutex mutex_;
  Status ended_ ABSL_GUARDED_BY(mutex_);
  Inventory inventory_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, PlacementDecision> pins_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, SessionTask> tasks_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);  // by the signature's key
  std::map<uint64_t, std::shared_ptr<MasterPlan>> kept_ ABSL_GUARDED_BY(mutex_);  // by handle
  uint64_t last_plan_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t uses_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace millrace

#endif  // DISTRIBUTED_SESSION_PLANS_H_
