#include "distributed/grpc/stream.h"

#include <atomic>
#include <csignal>
#include <cstdio>

#include "absl/strings/numbers.h"
#include "core/base/file.h"
#include "core/base/mutex.h"
#include "core/base/process.h"
#include "core/base/thread_pool.h"
#include "distributed/grpc/client.h"
#include "gmock/gmock.h"
#include "tests/distributed/grpc/loopback.h"
#include "tests/distributed/grpc/waiting_sink.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kSession = 77;
constexpr uint64_t kPeerIncarnation = 4242;

MessageKey Key(uint64_t step, uint32_t channel) { return {kSession, step, 0, channel}; }

Tensor Ramp(int64_t count) {
  Tensor tensor = Tensor::Zeros(DType::kInt32, {count});
  for (int64_t i = 0; i < count; ++i) tensor.mutable_data<int32_t>()[i] = static_cast<int32_t>(i);
  return tensor;
}

bool IsRamp(const Tensor& tensor, int64_t count) {
  if (tensor.dtype() != DType::kInt32 || tensor.num_elements() != count) return false;
  for (int64_t i = 0; i < count; ++i) {
    if (tensor.data<int32_t>()[i] != i) return false;
  }
  return true;
}

class StreamTest : public testing::Test {
 protected:
  const Environment& environment() const { return host_.environment(); }
  double Seconds() const { return static_cast<double>(environment().clock->NowNanos()) / 1e9; }

  HostEnvironment host_;
};

TEST_F(StreamTest, TensorsOfAllSizesBothWays) {
  LoopbackTask a(environment(), 1);
  LoopbackTask b(environment(), 2);
  WaitingSink sinks[2];
  ASSERT_TRUE(a.plane->BeginStep(kSession, 1, &sinks[0], {a.LinkTo(b)}).ok());
  ASSERT_TRUE(b.plane->BeginStep(kSession, 1, &sinks[1], {b.LinkTo(a)}).ok());
  const auto count = [](uint32_t i) -> int64_t { return i % 10 == 9 ? 1 << 20 : i * 7; };
  for (uint32_t i = 0; i < 60; ++i) {
    a.plane->Push(a.LinkTo(b), Key(1, i), Ramp(count(i)));
    b.plane->Push(b.LinkTo(a), Key(1, i), Ramp(count(i)));
  }
  for (WaitingSink& sink : sinks) {
    ASSERT_TRUE(sink.WaitForTensors(60));
    for (const auto& [channel, tensor] : sink.TakeTensors()) {
      EXPECT_TRUE(IsRamp(tensor, count(channel))) << channel;
    }
    EXPECT_THAT(sink.downs(), IsEmpty());
  }
  a.plane->EndStep(kSession, 1);
  b.plane->EndStep(kSession, 1);
}

