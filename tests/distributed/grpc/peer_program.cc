// A task for tests to kill and stop: echoes each tensor over its data plane, and holds every call
// of its worker. Arguments: file to write its port to, incarnation, address and incarnation of whom
// to echo to.
#include "absl/strings/numbers.h"
#include "core/base/file.h"
#include "core/base/mutex.h"
#include "core/base/process.h"
#include "core/base/thread_pool.h"
#include "distributed/data_plane.h"
#include "distributed/grpc/server.h"
#include "distributed/grpc/stream.h"
#include "tests/distributed/grpc/fake_services.h"

namespace millrace {
namespace {

class Echo final : public TensorSink {
 public:
  Echo(StreamDataPlane& plane, LinkId link) : plane_(plane), link_(link) {}
  void OnTensor(const MessageKey& key, Tensor tensor, int64_t /*wire_bytes*/) override {
    plane_.Push(link_, key, std::move(tensor));
  }
  void OnLinkDown(const Status&) override {}

 private:
  StreamDataPlane& plane_;
  const LinkId link_;
};

int Main(int argc, char** argv) {
  uint64_t own = 0;
  uint64_t peer = 0;
  if (argc != 5 || !absl::SimpleAtoi(argv[2], &own) || !absl::SimpleAtoi(argv[4], &peer)) return 2;
  HostEnvironment host;
  GrpcStreamFactory streams;
  FakeWorker worker;
  worker.set_hold(true);
  StreamDataPlaneOptions plane_options;
  plane_options.environment = host.environment();
  plane_options.streams = &streams;
  plane_options.incarnation = own;
  const auto plane = StreamDataPlane::Create(plane_options);
  const LinkId link = plane->Link("/job:test/task:0", argv[3], peer);
  Echo echo(*plane, link);
  for (uint64_t step = 1; step < 100; ++step) {
    if (!plane->BeginStep(77, step, &echo, {link}).ok()) return 1;
  }
  GrpcServerOptions options;
  options.worker = &worker;
  options.data_plane = plane.get();
  const auto server = GrpcServer::Start(options);
  if (!server.ok()) return 1;
  if (!WriteFile(*host.environment().files, argv[1], StrCat((*server)->port())).ok()) return 1;
  Notification for_ever;  // until killed
  for_ever.Wait();
  return 0;
}

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) { return millrace::Main(argc, argv); }
