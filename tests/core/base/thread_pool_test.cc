#include "core/base/thread_pool.h"

#include <atomic>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "gtest/gtest.h"

namespace millrace {
namespace {

ThreadPool::Options Threads(int threads) {
  ThreadPool::Options options;
  options.threads = threads;
  return options;
}

TEST(ThreadPoolTest, HasTheThreadsThatWereAskedForAndAtLeastOne) {
  EXPECT_EQ(ThreadPool(Threads(3)).parallelism(), 3);
  EXPECT_GE(ThreadPool(Threads(0)).parallelism(), 1);
}

TEST(ThreadPoolTest, RunsATaskLaterOnAThreadOfItsOwn) {
  ThreadPool pool(Threads(1));
  Notification ran;
  std::thread::id runner;
  pool.Schedule([&] {
    // Scheduled from within, it still waits for its turn.
    auto inner_ran = std::make_shared<bool>(false);
    pool.Schedule([&, inner_ran] {
      *inner_ran = true;
      ran.Notify();
    });
    EXPECT_FALSE(*inner_ran);
    runner = std::this_thread::get_id();
  });
  ran.Wait();
  EXPECT_NE(runner, std::this_thread::get_id());
}

TEST(ThreadPoolTest, RunsEachOf100000TasksFromManyThreadsOnce) {
  constexpr int kProducers = 4;
  constexpr int kEach = 25'000;
  std::vector<std::atomic<int>> runs(kProducers * kEach);
  {
    ThreadPool pool(Threads(4));
    std::vector<std::thread> producers;
    for (int p = 0; p < kProducers; ++p) {
      producers.emplace_back([&, p] {
        for (int i = 0; i < kEach; ++i) {
          pool.Schedule([&runs, index = p * kEach + i] { ++runs[index]; });
        }
      });
    }
    for (std::thread& producer : producers) producer.join();
  }
  for (const std::atomic<int>& count : runs) ASSERT_EQ(count, 1);
}

TEST(ThreadPoolTest, RunsTasksThatTasksSchedule) {
  ThreadPool pool(Threads(4));
  std::atomic<int> leaves{0};
  Notification all;
  // A binary tree of depth 14.
  struct Tree {
    static void Grow(ThreadPool& pool, int depth, std::atomic<int>& leaves, Notification& all) {
      if (depth == 0) {
        if (++leaves == 1 << 14) all.Notify();
        return;
      }
      for (int child = 0; child < 2; ++child) {
        pool.Schedule([&pool, depth, &leaves, &all] { Grow(pool, depth - 1, leaves, all); });
      }
    }
  };
  Tree::Grow(pool, 14, leaves, all);
  all.Wait();
  EXPECT_EQ(leaves, 1 << 14);
}

// Each time all threads may be asleep, about to be, or looking.
TEST(ThreadPoolTest, NeverLosesAWakeUp) {
  for (const absl::Duration spin : {absl::ZeroDuration(), absl::Microseconds(20)}) {
    for (const int threads : {1, 4}) {
      ThreadPool::Options options = Threads(threads);
      options.spin = spin;
      ThreadPool pool(options);
      for (int i = 0; i < 5000; ++i) {
        Notification ran;
        pool.Schedule([&ran] { ran.Notify(); });
        ran.Wait();
      }
    }
  }
}

TEST(ThreadPoolTest, WakesAnotherThreadForATaskThatItsSchedulerWaitsFor) {
  ThreadPool pool(Threads(2));
  for (int i = 0; i < 300; ++i) {
    Notification first_ran;
    Notification second_ran;
    pool.Schedule([&] {
      pool.Schedule([&] { second_ran.Notify(); });
      second_ran.Wait();  // real tasks must not; here it proves that the second thread came
      first_ran.Notify();
    });
    first_ran.Wait();
  }
}

// One thread spins, the other sleeps. Both tasks leave their wake-up to the spinner, which is then
// busy with the first: it must have called the sleeper.
TEST(ThreadPoolTest, ASpinnerThatFindsATaskWakesAnotherForTheNext) {
  ThreadPool::Options options = Threads(2);
  options.spin = absl::Milliseconds(1);
  ThreadPool pool(options);
  for (int i = 0; i < 50; ++i) {
    Notification().WaitFor(absl::Milliseconds(3));  // both fall asleep
    Notification one_awake;
    pool.Schedule([&] { one_awake.Notify(); });
    one_awake.Wait();
    Notification first_ran;
    Notification second_ran;
    pool.Schedule([&] {
      second_ran.Wait();
      first_ran.Notify();
    });
    pool.Schedule([&] { second_ran.Notify(); });
    first_ran.Wait();
  }
}

TEST(ThreadPoolTest, NoTaskStarvesBehindOneThatSchedulesItself) {
  ThreadPool pool(Threads(1));
  std::atomic<int> others_ran{0};
  Notification done;
  struct Again {
    ThreadPool& pool;
    std::atomic<int>& others_ran;
    Notification& done;
    void operator()() const {
      if (others_ran == 2) {
        done.Notify();
      } else {
        pool.Schedule(Again(*this));
      }
    }
  };
  pool.Schedule([&] {
    pool.Schedule([&] { ++others_ran; });  // older, in the same deque
    pool.Schedule(Again{pool, others_ran, done});
  });
  pool.Schedule([&] { ++others_ran; });  // from outside
  done.Wait();
}

TEST(ThreadPoolTest, TheDestructorRunsWhatWasScheduledAndWhatThatSchedules) {
  std::atomic<int> ran{0};
  {
    ThreadPool pool(Threads(2));
    for (int i = 0; i < 100; ++i) {
      pool.Schedule([&] {
        ++ran;
        pool.Schedule([&] {
          ++ran;
          pool.Schedule([&] { ++ran; });
        });
      });
    }
  }
  EXPECT_EQ(ran, 300);
}

TEST(ThreadPoolTest, TheDestructorRunsATaskThatFindsAllThreadsAsleep) {
  for (int i = 0; i < 100; ++i) {
    bool ran = false;
    {
      ThreadPool::Options options = Threads(2);
      options.spin = absl::ZeroDuration();
      ThreadPool pool(options);
      Notification().WaitFor(absl::Microseconds(500));
      pool.Schedule([&] { ran = true; });
    }
    ASSERT_TRUE(ran);
  }
}

TEST(ThreadPoolTest, WhatATaskHoldsEndsWithItsRun) {
  ThreadPool pool(Threads(1));
  auto held = std::make_unique<int>(5);
  const int* const address = held.get();
  std::shared_ptr<int> shared = std::make_shared<int>(6);
  const std::weak_ptr<int> watch = shared;
  Notification next;
  pool.Schedule([held = std::move(held), shared = std::move(shared), address] {
    EXPECT_EQ(held.get(), address);
  });
  pool.Schedule([&] {
    EXPECT_TRUE(watch.expired());
    next.Notify();
  });
  next.Wait();
}

TEST(ThreadPoolTest, EachThreadRunsItsStartFirst) {
  static thread_local bool started;
  Mutex mutex;
  std::set<std::thread::id> threads;
  ThreadPool::Options options = Threads(3);
  options.on_thread_start = [&] {
    started = true;
    MutexLock lock(mutex);
    threads.insert(std::this_thread::get_id());
  };
  {
    ThreadPool pool(options);
    for (int i = 0; i < 100; ++i) pool.Schedule([] { EXPECT_TRUE(started); });
  }
  EXPECT_EQ(threads.size(), 3u);
}

TEST(ThreadPoolTest, TwoPoolsDoNotMix) {
  ThreadPool first(Threads(1));
  ThreadPool second(Threads(1));
  std::thread::id first_thread;
  std::thread::id second_thread;
  Notification done;
  first.Schedule([&] {
    first_thread = std::this_thread::get_id();
    second.Schedule([&] {
      second_thread = std::this_thread::get_id();
      done.Notify();
    });
  });
  done.Wait();
  EXPECT_NE(first_thread, second_thread);
}

}  // namespace
}  // namespace millrace