TEST_F(StreamTest, ManyStepsFromManyThreads) {
  LoopbackTask a(environment(), 1);
  LoopbackTask b(environment(), 2);
  constexpr int kSteps = 60;
  std::vector<WaitingSink> sinks(kSteps);
  // What is scheduled uses this frame: it must have run before the frame goes.
  std::atomic<int> left{3 * kSteps};
  Notification all_ran;
  auto schedule = [&](Task task) {
    environment().scheduler->Schedule([&, task = std::move(task)]() mutable {
      task();
      if (left.fetch_sub(1) == 1) all_ran.Notify();
    });
  };
  for (int step = 0; step < kSteps; ++step) {
    schedule([&, step] {
      for (uint32_t i = 0; i < 20; ++i) {
        a.plane->Push(a.LinkTo(b), Key(step, i), Ramp(i % 5 == 4 ? 100'000 : 10));
      }
    });
    schedule([&, step] {
      const Status begun = b.plane->BeginStep(kSession, step, &sinks[step], {b.LinkTo(a)});
      // One that nobody waits for may have ended before this runs.
      EXPECT_TRUE(begun.ok() || (step % 4 == 3 && absl::IsFailedPrecondition(begun))) << begun;
    });
  }
  for (int step = 0; step < kSteps; ++step) {
    // Some end before all has come.
    EXPECT_TRUE(step % 4 == 3 || sinks[step].WaitForTensors(20)) << step;
    schedule([&, step] { a.plane->EndStep(kSession, step); });
    b.plane->EndStep(kSession, step);
  }
  all_ran.Wait();
  a.plane->EndSession(kSession);
  b.plane->EndSession(kSession);
}

TEST_F(StreamTest, ARestartedPeerIsAborted) {
  LoopbackTask a(environment(), 1);
  auto b = std::make_unique<LoopbackTask>(environment(), 2);
  const std::string address = b->server->address();
  const LinkId link = a.LinkTo(*b);
  WaitingSink first;
  ASSERT_TRUE(a.plane->BeginStep(kSession, 1, &first, {link}).ok());
  a.plane->Push(link, Key(1, 1), Ramp(10));
  WaitingSink received;
  ASSERT_TRUE(b->plane->BeginStep(kSession, 1, &received, {}).ok());
  ASSERT_TRUE(received.WaitForTensors(1));

  b = nullptr;
  ASSERT_TRUE(first.WaitForDown());
  EXPECT_EQ(first.downs()[0].code(), absl::StatusCode::kUnavailable);
  b = std::make_unique<LoopbackTask>(environment(), 3, GrpcKeepalive(), address);
  WaitingSink second;
  ASSERT_TRUE(a.plane->BeginStep(kSession, 2, &second, {link}).ok());
  a.plane->Push(link, Key(2, 1), Ramp(10));
  ASSERT_TRUE(second.WaitForDown());
  EXPECT_EQ(second.downs()[0].code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(second.downs()[0].message()), HasSubstr("restarted"));
}

TEST_F(StreamTest, EndsCleanlyWithAllUnderWay) {
  for (int i = 0; i < 10; ++i) {
    WaitingSink sinks[2];
    LoopbackTask a(environment(), 1);
    LoopbackTask b(environment(), 2);
    ASSERT_TRUE(a.plane->BeginStep(kSession, 1, &sinks[0], {a.LinkTo(b)}).ok());
    ASSERT_TRUE(b.plane->BeginStep(kSession, 1, &sinks[1], {b.LinkTo(a)}).ok());
    for (uint32_t j = 0; j < 20; ++j) {
      a.plane->Push(a.LinkTo(b), Key(1, j), Ramp(1 << 20));
      b.plane->Push(b.LinkTo(a), Key(1, j), Ramp(1 << 18));
    }
    EXPECT_TRUE(i % 2 == 0 || sinks[0].WaitForTensors(static_cast<size_t>(i)));
    if (i % 3 == 0) a.plane = nullptr;  // before its server
  }
}

// Another process, with a data plane that echoes and a worker that never answers.
class PeerTest : public StreamTest {
 protected:
  PeerTest() : task_(environment(), 1, Hasty()) {
    const std::string ready = JoinPath(testing::TempDir(), StrCat("port_", CurrentProcessId()));
    environment().files->Remove(ready).IgnoreError();
    ChildProcess::Options options;
    options.arguments = {JoinPath(FolderOf(ProgramPath()), "peer_program"), ready,
                         StrCat(kPeerIncarnation), task_.server->address(), "1"};
    auto started = ChildProcess::Start(options);
    EXPECT_TRUE(started.ok()) << started.status();
    child_ = *std::move(started);
    Notification never;
    while (!environment().files->Exists(ready) && child_->PollExitCode() < 0) {
      never.WaitFor(absl::Milliseconds(5));
    }
    const StatusOr<std::string> port = ReadFile(*environment().files, ready);
    EXPECT_TRUE(port.ok());
    address_ = StrCat("127.0.0.1:", *port);
    link_ = task_.plane->Link("/job:peer/task:0", address_, kPeerIncarnation);

    GrpcCallerOptions caller;
    caller.environment = environment();
    caller.keepalive = Hasty();
    worker_ = GrpcWorkerFactory(caller).Connect("/job:peer/task:0", address_);
    EXPECT_TRUE(task_.plane->BeginStep(kSession, 1, &sink_, {link_}).ok());
    task_.plane->Push(link_, Key(1, 1), Ramp(1000));
    EXPECT_TRUE(sink_.WaitForTensors(1)) << "the echo";
    worker_->RunStep(&request_, &response_, {}, [this](Status status) {
      result_ = std::move(status);
      called_.Notify();
    });
    never.WaitFor(absl::Milliseconds(100));  // so that the call is there
    start_ = Seconds();
  }

  static GrpcKeepalive Hasty() { return {absl::Milliseconds(500), absl::Milliseconds(500)}; }

  void ExpectNoticedWithin(double seconds) {
    ASSERT_TRUE(sink_.WaitForDown());
    const double link_noticed = Seconds() - start_;
    ASSERT_TRUE(called_.WaitFor(absl::Minutes(1)));
    const double call_noticed = Seconds() - start_;
    std::printf("link down after %.3f s, call ended after %.3f s\n", link_noticed, call_noticed);
    EXPECT_LT(link_noticed, seconds);
    EXPECT_LT(call_noticed, seconds);
    for (const Status& status : {sink_.downs()[0], result_}) {
      EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr("/job:peer/task:0 at " + address_));
    }
  }

  WaitingSink sink_;
  LoopbackTask task_;
  std::unique_ptr<ChildProcess> child_;
  std::string address_;
  LinkId link_ = 0;
  std::unique_ptr<WorkerInterface> worker_;
  WorkerRunStepRequest request_;
  WorkerRunStepResponse response_;
  Status result_;
  Notification called_;
  double start_ = 0;
};

TEST_F(PeerTest, KilledIsNoticedAtOnce) {
  child_->Signal(SIGKILL);
  ExpectNoticedWithin(5);  // much sooner, on an idle machine
}

TEST_F(PeerTest, StoppedIsNoticedByKeepalive) {
  child_->Signal(SIGSTOP);
  ExpectNoticedWithin(20);  // about one second, on an idle machine
}

}  // namespace
}  // namespace millrace
