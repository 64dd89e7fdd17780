#include "distributed/grpc/client.h"

#include <utility>

namespace millrace {
namespace {

class GrpcMaster final : public MasterInterface {
 public:
  GrpcMaster(const std::string& address, const GrpcCallerOptions& options)
      : caller_("", address, options) {}

  void CreateSession(const CreateSessionRequest* request, CreateSessionResponse* response,
                     const CallOptions& options, CallDone done) override {
    caller_.Call("/millrace.MasterService/CreateSession", *request, response, options,
                 std::move(done));
  }
  void ExtendSession(const ExtendSessionRequest* request, ExtendSessionResponse* response,
                     const CallOptions& options, CallDone done) override {
    caller_.Call("/millrace.MasterService/ExtendSession", *request, response, options,
                 std::move(done));
  }
  void RunStep(const RunStepRequest* request, RunStepResponse* response, const CallOptions& options,
               CallDone done) override {
    caller_.Call("/millrace.MasterService/RunStep", *request, response, options, std::move(done));
  }
  void Prepare(const PrepareRequest* request, PrepareResponse* response, const CallOptions& options,
               CallDone done) override {
    caller_.Call("/millrace.MasterService/Prepare", *request, response, options, std::move(done));
  }
  void RunPrepared(const RunPreparedRequest* request, RunPreparedResponse* response,
                   const CallOptions& options, CallDone done) override {
    caller_.Call("/millrace.MasterService/RunPrepared", *request, response, options,
                 std::move(done));
  }
  void DescribeStep(const DescribeStepRequest* request, DescribeStepResponse* response,
                    const CallOptions& options, CallDone done) override {
    caller_.Call("/millrace.MasterService/DescribeStep", *request, response, options,
                 std::move(done));
  }
  void CloseSession(const CloseSessionRequest* request, CloseSessionResponse* response,
                    const CallOptions& options, CallDone done) override {
    caller_.Call("/millrace.MasterService/CloseSession", *request, response, options,
                 std::move(done));
  }
  void ListDevices(const ListDevicesRequest* request, ListDevicesResponse* response,
                   const CallOptions& options, CallDone done) override {
    caller_.Call("/millrace.MasterService/ListDevices", *request, response, options,
                 std::move(done));
  }
  void Reset(const ResetRequest* request, ResetResponse* response, const CallOptions& options,
             CallDone done) override {
    caller_.Call("/millrace.MasterService/Reset", *request, response, options, std::move(done));
  }

 private:
  GrpcCaller caller_;
};

class GrpcWorker final : public WorkerInterface {
 public:
  GrpcWorker(const std::string& task, const std::string& address, const GrpcCallerOptions& options)
      : caller_(task, address, options) {}

  void GetStatus(const GetStatusRequest* request, GetStatusResponse* response,
                 const CallOptions& options, CallDone done) override {
    caller_.Call("/millrace.WorkerService/GetStatus", *request, response, options, std::move(done));
  }
  void CreateSession(const CreateWorkerSessionRequest* request,
                     CreateWorkerSessionResponse* response, const CallOptions& options,
                     CallDone done) override {
    caller_.Call("/millrace.WorkerService/CreateSession", *request, response, options,
                 std::move(done));
  }
  void DeleteSession(const DeleteWorkerSessionRequest* request,
                     DeleteWorkerSessionResponse* response, const CallOptions& options,
                     CallDone done) override {
    caller_.Call("/millrace.WorkerService/DeleteSession", *request, response, options,
                 std::move(done));
  }
  void RegisterPlan(const RegisterPlanRequest* request, RegisterPlanResponse* response,
                    const CallOptions& options, CallDone done) override {
    caller_.Call("/millrace.WorkerService/RegisterPlan", *request, response, options,
                 std::move(done));
  }
  void DeregisterPlan(const DeregisterPlanRequest* request, DeregisterPlanResponse* response,
                      const CallOptions& options, CallDone done) override {
    caller_.Call("/millrace.WorkerService/DeregisterPlan", *request, response, options,
                 std::move(done));
  }
  void RunStep(const WorkerRunStepRequest* request, WorkerRunStepResponse* response,
               const CallOptions& options, CallDone done) override {
    caller_.Call("/millrace.WorkerService/RunStep", *request, response, options, std::move(done));
  }
  void AbortStep(const AbortStepRequest* request, AbortStepResponse* response,
                 const CallOptions& options, CallDone done) override {
    caller_.Call("/millrace.WorkerService/AbortStep", *request, response, options, std::move(done));
  }
  void Heartbeat(const HeartbeatRequest* request, HeartbeatResponse* response,
                 const CallOptions& options, CallDone done) override {
    caller_.Call("/millrace.WorkerService/Heartbeat", *request, response, options, std::move(done));
  }
  void Reset(const WorkerResetRequest* request, WorkerResetResponse* response,
             const CallOptions& options, CallDone done) override {
    caller_.Call("/millrace.WorkerService/Reset", *request, response, options, std::move(done));
  }

 private:
  GrpcCaller caller_;
};

}  // namespace

std::unique_ptr<MasterInterface> NewGrpcMaster(const std::string& address,
                                               const GrpcCallerOptions& options) {
  return std::make_unique<GrpcMaster>(address, options);
}

std::unique_ptr<WorkerInterface> GrpcWorkerFactory::Connect(const std::string& task,
                                                            const std::string& address) {
  return std::make_unique<GrpcWorker>(task, address, options_);
}

}  // namespace millrace
