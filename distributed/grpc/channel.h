#ifndef DISTRIBUTED_GRPC_CHANNEL_H_
#define DISTRIBUTED_GRPC_CHANNEL_H_

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "core/base/status.h"
#include "grpcpp/grpcpp.h"

// All settings of gRPC channels and servers stand here.
namespace millrace {

// A peer that answers no ping for `time` + `timeout` is taken to be gone: its connection breaks at
// both ends. So a call or stream without a deadline ends, too.
struct GrpcKeepalive {
  absl::Duration time = absl::Seconds(2);     // of silence before a ping
  absl::Duration timeout = absl::Seconds(3);  // for its answer
};

// Control calls share a connection to each address; bulk data has one of its own for each channel,
// so that no call waits behind a tensor.
enum class GrpcTraffic { kControl, kBulk };

// A channel to "host:port" that connects when first used. Insecure: for loopback and networks that
// the user trusts.
std::shared_ptr<grpc::Channel> NewGrpcChannel(const std::string& address, GrpcTraffic traffic,
                                              const GrpcKeepalive& keepalive);

// The same for a server, and the port to listen at.
void SetServerArguments(const GrpcKeepalive& keepalive, grpc::ServerBuilder& builder);

// Whether only this host can reach the address "host:port".
bool IsLoopback(absl::string_view address);

grpc::Status ToGrpc(const Status& status);
Status FromGrpc(const grpc::Status& status);

// The time left until a call's deadline; infinite without one.
absl::Duration TimeLeft(const grpc::ServerContextBase& context);
void SetTimeout(absl::Duration timeout, grpc::ClientContext& context);
// What grpc::Server::Shutdown takes.
std::chrono::system_clock::time_point DeadlineAfter(absl::Duration timeout);

}  // namespace millrace

#endif  // DISTRIBUTED_GRPC_CHANNEL_H_
