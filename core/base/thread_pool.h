#ifndef CORE_BASE_THREAD_POOL_H_
#define CORE_BASE_THREAD_POOL_H_

#include <functional>
#include <memory>

#include "core/base/scheduler.h"

namespace millrace {

// A work-stealing pool: a deque a thread, newest first by its owner, oldest first by thieves; tasks
// from outside go to a shared queue. Idle threads spin for a short while before they block.
// The destructor runs what was scheduled, then joins.
class ThreadPool final : public Scheduler {
 public:
  struct Options {
    int threads = 0;  // 0: one for each core that the process may use
    absl::Duration spin = absl::Microseconds(20);
    // Runs first on each thread of the pool, e.g. to set a library's thread count.
    std::function<void()> on_thread_start;
  };
  explicit ThreadPool(Options options);
  ~ThreadPool() override;

  void Schedule(Task task) override;
  int parallelism() const override;
  void ParallelFor(int64_t n, int64_t grain,
                   absl::FunctionRef<void(int64_t begin, int64_t end)> body) override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// The host's pool, timers (one thread), clocks, entropy and files. The destructor drops the timers
// that are not due, then runs what was scheduled; those tasks may still use all of it.
class HostEnvironment {
 public:
  explicit HostEnvironment(ThreadPool::Options options = {});
  ~HostEnvironment();
  const Environment& environment() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace millrace

#endif  // CORE_BASE_THREAD_POOL_H_
