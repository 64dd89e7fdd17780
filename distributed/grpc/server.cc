#include "distributed/grpc/server.h"

#include <utility>

#include "core/base/mutex.h"
#include "distributed/grpc/channel.h"
#include "distributed/grpc/service.h"

namespace millrace {
namespace {

constexpr absl::Duration kDestructorDeadline = absl::Milliseconds(500);

class GrpcServerImpl final : public GrpcServer {
 public:
  explicit GrpcServerImpl(const GrpcServerOptions& options)
      : service_(options.master, options.worker, options.data_plane) {}
  ~GrpcServerImpl() override { Shutdown(kDestructorDeadline); }

  Status Listen(const GrpcServerOptions& options) {
    const size_t colon = options.address.rfind(':');
    if (colon == std::string::npos) {
      return InvalidArgument("'", options.address, "' is not an address: write host:port");
    }
    if (!options.allow_remote && !IsLoopback(options.address)) {
      return absl::PermissionDeniedError(
          StrCat("other hosts could reach ", options.address,
                 ", and nothing is encrypted: listen at 127.0.0.1, or allow it explicitly"));
    }
    grpc::ServerBuilder builder;
    SetServerArguments({options.keepalive_time, options.keepalive_timeout}, builder);
    builder.AddListeningPort(options.address, grpc::InsecureServerCredentials(), &port_);
    builder.RegisterCallbackGenericService(&service_);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port_ == 0) {
      return AlreadyExists("cannot listen at ", options.address,
                           ": the port is in use, or the host is not this one");
    }
    address_ = StrCat(options.address.substr(0, colon), ":", port_);
    return absl::OkStatus();
  }

  int port() const override { return port_; }
  std::string address() const override { return address_; }

  void Shutdown(absl::Duration deadline) override {
    {
      MutexLock lock(mutex_);
      if (server_ == nullptr || std::exchange(shut_down_, true)) return;
    }
    service_.CloseStreams(Unavailable("the task is shutting down"));
    server_->Shutdown(DeadlineAfter(deadline));
  }

 private:
  GrpcService service_;
  std::string address_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;  // ends before the service
  Mutex mutex_;
  bool shut_down_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(const GrpcServerOptions& options) {
  auto server = std::make_unique<GrpcServerImpl>(options);
  MR_RETURN_IF_ERROR(server->Listen(options));
  return std::unique_ptr<GrpcServer>(std::move(server));
}

}  // namespace millrace
