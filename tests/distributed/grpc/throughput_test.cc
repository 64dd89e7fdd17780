#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "core/base/thread_pool.h"
#include "tests/distributed/grpc/loopback.h"
#include "tests/distributed/grpc/waiting_sink.h"

// Figures beside a limit of the same run: 100 MB through two data planes and gRPC, and the same
// bytes through a plain TCP connection of this host.
namespace millrace {
namespace {

constexpr int64_t kBytes = 100'000'000;
constexpr int kRounds = 7;
constexpr uint64_t kSession = 77;

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Memory that is kept for the next tensor of its size, as a task's pool does: fresh pages cost more
// than the transport.
class KeepingAllocator final : public Allocator {
 public:
  ~KeepingAllocator() override {
    for (void* memory : kept_) HostAllocator().Deallocate(memory, kBytes);
  }
  void* Allocate(size_t bytes) override {
    MutexLock lock(mutex_);
    if (bytes != kBytes || kept_.empty()) return HostAllocator().Allocate(bytes);
    void* memory = kept_.back();
    kept_.pop_back();
    return memory;
  }
  void Deallocate(void* memory, size_t bytes) override {
    MutexLock lock(mutex_);
    if (bytes == kBytes) {
      kept_.push_back(memory);
    } else {
      HostAllocator().Deallocate(memory, bytes);
    }
  }
  AllocatorStats stats() const override { return {}; }

 private:
  Mutex mutex_;
  std::vector<void*> kept_ ABSL_GUARDED_BY(mutex_);
};

class ThroughputTest : public testing::Test {
 protected:
  double Seconds() const {
    return static_cast<double>(host_.environment().clock->NowNanos()) / 1e9;
  }

  // GB/s of plain TCP, one side sending from one buffer and the other receiving into one.
  double PlainTcp() {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* plain = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(listener, plain, size), 0);
    EXPECT_EQ(listen(listener, 1), 0);
    EXPECT_EQ(getsockname(listener, plain, &size), 0);
    const int client = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(connect(client, plain, size), 0);
    const int server = accept(listener, nullptr, nullptr);

    std::vector<char> from(kBytes, 1);
    std::vector<char> to(kBytes, 2);
    std::vector<double> seconds;
    for (int round = 0; round < kRounds; ++round) {
      Notification sent;
      const double start = Seconds();
      host_.environment().scheduler->Schedule([&] {
        for (int64_t done = 0; done < kBytes;) done += send(client, &from[done], kBytes - done, 0);
        sent.Notify();
      });
      for (int64_t done = 0; done < kBytes;) done += recv(server, &to[done], kBytes - done, 0);
      seconds.push_back(Seconds() - start);
      sent.Wait();
    }
    for (int descriptor : {listener, client, server}) close(descriptor);
    return kBytes / Median(seconds) / 1e9;
  }

  HostEnvironment host_;
};

TEST_F(ThroughputTest, AHundredMegabytesBesidePlainTcp) {
  KeepingAllocator memory;
  LoopbackTask a(host_.environment(), 1, {}, "127.0.0.1:0", &memory);
  LoopbackTask b(host_.environment(), 2, {}, "127.0.0.1:0", &memory);
  const LinkId to_b = a.LinkTo(b);
  const LinkId to_a = b.LinkTo(a);

  // There and back again: the echo is pushed when the tensor is there.
  class Echo final : public WaitingSink {
   public:
    Echo(StreamDataPlane& plane, LinkId link) : plane_(plane), link_(link) {}
    void OnTensor(const MessageKey& key, Tensor tensor, int64_t /*wire_bytes*/) override {
      plane_.Push(link_, key, std::move(tensor));
    }

   private:
    StreamDataPlane& plane_;
    const LinkId link_;
  };
  Tensor tensor = Tensor::Zeros(DType::kUint8, {kBytes});
  tensor.mutable_data<uint8_t>()[kBytes - 1] = 200;
  std::vector<double> seconds;
  for (uint64_t step = 0; step < kRounds; ++step) {
    Echo echo(*b.plane, to_a);
    WaitingSink sink;
    ASSERT_TRUE(b.plane->BeginStep(kSession, step, &echo, {to_a}).ok());
    ASSERT_TRUE(a.plane->BeginStep(kSession, step, &sink, {to_b}).ok());
    const double start = Seconds();
    a.plane->Push(to_b, {kSession, step, 0, 1}, tensor);
    ASSERT_TRUE(sink.WaitForTensors(1));
    seconds.push_back((Seconds() - start) / 2);
    const Tensor back = sink.TakeTensors()[1];
    ASSERT_EQ(back.num_elements(), kBytes);
    EXPECT_EQ(back.data<uint8_t>()[kBytes - 1], 200);
    a.plane->EndStep(kSession, step);
    b.plane->EndStep(kSession, step);
  }
  const double data_plane = kBytes / Median(seconds) / 1e9;
  const double plain = PlainTcp();
  std::printf(
      "{\"metric\": \"data_plane_100MB\", \"GB_per_s\": %.2f, \"plain_tcp_GB_per_s\": %.2f, "
      "\"ratio\": %.2f}\n",
      data_plane, plain, data_plane / plain);
  EXPECT_GT(data_plane, plain / 100) << "something stalls";
}

TEST_F(ThroughputTest, SmallTensorsThereAndBack) {
  LoopbackTask a(host_.environment(), 1);
  LoopbackTask b(host_.environment(), 2);
  const LinkId to_b = a.LinkTo(b);
  const LinkId to_a = b.LinkTo(a);
  constexpr uint32_t kTimes = 2000;

  // Each end answers in the call that brings it the tensor.
  class Player final : public TensorSink {
   public:
    Player(StreamDataPlane& plane, LinkId link, Notification* ended)
        : plane_(plane), link_(link), ended_(ended) {}
    void OnTensor(const MessageKey& key, Tensor tensor, int64_t /*wire_bytes*/) override {
      MessageKey next = key;
      ++next.channel;
      if (next.channel == 2 * kTimes) {
        ended_->Notify();
      } else {
        plane_.Push(link_, next, std::move(tensor));
      }
    }
    void OnLinkDown(const Status& reason) override { ADD_FAILURE() << reason; }

   private:
    StreamDataPlane& plane_;
    const LinkId link_;
    Notification* const ended_;
  };
  Notification ended;
  Player here(*a.plane, to_b, &ended);
  Player there(*b.plane, to_a, &ended);
  ASSERT_TRUE(a.plane->BeginStep(kSession, 1, &here, {to_b}).ok());
  ASSERT_TRUE(b.plane->BeginStep(kSession, 1, &there, {to_a}).ok());
  const double start = Seconds();
  a.plane->Push(to_b, {kSession, 1, 0, 0}, Tensor::Scalar<float>(1));
  ASSERT_TRUE(ended.WaitFor(absl::Minutes(5)));
  std::printf("{\"metric\": \"data_plane_scalar_round_trip\", \"us\": %.1f}\n",
              (Seconds() - start) / kTimes * 1e6);
  a.plane->EndStep(kSession, 1);
  b.plane->EndStep(kSession, 1);
}

}  // namespace
}  // namespace millrace
