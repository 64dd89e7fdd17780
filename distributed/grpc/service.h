#ifndef DISTRIBUTED_GRPC_SERVICE_H_
#define DISTRIBUTED_GRPC_SERVICE_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "distributed/frame_stream.h"
#include "distributed/grpc/stream.h"
#include "distributed/master_interface.h"
#include "distributed/worker_interface.h"
#include "grpcpp/generic/async_generic_service.h"

namespace millrace {

// All that a server answers, by method name:
//   /millrace.DataPlane/Stream         the data plane
//   /millrace.MasterService/...        the master
//   /millrace.WorkerService/...        the worker
//   /tensorflow.MasterService/...      the master again, for foreign clients: the same bytes, but
//                                      errors as a gRPC status, where their messages have no place
// A caller that goes away, or whose deadline passes, cancels its call.
class GrpcService final : public grpc::CallbackGenericService {
 public:
  // Any may be null, and is then unimplemented. Not owned.
  GrpcService(MasterInterface* master, WorkerInterface* worker, FrameStreamAcceptor* data_plane);

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;

  // Ends the data streams, and those that still come.
  void CloseStreams(const Status& reason) { streams_.CloseAll(reason); }

 private:
  using Reactor = grpc::ServerGenericBidiReactor;
  using Method = absl::AnyInvocable<Reactor*(grpc::GenericCallbackServerContext*) const>;

  void AddMaster(MasterInterface* master);
  void AddForeignMaster(MasterInterface* master);
  void AddWorker(WorkerInterface* worker);

  const bool has_data_plane_;
  GrpcStreamSet streams_;
  absl::flat_hash_map<std::string, Method> methods_;
};

}  // namespace millrace

#endif  // DISTRIBUTED_GRPC_SERVICE_H_
