#include <atomic>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/thread_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;

ThreadPool::Options Threads(int threads) {
  ThreadPool::Options options;
  options.threads = threads;
  return options;
}

using Blocks = std::multiset<std::pair<int64_t, int64_t>>;

Blocks BlocksOf(Scheduler& scheduler, int64_t n, int64_t grain) {
  Mutex mutex;
  Blocks blocks;
  scheduler.ParallelFor(n, grain, [&](int64_t begin, int64_t end) {
    MutexLock lock(mutex);
    blocks.emplace(begin, end);
  });
  return blocks;
}

// Runs all in its caller, as a scheduler does that does not override it.
class PlainScheduler final : public Scheduler {
 public:
  void Schedule(Task) override {}
  int parallelism() const override { return 1; }
};

TEST(ParallelForTest, BlocksDependOnNAndGrainAlone) {
  PlainScheduler plain;
  ThreadPool one(Threads(1));
  ThreadPool two(Threads(2));
  ThreadPool eight(Threads(8));
  for (const auto& [n, grain] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 1}, {10, 3}, {12, 3}, {1000, 7}, {5, 100}, {64, 1}}) {
    Blocks expected;
    for (int64_t begin = 0; begin < n; begin += grain) {
      expected.emplace(begin, std::min(begin + grain, n));
    }
    for (Scheduler* scheduler : {static_cast<Scheduler*>(&plain), static_cast<Scheduler*>(&one),
                                 static_cast<Scheduler*>(&two), static_cast<Scheduler*>(&eight)}) {
      EXPECT_EQ(BlocksOf(*scheduler, n, grain), expected) << n << " by " << grain;
    }
  }
}

TEST(ParallelForTest, OfNothingCallsNothing) {
  ThreadPool pool(Threads(2));
  EXPECT_TRUE(BlocksOf(pool, 0, 1).empty());
  EXPECT_TRUE(BlocksOf(pool, -5, 1).empty());
}

TEST(ParallelForTest, TakesAGrainBelowOneAsOne) {
  ThreadPool pool(Threads(2));
  EXPECT_THAT(BlocksOf(pool, 2, 0), ElementsAre(std::pair(0, 1), std::pair(1, 2)));
  EXPECT_THAT(BlocksOf(pool, 2, -3), ElementsAre(std::pair(0, 1), std::pair(1, 2)));
}

TEST(ParallelForTest, HugeRangesDoNotOverflow) {
  ThreadPool pool(Threads(2));
  EXPECT_THAT(
      BlocksOf(pool, INT64_MAX, INT64_MAX - 1),
      ElementsAre(std::pair(int64_t{0}, INT64_MAX - 1), std::pair(INT64_MAX - 1, INT64_MAX)));
}

TEST(ParallelForTest, OneBlockRunsInTheCaller) {
  ThreadPool pool(Threads(4));
  pool.ParallelFor(10, 10, [caller = std::this_thread::get_id()](int64_t, int64_t) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
  });
}

TEST(ParallelForTest, ReturnsWhenAllIsDoneAndVisible) {
  ThreadPool pool(Threads(4));
  for (int round = 0; round < 200; ++round) {
    std::vector<int> plain(1000, 0);  // not atomic: the return orders
    pool.ParallelFor(plain.size(), 10, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) ++plain[i];
    });
    for (const int count : plain) ASSERT_EQ(count, 1);
  }
}

TEST(ParallelForTest, UsesOtherThreadsAndWaitsForTheBlocksTheyAreAt) {
  ThreadPool pool(Threads(2));
  const std::thread::id caller = std::this_thread::get_id();
  for (int round = 0; round < 50; ++round) {
    // Two blocks that wait for each other: one thread alone would never end.
    std::atomic<int> here{0};
    std::atomic<int> late{0};
    int written[2] = {0, 0};  // not atomic: the return orders
    pool.ParallelFor(2, 1, [&](int64_t block, int64_t) {
      ++here;
      while (here < 2) std::this_thread::yield();
      // The helper is late: so little in half of the rounds that the caller still spins.
      if (std::this_thread::get_id() != caller) {
        if (round % 2 == 0) Notification().WaitFor(absl::Milliseconds(1));
        for (int i = 0; i < 100; ++i) ++late;
      }
      written[block] = round;
    });
    ASSERT_EQ(written[0], round);
    ASSERT_EQ(written[1], round);
  }
}

TEST(ParallelForTest, Nests) {
  ThreadPool pool(Threads(3));
  std::atomic<int64_t> sum{0};
  pool.ParallelFor(20, 1, [&](int64_t outer, int64_t) {
    pool.ParallelFor(20, 3, [&](int64_t middle, int64_t middle_end) {
      pool.ParallelFor(middle_end - middle, 1, [&](int64_t, int64_t) { sum += outer; });
    });
  });
  EXPECT_EQ(sum, 20 * (19 * 20 / 2));
}

TEST(ParallelForTest, WorksFromTasksOnEveryThreadAtOnce) {
  std::atomic<int64_t> sum{0};
  {
    ThreadPool pool(Threads(2));
    for (int task = 0; task < 100; ++task) {
      pool.Schedule([&] {
        pool.ParallelFor(100, 9, [&](int64_t begin, int64_t end) { sum += end - begin; });
      });
    }
  }
  EXPECT_EQ(sum, 100 * 100);
}

TEST(ParallelForTest, WorksFromThreadsOutsideThePool) {
  ThreadPool pool(Threads(2));
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 3; ++c) {
    callers.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        pool.ParallelFor(100, 9, [&](int64_t begin, int64_t end) { sum += end - begin; });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 3 * 50 * 100);
}

TEST(ParallelForTest, DoesNotWaitForHelpersThatDoNotComeAndTheyDoNothingWhenTheyDo) {
  ThreadPool pool(Threads(2));
  Notification release;
  std::atomic<int> busy{0};
  Notification all_busy;
  for (int i = 0; i < 2; ++i) {
    pool.Schedule([&] {
      if (++busy == 2) all_busy.Notify();
      release.Wait();
    });
  }
  all_busy.Wait();
  {
    // Its end is the end of what the body uses: a helper that ran it later would touch freed
    // memory.
    auto counts = std::make_unique<std::vector<int>>(50, 0);
    pool.ParallelFor(50, 1, [&](int64_t begin, int64_t) { ++(*counts)[begin]; });
    EXPECT_EQ(*counts, std::vector<int>(50, 1));
  }
  release.Notify();
}

}  // namespace
}  // namespace millrace
