#include "distributed/grpc/service.h"

#include <utility>

#include "distributed/grpc/unary_reactor.h"

namespace millrace {
namespace {

using Reactor = grpc::ServerGenericBidiReactor;
using Context = grpc::GenericCallbackServerContext;

// The handler of one method: `call` is the service's member function. Not every response is sent:
// see `conclude` in UnaryReactor.
template <typename Service, typename Request, typename Response, typename Conclude>
auto Handler(Service* service,
             void (Service::*call)(const Request*, Response*, const CallOptions&, CallDone),
             Conclude conclude) {
  return [service, call, conclude](Context* context) -> Reactor* {
    const auto handle = [service, call](const Request* request, Response* response,
                                        const CallOptions& options, CallDone done) {
      (service->*call)(request, response, options, std::move(done));
    };
    return new UnaryReactor<Request, Response, decltype(handle), Conclude>(*context, handle,
                                                                           conclude);
  };
}

// Our own clients read the outcome in the body.
template <typename Service, typename Request, typename Response>
auto Handler(Service* service,
             void (Service::*call)(const Request*, Response*, const CallOptions&, CallDone)) {
  return Handler(service, call, [](const Request&, const Response&) { return absl::OkStatus(); });
}

// Foreign clients do not know that field of ours.
template <typename Request, typename Response>
auto ForeignHandler(MasterInterface* master,
                    void (MasterInterface::*call)(const Request*, Response*, const CallOptions&,
                                                  CallDone)) {
  return Handler(master, call, [](const Request&, const Response& response) {
    return ToStatus(response.status());
  });
}

// RunStep's response has a place for errors; the request says whether to use it.
Status ForeignRunStepStatus(const RunStepRequest& request, const RunStepResponse& response) {
  if (request.store_errors_in_response_body() || response.status_code() == 0) {
    return absl::OkStatus();
  }
  StatusMessage message;
  message.set_code(response.status_code());
  message.set_message(response.status_error_message());
  return ToStatus(message);
}

class Unimplemented final : public Reactor {
 public:
  explicit Unimplemented(const std::string& method) {
    Finish(grpc::Status(grpc::StatusCode::UNIMPLEMENTED,
                        StrCat("this server has no method ", method)));
  }
  void OnDone() override { delete this; }
};

}  // namespace

GrpcService::GrpcService(MasterInterface* master, WorkerInterface* worker,
                         FrameStreamAcceptor* data_plane)
    : has_data_plane_(data_plane != nullptr), streams_(data_plane) {
  if (master != nullptr) {
    AddMaster(master);
    AddForeignMaster(master);
  }
  if (worker != nullptr) AddWorker(worker);
}

void GrpcService::AddMaster(MasterInterface* master) {
  using M = MasterInterface;
  methods_["/millrace.MasterService/CreateSession"] = Handler(master, &M::CreateSession);
  methods_["/millrace.MasterService/ExtendSession"] = Handler(master, &M::ExtendSession);
  methods_["/millrace.MasterService/RunStep"] = Handler(master, &M::RunStep);
  methods_["/millrace.MasterService/Prepare"] = Handler(master, &M::Prepare);
  methods_["/millrace.MasterService/RunPrepared"] = Handler(master, &M::RunPrepared);
  methods_["/millrace.MasterService/DescribeStep"] = Handler(master, &M::DescribeStep);
  methods_["/millrace.MasterService/CloseSession"] = Handler(master, &M::CloseSession);
  methods_["/millrace.MasterService/ListDevices"] = Handler(master, &M::ListDevices);
  methods_["/millrace.MasterService/Reset"] = Handler(master, &M::Reset);
}

void GrpcService::AddForeignMaster(MasterInterface* master) {
  using M = MasterInterface;
  methods_["/tensorflow.MasterService/CreateSession"] = ForeignHandler(master, &M::CreateSession);
  methods_["/tensorflow.MasterService/ExtendSession"] = ForeignHandler(master, &M::ExtendSession);
  methods_["/tensorflow.MasterService/CloseSession"] = ForeignHandler(master, &M::CloseSession);
  methods_["/tensorflow.MasterService/ListDevices"] = ForeignHandler(master, &M::ListDevices);
  methods_["/tensorflow.MasterService/Reset"] = ForeignHandler(master, &M::Reset);
  methods_["/tensorflow.MasterService/RunStep"] =
      Handler(master, &M::RunStep, ForeignRunStepStatus);
}

void GrpcService::AddWorker(WorkerInterface* worker) {
  using W = WorkerInterface;
  methods_["/millrace.WorkerService/GetStatus"] = Handler(worker, &W::GetStatus);
  methods_["/millrace.WorkerService/CreateSession"] = Handler(worker, &W::CreateSession);
  methods_["/millrace.WorkerService/DeleteSession"] = Handler(worker, &W::DeleteSession);
  methods_["/millrace.WorkerService/RegisterPlan"] = Handler(worker, &W::RegisterPlan);
  methods_["/millrace.WorkerService/DeregisterPlan"] = Handler(worker, &W::DeregisterPlan);
  methods_["/millrace.WorkerService/RunStep"] = Handler(worker, &W::RunStep);
  methods_["/millrace.WorkerService/AbortStep"] = Handler(worker, &W::AbortStep);
  methods_["/millrace.WorkerService/Heartbeat"] = Handler(worker, &W::Heartbeat);
  methods_["/millrace.WorkerService/Reset"] = Handler(worker, &W::Reset);
}

Reactor* GrpcService::CreateReactor(Context* context) {
  if (has_data_plane_ && context->method() == kDataStreamMethod) return streams_.Open();
  const auto method = methods_.find(context->method());
  if (method == methods_.end()) return new Unimplemented(context->method());
  return method->second(context);
}

}  // namespace millrace
