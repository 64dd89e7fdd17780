#include "distributed/grpc/service.h"

#include <utility>

#include "distributed/grpc/unary_reactor.h"

namespace millrace {
namespace {

using Reactor = grpc::ServerGenericBidiReactor;
using Context = grpc::GenericCallbackServerContext;

// What serves one method: `call` is the service's member function. Not every response is sent:
// see `conclude` in UnaryReactor.
template <typename Service, typename Request, typename Response, typename Conclude>
auto Serve(Service* service,
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
auto Serve(Service* service,
           void (Service::*call)(const Request*, Response*, const CallOptions&, CallDone)) {
  return Serve(service, call, [](const Request&, const Response&) { return absl::OkStatus(); });
}

// Foreign clients do not know that field of ours.
template <typename Request, typename Response>
auto ServeForeign(MasterInterface* master,
                  void (MasterInterface::*call)(const Request*, Response*, const CallOptions&,
                                                CallDone)) {
  return Serve(master, call, [](const Request&, const Response& response) {
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

class UnknownMethod final : public Reactor {
 public:
  explicit UnknownMethod(const std::string& method) {
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
  methods_["/millrace.MasterService/CreateSession"] = Serve(master, &M::CreateSession);
  methods_["/millrace.MasterService/ExtendSession"] = Serve(master, &M::ExtendSession);
  methods_["/millrace.MasterService/RunStep"] = Serve(master, &M::RunStep);
  methods_["/millrace.MasterService/Prepare"] = Serve(master, &M::Prepare);
  methods_["/millrace.MasterService/RunPrepared"] = Serve(master, &M::RunPrepared);
  methods_["/millrace.MasterService/DescribeStep"] = Serve(master, &M::DescribeStep);
  methods_["/millrace.MasterService/CloseSession"] = Serve(master, &M::CloseSession);
  methods_["/millrace.MasterService/ListDevices"] = Serve(master, &M::ListDevices);
  methods_["/millrace.MasterService/Reset"] = Serve(master, &M::Reset);
}

void GrpcService::AddForeignMaster(MasterInterface* master) {
  using M = MasterInterface;
  methods_["/tensorflow.MasterService/CreateSession"] = ServeForeign(master, &M::CreateSession);
  methods_["/tensorflow.MasterService/ExtendSession"] = ServeForeign(master, &M::ExtendSession);
  methods_["/tensorflow.MasterService/CloseSession"] = ServeForeign(master, &M::CloseSession);
  methods_["/tensorflow.MasterService/ListDevices"] = ServeForeign(master, &M::ListDevices);
  methods_["/tensorflow.MasterService/Reset"] = ServeForeign(master, &M::Reset);
  methods_["/tensorflow.MasterService/RunStep"] = Serve(master, &M::RunStep, ForeignRunStepStatus);
}

void GrpcService::AddWorker(WorkerInterface* worker) {
  using W = WorkerInterface;
  methods_["/millrace.WorkerService/GetStatus"] = Serve(worker, &W::GetStatus);
  methods_["/millrace.WorkerService/CreateSession"] = Serve(worker, &W::CreateSession);
  methods_["/millrace.WorkerService/DeleteSession"] = Serve(worker, &W::DeleteSession);
  methods_["/millrace.WorkerService/RegisterPlan"] = Serve(worker, &W::RegisterPlan);
  methods_["/millrace.WorkerService/DeregisterPlan"] = Serve(worker, &W::DeregisterPlan);
  methods_["/millrace.WorkerService/RunStep"] = Serve(worker, &W::RunStep);
  methods_["/millrace.WorkerService/AbortStep"] = Serve(worker, &W::AbortStep);
  methods_["/millrace.WorkerService/Heartbeat"] = Serve(worker, &W::Heartbeat);
  methods_["/millrace.WorkerService/Reset"] = Serve(worker, &W::Reset);
}

Reactor* GrpcService::CreateReactor(Context* context) {
  if (has_data_plane_ && context->method() == kDataStreamMethod) return streams_.Open();
  const auto method = methods_.find(context->method());
  if (method == methods_.end()) return new UnknownMethod(context->method());
  return method->second(context);
}

}  // namespace millrace
