#include "core/base/mutex.h"

#include <memory>
#include <thread>

#include "gtest/gtest.h"

namespace millrace {
namespace {

TEST(NotificationTest, WaitReturnsOnceNotified) {
  Notification ready;
  int value = 0;
  std::thread other([&] {
    value = 7;
    ready.Notify();
  });
  ready.Wait();
  EXPECT_EQ(value, 7);
  EXPECT_TRUE(ready.HasBeenNotified());
  ready.Wait();  // stays open
  other.join();
}

TEST(NotificationTest, WaitForGivesUpAfterTheTimeout) {
  Notification never;
  EXPECT_FALSE(never.WaitFor(absl::Milliseconds(5)));
  EXPECT_FALSE(never.WaitFor(absl::ZeroDuration()));
  EXPECT_FALSE(never.WaitFor(-absl::InfiniteDuration()));
  EXPECT_FALSE(never.HasBeenNotified());
  never.Notify();
  EXPECT_TRUE(never.WaitFor(absl::ZeroDuration()));
  EXPECT_TRUE(never.WaitFor(absl::InfiniteDuration()));
}

TEST(NotificationTest, AnInfiniteTimeoutWaits) {
  Notification ready;
  std::thread other([&] { ready.Notify(); });
  EXPECT_TRUE(ready.WaitFor(absl::InfiniteDuration()));
  other.join();
}

// The waiter may destroy it while Notify is still on its way out.
TEST(NotificationTest, MayBeDestroyedAsSoonAsWaitReturns) {
  for (int i = 0; i < 500; ++i) {
    auto ready = std::make_unique<Notification>();
    std::thread other([&ready = *ready] { ready.Notify(); });
    ready->Wait();
    ready.reset();
    other.join();
  }
}

TEST(CondVarTest, HandsAValueBetweenTwoThreads) {
  Mutex mutex;
  CondVar changed;
  int turn = 0;
  const auto play = [&](int mine) {
    for (int i = 0; i < 200; ++i) {
      MutexLock lock(mutex);
      while (turn % 2 != mine) changed.Wait(mutex);
      ++turn;
      changed.NotifyAll();
    }
  };
  std::thread other([&] { play(1); });
  play(0);
  other.join();
  EXPECT_EQ(turn, 400);
}

TEST(CondVarTest, WaitForTellsThatTheTimePassed) {
  Mutex mutex;
  CondVar never;
  MutexLock lock(mutex);
  while (never.WaitFor(mutex, absl::Milliseconds(1))) {
  }
  EXPECT_FALSE(never.WaitFor(mutex, -absl::Seconds(1)));
}

}  // namespace
}  // namespace millrace
