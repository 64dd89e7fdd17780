#ifndef DISTRIBUTED_GRPC_STREAM_H_
#define DISTRIBUTED_GRPC_STREAM_H_

#include <map>
#include <memory>
#include <string>

#include "core/base/mutex.h"
#include "distributed/frame_stream.h"
#include "distributed/grpc/channel.h"
#include "grpcpp/generic/async_generic_service.h"

namespace millrace {

// The method that carries frames: a bidirectional stream of byte messages.
inline constexpr char kDataStreamMethod[] = "/millrace.DataPlane/Stream";

// Opens data streams, each address over one connection of its own. Thread-safe. Streams may
// outlive it.
class GrpcStreamFactory final : public FrameStreamFactory {
 public:
  explicit GrpcStreamFactory(GrpcKeepalive keepalive = {}) : keepalive_(keepalive) {}
  std::shared_ptr<FrameStream> Connect(const std::string& address,
                                       std::shared_ptr<FrameStream::Handler> handler) override;

 private:
  const GrpcKeepalive keepalive_;
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<grpc::Channel>> channels_ ABSL_GUARDED_BY(mutex_);
};

// The data streams that a server has open, so that it can end them.
class GrpcStreamSet {
 public:
  explicit GrpcStreamSet(FrameStreamAcceptor* acceptor) : acceptor_(acceptor) {}
  // A peer has called kDataStreamMethod.
  grpc::ServerGenericBidiReactor* Open();
  // Ends all, and those that still come.
  void CloseAll(const Status& reason);

 private:
  friend class GrpcServerStream;
  void Remove(const FrameStream* stream);

  FrameStreamAcceptor* const acceptor_;
  Mutex mutex_;
  Status closed_ ABSL_GUARDED_BY(mutex_);
  std::map<const FrameStream*, std::weak_ptr<FrameStream>> streams_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace millrace

#endif  // DISTRIBUTED_GRPC_STREAM_H_
