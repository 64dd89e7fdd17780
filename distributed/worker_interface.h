#ifndef DISTRIBUTED_WORKER_INTERFACE_H_
#define DISTRIBUTED_WORKER_INTERFACE_H_

#include <memory>
#include <string>

#include "distributed/master_interface.h"
#include "distributed/worker.pb.h"

namespace millrace {

inline constexpr int kProtocolVersion = 1;

// A worker, in this process or behind gRPC. Request and response outlive the call. Thread-safe;
// nothing blocks. Each call is said in worker.proto.
class WorkerInterface {
 public:
  virtual ~WorkerInterface() = default;
  virtual void GetStatus(const GetStatusRequest* request, GetStatusResponse* response,
                         const CallOptions& options, CallDone done) = 0;
  virtual void CreateSession(const CreateWorkerSessionRequest* request,
                             CreateWorkerSessionResponse* response, const CallOptions& options,
                             CallDone done) = 0;
  virtual void DeleteSession(const DeleteWorkerSessionRequest* request,
                             DeleteWorkerSessionResponse* response, const CallOptions& options,
                             CallDone done) = 0;
  virtual void RegisterPlan(const RegisterPlanRequest* request, RegisterPlanResponse* response,
                            const CallOptions& options, CallDone done) = 0;
  virtual void DeregisterPlan(const DeregisterPlanRequest* request,
                              DeregisterPlanResponse* response, const CallOptions& options,
                              CallDone done) = 0;
  virtual void RunStep(const WorkerRunStepRequest* request, WorkerRunStepResponse* response,
                       const CallOptions& options, CallDone done) = 0;
  virtual void AbortStep(const AbortStepRequest* request, AbortStepResponse* response,
                         const CallOptions& options, CallDone done) = 0;
  virtual void Heartbeat(const HeartbeatRequest* request, HeartbeatResponse* response,
                         const CallOptions& options, CallDone done) = 0;
  virtual void Reset(const WorkerResetRequest* request, WorkerResetResponse* response,
                     const CallOptions& options, CallDone done) = 0;
};

// Makes workers reachable by address. Thread-safe.
class WorkerFactory {
 public:
  virtual ~WorkerFactory() = default;
  // The worker `task` at `address`; the connection is made by its first call, which fails with
  // Unavailable, naming task and address, if there is none within the connect deadline.
  virtual std::unique_ptr<WorkerInterface> Connect(const std::string& task,
                                                   const std::string& address) = 0;
};

}  // namespace millrace

#endif  // DISTRIBUTED_WORKER_INTERFACE_H_
