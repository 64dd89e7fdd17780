#ifndef TESTS_DISTRIBUTED_GRPC_LOOPBACK_H_
#define TESTS_DISTRIBUTED_GRPC_LOOPBACK_H_

#include <memory>
#include <string>

#include "distributed/data_plane.h"
#include "distributed/grpc/server.h"
#include "distributed/grpc/stream.h"
#include "gtest/gtest.h"

namespace millrace {

// A task's data plane behind a real server.
class LoopbackTask {
 public:
  LoopbackTask(const Environment& environment, uint64_t incarnation, GrpcKeepalive keepalive = {},
               const std::string& address = "127.0.0.1:0", Allocator* allocator = &HostAllocator())
      : incarnation(incarnation), streams_(keepalive) {
    StreamDataPlaneOptions options;
    options.environment = environment;
    options.streams = &streams_;
    options.incarnation = incarnation;
    options.task = name();
    options.allocator = allocator;
    plane = StreamDataPlane::Create(options);
    GrpcServerOptions server_options;
    server_options.address = address;
    server_options.data_plane = plane.get();
    server_options.keepalive_time = keepalive.time;
    server_options.keepalive_timeout = keepalive.timeout;
    StatusOr<std::unique_ptr<GrpcServer>> started = GrpcServer::Start(server_options);
    EXPECT_TRUE(started.ok()) << started.status();
    if (started.ok()) server = *std::move(started);
  }

  std::string name() const { return StrCat("/job:worker/task:", incarnation); }
  LinkId LinkTo(const LoopbackTask& other) {
    return plane->Link(other.name(), other.server->address(), other.incarnation);
  }

  const uint64_t incarnation;

 private:
  GrpcStreamFactory streams_;

 public:
  std::unique_ptr<StreamDataPlane> plane;
  std::unique_ptr<GrpcServer> server;  // goes first
};

}  // namespace millrace

#endif  // TESTS_DISTRIBUTED_GRPC_LOOPBACK_H_
