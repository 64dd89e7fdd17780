#ifndef DISTRIBUTED_GRPC_CLIENT_H_
#define DISTRIBUTED_GRPC_CLIENT_H_

#include <memory>
#include <string>

#include "distributed/grpc/caller.h"
#include "distributed/master_interface.h"
#include "distributed/worker_interface.h"

// Masters and workers behind gRPC. Thread-safe; connected by the first call (see GrpcCaller).
// `done` may run within the call, or on one of gRPC's few threads, which it must not keep.
namespace millrace {

// The master at "host:port".
std::unique_ptr<MasterInterface> NewGrpcMaster(const std::string& address,
                                               const GrpcCallerOptions& options);

class GrpcWorkerFactory final : public WorkerFactory {
 public:
  explicit GrpcWorkerFactory(const GrpcCallerOptions& options) : options_(options) {}
  std::unique_ptr<WorkerInterface> Connect(const std::string& task,
                                           const std::string& address) override;

 private:
  const GrpcCallerOptions options_;
};

}  // namespace millrace

#endif  // DISTRIBUTED_GRPC_CLIENT_H_
