#ifndef DISTRIBUTED_GRPC_CALLER_H_
#define DISTRIBUTED_GRPC_CALLER_H_

#include <memory>
#include <string>
#include <utility>

#include "core/base/mutex.h"
#include "core/base/scheduler.h"
#include "distributed/grpc/channel.h"
#include "distributed/grpc/handover.h"
#include "distributed/master_interface.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/impl/codegen/proto_utils.h"

namespace millrace {

struct GrpcCallerOptions {
  Environment environment;  // timers; not owned, and outlives the calls
  absl::Duration connect_timeout = absl::Seconds(10);
  GrpcKeepalive keepalive;
};

// Makes unary calls to one peer. A call waits for a connection for about `connect_timeout` (twice
// as long if one comes and breaks meanwhile), then fails with Unavailable; once connected, it ends
// with its answer, its time-out, its cancellation, or the connection, which keepalive watches.
// Errors name call, task and address. Thread-safe; calls in flight outlive it.
class GrpcCaller {
 public:
  GrpcCaller(std::string task, const std::string& address, const GrpcCallerOptions& options);

  // `method` is "/package.Service/Method". Request and response outlive the call.
  template <typename Request, typename Response>
  void Call(const char* method, const Request& request, Response* response,
            const CallOptions& options, CallDone done) {
    auto call = std::make_shared<InFlight>(method, shared_, options, std::move(done));
    if (request.ByteSizeLong() > kMaxMessageSize) {
      call->Finish(
          grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "the request is larger than 2 GB"));
      return;
    }
    if (!call->Begin()) return;
    grpc::TemplatedGenericStub<Request, Response> stub(shared_->channel);
    call->handover.Give();
    stub.UnaryCall(&call->context, method, {}, &request, response,
                   [call](const grpc::Status& status) {
                     call->handover.Take();
                     call->Finish(status);
                   });
  }

  // Protocol buffers have no larger messages.
  static constexpr size_t kMaxMessageSize = (size_t{1} << 31) - 1;

 private:
  struct Shared {
    std::string task;
    std::string address;
    GrpcCallerOptions options;
    std::shared_ptr<grpc::Channel> channel;
  };

  // One call, from Begin to Finish.
  class InFlight : public std::enable_shared_from_this<InFlight> {
   public:
    InFlight(const char* method, std::shared_ptr<const Shared> shared, const CallOptions& options,
             CallDone done);
    // False if the call was cancelled before, and is done.
    bool Begin();
    void Finish(const grpc::Status& status);

    grpc::ClientContext context;
    Handover handover;  // of this object, with request and response

   private:
    void Watch();

    const char* const method_;
    const std::shared_ptr<const Shared> shared_;
    const CallOptions options_;
    CallDone done_;
    Cancellation::Id cancellation_ = 0;

    Mutex mutex_;
    bool finished_ ABSL_GUARDED_BY(mutex_) = false;
    bool not_connected_ ABSL_GUARDED_BY(mutex_) = false;  // and given up
    Timers::Id timer_ ABSL_GUARDED_BY(mutex_) = 0;
  };

  std::shared_ptr<const Shared> shared_;
};

}  // namespace millrace

#endif  // DISTRIBUTED_GRPC_CALLER_H_
