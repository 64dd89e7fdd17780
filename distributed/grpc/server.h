#ifndef DISTRIBUTED_GRPC_SERVER_H_
#define DISTRIBUTED_GRPC_SERVER_H_

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "core/base/status.h"
#include "distributed/frame_stream.h"
#include "distributed/master_interface.h"
#include "distributed/worker_interface.h"

namespace millrace {

struct GrpcServerOptions {
  // "host:port"; port 0 is any free one.
  std::string address = "127.0.0.1:0";
  // Addresses that other hosts can reach are refused unless this is set: there is no encryption and
  // no check of who calls.
  bool allow_remote = false;

  // What is served; null: not here. Not owned; outlive the server. Calls come on gRPC's few
  // threads, which a handler must not keep: it starts its work elsewhere.
  MasterInterface* master = nullptr;
  WorkerInterface* worker = nullptr;
  FrameStreamAcceptor* data_plane = nullptr;

  absl::Duration keepalive_time = absl::Seconds(2);
  absl::Duration keepalive_timeout = absl::Seconds(3);
};

// Serves a task's master, worker and data plane at one port. Shuts down, with a short deadline,
// when destroyed.
class GrpcServer {
 public:
  // Errors name the address: AlreadyExists if another listens there, PermissionDenied for one that
  // is open to other hosts.
  static StatusOr<std::unique_ptr<GrpcServer>> Start(const GrpcServerOptions& options);

  virtual ~GrpcServer() = default;

  virtual int port() const = 0;
  // "127.0.0.1:41234"
  virtual std::string address() const = 0;

  // Accepts nothing more, ends data streams, waits for calls in flight at most so long and then
  // cancels them. Blocks until all have ended. Later calls do nothing.
  virtual void Shutdown(absl::Duration deadline) = 0;
};

}  // namespace millrace

#endif  // DISTRIBUTED_GRPC_SERVER_H_
