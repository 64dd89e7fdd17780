#ifndef DISTRIBUTED_GRPC_UNARY_REACTOR_H_
#define DISTRIBUTED_GRPC_UNARY_REACTOR_H_

#include <utility>

#include "distributed/grpc/channel.h"
#include "distributed/grpc/handover.h"
#include "distributed/master_interface.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/impl/codegen/proto_utils.h"

namespace millrace {

// Serves one unary call: reads the request, runs `handle(request, response, options, done)`, and
// writes the response, or the status that `conclude(request, response)` makes of it if that is an
// error. Deletes itself when gRPC is done, which is after `done`.
template <typename Request, typename Response, typename Handle, typename Conclude>
class UnaryReactor final : public grpc::ServerGenericBidiReactor {
 public:
  UnaryReactor(const grpc::ServerContextBase& context, Handle handle, Conclude conclude)
      : context_(context), handle_(std::move(handle)), conclude_(std::move(conclude)) {
    handover_.Give();
    StartRead(&buffer_);
  }

  void OnReadDone(bool ok) override {
    handover_.Take();
    if (!ok) {
      End(grpc::Status(grpc::StatusCode::INTERNAL, "the call has no request"));
      return;
    }
    const grpc::Status parsed =
        grpc::SerializationTraits<Request>::Deserialize(&buffer_, &request_);
    if (!parsed.ok()) {
      End(grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "the request is malformed"));
      return;
    }
    CallOptions options;
    options.timeout = TimeLeft(context_);
    options.cancellation = &cancellation_;
    handle_(&request_, &response_, options, [this](Status status) { Reply(std::move(status)); });
  }

  void OnCancel() override {
    handover_.Take();
    cancellation_.Cancel(Cancelled("the caller has gone"));
  }
  void OnDone() override {
    handover_.Take();
    delete this;
  }

 private:
  void End(const grpc::Status& status) {
    handover_.Give();
    Finish(status);
  }

  void Reply(Status status) {
    if (status.ok()) status = conclude_(request_, response_);
    if (status.ok() && response_.ByteSizeLong() >= (size_t{1} << 31)) {
      status = ResourceExhausted("the response is larger than 2 GB");
    }
    if (!status.ok()) {
      End(ToGrpc(status));
      return;
    }
    bool own_buffer;
    const grpc::Status serialized =
        grpc::SerializationTraits<Response>::Serialize(response_, &buffer_, &own_buffer);
    if (!serialized.ok()) {
      End(serialized);
      return;
    }
    handover_.Give();
    StartWriteAndFinish(&buffer_, grpc::WriteOptions(), grpc::Status::OK);
  }

  const grpc::ServerContextBase& context_;
  Handle handle_;
  Conclude conclude_;
  grpc::ByteBuffer buffer_;
  Request request_;
  Response response_;
  Cancellation cancellation_;
  Handover handover_;  // of this object
};

}  // namespace millrace

#endif  // DISTRIBUTED_GRPC_UNARY_REACTOR_H_
