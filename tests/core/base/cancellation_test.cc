#include "core/base/cancellation.h"

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "core/base/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;

const absl::Status kReason = absl::AbortedError("worker 3 restarted");

TEST(CancellationTest, TheFirstReasonWins) {
  Cancellation cancellation;
  EXPECT_FALSE(cancellation.cancelled());
  EXPECT_EQ(cancellation.reason(), absl::OkStatus());
  EXPECT_TRUE(cancellation.Cancel(kReason));
  EXPECT_FALSE(cancellation.Cancel(absl::CancelledError("later")));
  EXPECT_TRUE(cancellation.cancelled());
  EXPECT_EQ(cancellation.reason(), kReason);
}

TEST(CancellationTest, CopiesShareOneState) {
  Cancellation cancellation;
  const Cancellation copy = cancellation;
  cancellation.Cancel(kReason);
  EXPECT_TRUE(copy.cancelled());
  EXPECT_EQ(copy.reason(), kReason);
}

TEST(CancellationTest, CallbacksRunInTheOrderOfRegistrationWithTheReason) {
  Cancellation cancellation;
  std::vector<int> ran;
  for (int i = 0; i < 3; ++i) {
    EXPECT_NE(cancellation.OnCancel([&ran, i](const absl::Status& reason) {
      EXPECT_EQ(reason, kReason);
      ran.push_back(i);
    }),
              0u);
  }
  cancellation.Cancel(kReason);
  cancellation.Cancel(kReason);
  EXPECT_THAT(ran, ElementsAre(0, 1, 2));
}

TEST(CancellationTest, ALateCallbackRunsAtOnce) {
  Cancellation cancellation;
  cancellation.Cancel(kReason);
  int runs = 0;
  EXPECT_EQ(cancellation.OnCancel([&](const absl::Status&) { ++runs; }), 0u);
  EXPECT_EQ(runs, 1);
}

TEST(CancellationTest, ARemovedCallbackNeverRuns) {
  Cancellation cancellation;
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = held;
  const Cancellation::Id id = cancellation.OnCancel(
      [held = std::move(held)](const absl::Status&) { ADD_FAILURE() << "it was removed"; });
  cancellation.Remove(id);
  EXPECT_TRUE(watch.expired()) << "what it held ends with it";
  cancellation.Remove(id);
  cancellation.Remove(0);
  cancellation.Remove(12345);
  cancellation.Cancel(kReason);
}

TEST(CancellationTest, ACallbackMayUseTheCancellationItself) {
  Cancellation cancellation;
  std::vector<int> ran;
  Cancellation::Id own = 0;
  Cancellation::Id next = 0;
  own = cancellation.OnCancel([&](const absl::Status&) {
    ran.push_back(1);
    cancellation.Remove(own);   // returns at once
    cancellation.Remove(next);  // its turn has not come: it never will
    EXPECT_FALSE(cancellation.Cancel(absl::CancelledError("again")));
    cancellation.OnCancel([&](const absl::Status&) { ran.push_back(2); });
  });
  next = cancellation.OnCancel([&](const absl::Status&) { ran.push_back(3); });
  cancellation.Cancel(kReason);
  EXPECT_THAT(ran, ElementsAre(1, 2));
}

TEST(CancellationTest, ACallbackMayDestroyTheCancellation) {
  auto cancellation = std::make_optional<Cancellation>();
  int runs = 0;
  cancellation->OnCancel([&](const absl::Status&) { cancellation.reset(); });
  cancellation->OnCancel([&](const absl::Status&) { ++runs; });
  cancellation->Cancel(kReason);
  EXPECT_EQ(runs, 1);
}

TEST(CancellationTest, RemoveWaitsForACallbackThatRunsOnAnotherThread) {
  Cancellation cancellation;
  Notification begun;
  Notification go_on;
  std::atomic<bool> ended{false};
  const Cancellation::Id id = cancellation.OnCancel([&](const absl::Status&) {
    begun.Notify();
    go_on.Wait();
    ended = true;
  });
  std::thread canceller([&] { cancellation.Cancel(kReason); });
  begun.Wait();
  std::thread remover([&] {
    cancellation.Remove(id);
    EXPECT_TRUE(ended);
  });
  go_on.Notify();
  remover.join();
  canceller.join();
}

TEST(CancellationTest, CallbacksRunExactlyOnceOrAreRemovedWhateverTheThreadsDo) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 100;
  for (int round = 0; round < kRounds; ++round) {
    Cancellation cancellation;
    std::atomic<int> first_cancels{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 10; ++i) {
          // Plain: Remove has returned before it ends, so nobody may still be writing to it.
          int runs = 0;
          const Cancellation::Id id = cancellation.OnCancel([&](const absl::Status&) { ++runs; });
          if (t == 0 && i == 5 && cancellation.Cancel(kReason)) ++first_cancels;
          if (t == 1 && i == 5 && cancellation.Cancel(kReason)) ++first_cancels;
          cancellation.Remove(id);
          EXPECT_LE(runs, 1);
          if (id == 0) {
            EXPECT_EQ(runs, 1);
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(first_cancels, 1);
  }
}

}  // namespace
}  // namespace millrace
