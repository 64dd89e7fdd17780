#ifndef DISTRIBUTED_WORKER_H_
#define DISTRIBUTED_WORKER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "core/base/scheduler.h"
#include "core/framework/device.h"
#include "core/framework/kernel.h"
#include "core/framework/op_def.h"
#include "distributed/transport.h"
#include "distributed/worker_interface.h"

namespace millrace {

// Pointers are not owned and outlive what the worker runs (see Worker::Shutdown).
struct WorkerOptions {
  // What the task calls itself in messages; sessions may call it otherwise.
  std::string task;
  std::vector<Device*> devices;
  const KernelRegistry* kernels = nullptr;
  std::shared_ptr<const OpRegistry> ops;
  Environment environment;
  DataPlane* data_plane = nullptr;  // null: no plan may cross to other tasks
  uint64_t incarnation = 0;         // the same as the data plane's
  std::string build_version;
  int pid = 0;
  // A session whose master was silent for so long ends.
  absl::Duration idle_lease = absl::Seconds(60);
  // How long an aborted step that has begun, or is about, to update variables and waits for nothing
  // may go on, so that an abort seldom tears a set of variables.
  absl::Duration abort_grace = absl::Seconds(1);
  // Of ended steps, for each session: replies kept for repeats.
  int kept_replies = 256;
  int64_t kept_reply_bytes = 16 << 20;
};

// Runs the parts of steps that fall to one task, for any number of sessions of any masters.
// Variables belong to the devices and outlive sessions. Every call names the incarnation that it is
// meant for. Thread-safe; nothing blocks.
class Worker final : public WorkerInterface {
 public:
  explicit Worker(WorkerOptions options);
  ~Worker() override;  // as Shutdown

  // Ends all sessions with Cancelled and refuses calls from now on. `drained` runs once nothing of
  // this worker uses its options any more, perhaps in this call: after that and the destructor,
  // devices and data plane may go.
  void Shutdown(absl::AnyInvocable<void()> drained);

  void GetStatus(const GetStatusRequest* request, GetStatusResponse* response,
                 const CallOptions& options, CallDone done) override;
  void CreateSession(const CreateWorkerSessionRequest* request,
                     CreateWorkerSessionResponse* response, const CallOptions& options,
                     CallDone done) override;
  void DeleteSession(const DeleteWorkerSessionRequest* request,
                     DeleteWorkerSessionResponse* response, const CallOptions& options,
                     CallDone done) override;
  void RegisterPlan(const RegisterPlanRequest* request, RegisterPlanResponse* response,
                    const CallOptions& options, CallDone done) override;
  void DeregisterPlan(const DeregisterPlanRequest* request, DeregisterPlanResponse* response,
                      const CallOptions& options, CallDone done) override;
  void RunStep(const WorkerRunStepRequest* request, WorkerRunStepResponse* response,
               const CallOptions& options, CallDone done) override;
  void AbortStep(const AbortStepRequest* request, AbortStepResponse* response,
                 const CallOptions& options, CallDone done) override;
  void Heartbeat(const HeartbeatRequest* request, HeartbeatResponse* response,
                 const CallOptions& options, CallDone done) override;
  void Reset(const WorkerResetRequest* request, WorkerResetResponse* response,
             const CallOptions& options, CallDone done) override;

  // For tests and inspection.
  struct Usage {
    int sessions = 0;
    int plans = 0;
    int live_steps = 0;    // running
    int kept_replies = 0;  // of ended steps
  };
  Usage usage() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace millrace

#endif  // DISTRIBUTED_WORKER_H_
