#ifndef DISTRIBUTED_MASTER_H_
#define DISTRIBUTED_MASTER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "core/base/scheduler.h"
#include "core/runtime/planner.h"
#include "distributed/cluster_spec.h"
#include "distributed/master_interface.h"
#include "distributed/reply_cache.h"
#include "distributed/task_monitor.h"
#include "distributed/worker_interface.h"

namespace millrace {

// Pointers are not owned and outlive what the master runs (see Master::Shutdown).
struct MasterOptions {
  std::string task;     // its own, "/job:worker/task:0"
  ClusterSpec cluster;  // may be empty: then sessions bring theirs, or use the own task only
  // Where it listens, "" while that is not known: tells which task of a session's cluster it is.
  // Otherwise, or if null, `task` tells it.
  std::function<std::string()> address;
  WorkerFactory* workers = nullptr;
  WorkerInterface* own_worker = nullptr;  // of the own task: reached without a connection
  Environment environment;
  std::shared_ptr<const OpRegistry> ops;
  const KernelRegistry* kernels = nullptr;  // those of all tasks, for placement
  // With the graph transform; policy and default device are those of sessions that name no policy:
  // unless set, nodes that nothing constrains go to the master's own task.
  PlannerOptions planner;
  // What SessionSettings.policy may name, besides "round_robin". All tasks are theirs to choose.
  std::map<std::string, const PlacementPolicy*> policies;
  std::string build_version;

  absl::Duration inventory_bound = absl::Seconds(2);  // how long tasks are waited for
  absl::Duration connect_bound = absl::Seconds(5);    // of a worker's CreateSession
  absl::Duration idle_lease = absl::Hours(1);         // of sessions that set none
  TaskMonitorOptions monitor;
  int cached_plans = 64;  // of a session, made by RunStep
  ReplyCacheLimits replies;
};

// Plans and drives the steps of any number of sessions. Several masters may serve one cluster.
// Thread-safe; nothing blocks.
class Master final : public MasterInterface {
 public:
  explicit Master(MasterOptions options);
  ~Master() override;  // as Shutdown

  // Ends all sessions and refuses calls from now on. `drained` runs once nothing of this master
  // uses its options any more, perhaps in this call. Call it once.
  void Shutdown(absl::AnyInvocable<void()> drained);

  void CreateSession(const CreateSessionRequest* request, CreateSessionResponse* response,
                     const CallOptions& options, CallDone done) override;
  void ExtendSession(const ExtendSessionRequest* request, ExtendSessionResponse* response,
                     const CallOptions& options, CallDone done) override;
  void RunStep(const RunStepRequest* request, RunStepResponse* response, const CallOptions& options,
               CallDone done) override;
  void Prepare(const PrepareRequest* request, PrepareResponse* response, const CallOptions& options,
               CallDone done) override;
  void RunPrepared(const RunPreparedRequest* request, RunPreparedResponse* response,
                   const CallOptions& options, CallDone done) override;
  void DescribeStep(const DescribeStepRequest* request, DescribeStepResponse* response,
                    const CallOptions& options, CallDone done) override;
  void CloseSession(const CloseSessionRequest* request, CloseSessionResponse* response,
                    const CallOptions& options, CallDone done) override;
  void ListDevices(const ListDevicesRequest* request, ListDevicesResponse* response,
                   const CallOptions& options, CallDone done) override;
  void Reset(const ResetRequest* request, ResetResponse* response, const CallOptions& options,
             CallDone done) override;

  // For tests and inspection.
  struct Usage {
    int sessions = 0;
    int plans = 0;
    int live_steps = 0;
    int kept_replies = 0;
  };
  Usage usage() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace millrace

#endif  // DISTRIBUTED_MASTER_H_
