#include <algorithm>
#include <atomic>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "core/base/file.h"
#include "core/base/mutex.h"
#include "core/base/thread_pool.h"
#include "gtest/gtest.h"

namespace millrace {
namespace {

ThreadPool::Options Threads(int threads) {
  ThreadPool::Options options;
  options.threads = threads;
  return options;
}

class HostEnvironmentTest : public testing::Test {
 protected:
  HostEnvironment host_{Threads(1)};
  const Environment& environment_ = host_.environment();
};

TEST_F(HostEnvironmentTest, HasAllThatComponentsNeed) {
  EXPECT_EQ(environment_.scheduler->parallelism(), 1);
  EXPECT_NE(environment_.timers, nullptr);
  EXPECT_NE(environment_.clock, nullptr);
  EXPECT_NE(environment_.entropy, nullptr);
  EXPECT_TRUE(environment_.files->Exists("/"));
}

TEST_F(HostEnvironmentTest, TheClockNeverGoesBack) {
  int64_t before = environment_.clock->NowNanos();
  for (int i = 0; i < 1000; ++i) {
    const int64_t now = environment_.clock->NowNanos();
    ASSERT_GE(now, before);
    before = now;
  }
}

TEST_F(HostEnvironmentTest, WallTimeIsAfterThisWasWritten) {
  EXPECT_GT(environment_.clock->WallMicros(), int64_t{1'700'000'000} * 1'000'000);
}

TEST_F(HostEnvironmentTest, EntropyDoesNotRepeat) {
  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(environment_.entropy->Next());
  EXPECT_EQ(seen.size(), 1000u);
}

TEST_F(HostEnvironmentTest, ATimerRunsOnceNoSoonerThanItsDelay) {
  const int64_t begin = environment_.clock->NowNanos();
  std::atomic<int> runs{0};
  Notification ran;
  const Timers::Id id = environment_.timers->After(absl::Milliseconds(10), [&] {
    EXPECT_GE(environment_.clock->NowNanos() - begin, 10'000'000);
    ++runs;
    ran.Notify();
  });
  EXPECT_NE(id, 0u);
  ran.Wait();
  EXPECT_FALSE(environment_.timers->Cancel(id)) << "it ran";
  EXPECT_EQ(runs, 1);
}

// One thread in the pool and all due before the first task ends: they run as they were handed over.
TEST_F(HostEnvironmentTest, TimersGoOffByTheirDueTime) {
  std::vector<int> order;
  Notification last;
  const auto record = [&](int value) { order.push_back(value); };
  environment_.timers->After(absl::Milliseconds(60), [&] {
    record(3);
    last.Notify();
  });
  environment_.timers->After(absl::Milliseconds(20), [&] { record(1); });
  environment_.timers->After(absl::Milliseconds(40), [&] { record(2); });
  environment_.timers->After(-absl::Seconds(1), [&] { record(0); });
  last.Wait();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
}

TEST_F(HostEnvironmentTest, ACancelledTimerDoesNotRunAndLetsGoOfItsTask) {
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = held;
  const Timers::Id id = environment_.timers->After(
      absl::Milliseconds(5), [held = std::move(held)] { ADD_FAILURE() << "it was cancelled"; });
  EXPECT_TRUE(environment_.timers->Cancel(id));
  EXPECT_TRUE(watch.expired());
  EXPECT_FALSE(environment_.timers->Cancel(id));
  EXPECT_FALSE(environment_.timers->Cancel(0));
  EXPECT_FALSE(environment_.timers->Cancel(987654));
  Notification later;
  environment_.timers->After(absl::Milliseconds(10), [&] { later.Notify(); });
  later.Wait();
}

TEST_F(HostEnvironmentTest, AnEarlierTimerOvertakesOneThatIsWaitedFor) {
  environment_.timers->After(absl::InfiniteDuration(), [] { ADD_FAILURE() << "never due"; });
  environment_.timers->After(absl::Hours(1), [] { ADD_FAILURE() << "not due yet"; });
  Notification ran;
  environment_.timers->After(absl::Milliseconds(1), [&] { ran.Notify(); });
  ran.Wait();
}

TEST(HostEnvironmentThreadsTest, EachTimerEitherRunsOrWasCancelled) {
  constexpr int kThreads = 4;
  constexpr int kEach = 500;
  std::atomic<int> ran{0};
  std::atomic<int> cancelled{0};
  HostEnvironment host(Threads(2));
  Timers& timers = *host.environment().timers;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        const Timers::Id id = timers.After(absl::Microseconds((i * 7 + t) % 50), [&] { ++ran; });
        if (i % 2 == 0 && timers.Cancel(id)) ++cancelled;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Notification all_due;
  timers.After(absl::Milliseconds(1), [&] { all_due.Notify(); });
  all_due.Wait();
  // Those before it were handed to the pool before it was; they may still run.
  while (ran + cancelled < kThreads * kEach) std::this_thread::yield();
  EXPECT_EQ(ran + cancelled, kThreads * kEach);
}

TEST(HostEnvironmentEndTest, DropsTimersThatAreNotDue) {
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = held;
  {
    HostEnvironment host(Threads(1));
    host.environment().timers->After(absl::Hours(1),
                                     [held = std::move(held)] { ADD_FAILURE() << "not due"; });
  }
  EXPECT_TRUE(watch.expired());
}

TEST(HostEnvironmentEndTest, TheLastTasksMayStillUseIt) {
  std::atomic<int> ran{0};
  {
    HostEnvironment host(Threads(2));
    const Environment& environment = host.environment();
    for (int i = 0; i < 100; ++i) {
      environment.scheduler->Schedule([&] {
        environment.timers->After(absl::Milliseconds(1), [] {});
        environment.clock->NowNanos();
        environment.entropy->Next();
        ++ran;
      });
    }
  }
  EXPECT_EQ(ran, 100);
}

}  // namespace
}  // namespace millrace
