#include "core/base/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/logging.h"
#include "core/base/mutex.h"
#include "core/base/parallel_loop.h"
#include "core/base/spin.h"

namespace millrace {
namespace {

// Each so many takes, a thread prefers the oldest task over the newest: no task waits for ever
// behind one that keeps scheduling itself.
constexpr unsigned kFairTurn = 61;
// A look at the clock costs about as much as this many looks for a task.
constexpr int kLooksPerClockRead = 32;

int UsableCores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof(cores), &cores) == 0) return std::max(1, CPU_COUNT(&cores));
  return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace

// How a task is never lost. `queued_` counts the tasks in all queues and changes under the lock of
// the queue concerned. Every thread that looks for work is a spinner, a sleeper, or at a task and
// will look again. Schedule counts its task, then looks for spinners, then for sleepers. A spinner
// that gives up leaves `spinners_`, enters `sleepers_`, then reads `queued_`: by sequential
// consistency either it sees the task or Schedule sees it. A spinner that takes a task wakes
// another if tasks are left and nobody spins, since their Schedule may have relied on it.
class ThreadPool::Impl {
 public:
  explicit Impl(Options options);
  ~Impl();

  void Schedule(Task task);
  void CallHelpers(const std::shared_ptr<ParallelLoop>& loop);
  int thread_count() const { return static_cast<int>(threads_.size()); }

 private:
  struct alignas(64) Queue {
    Mutex mutex;
    std::deque<Task> tasks ABSL_GUARDED_BY(mutex);
    std::atomic<size_t> size{0};  // of `tasks`; read without the lock, as a hint
  };
  enum class End { kOldest, kNewest };

  void RunThread(int self);
  // Waits for a task; false if the pool ends.
  bool WaitForTask(int self, Task& task);
  bool Spin(int self, Task& task);
  bool Take(int self, Task& task);
  bool TakeFrom(Queue& queue, End end, Task& task);
  void WakeOneUnlessSpinning();

  // The thread's own pool and its place there.
  static thread_local Impl* current_pool;
  static thread_local int current_thread;
  static thread_local unsigned takes;

  const Options options_;
  std::vector<Queue> queues_;  // one a thread, the last is shared
  Queue& shared_;

  alignas(64) std::atomic<int64_t> queued_{0};
  alignas(64) std::atomic<int> spinners_{0};
  std::atomic<int> sleepers_{0};
  Mutex mutex_;
  CondVar wake_;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;

  std::vector<std::thread> threads_;
};

thread_local ThreadPool::Impl* ThreadPool::Impl::current_pool = nullptr;
thread_local int ThreadPool::Impl::current_thread = 0;
thread_local unsigned ThreadPool::Impl::takes = 0;

ThreadPool::Impl::Impl(Options options)
    : options_(std::move(options)),
      queues_((options_.threads > 0 ? options_.threads : UsableCores()) + 1),
      shared_(queues_.back()) {
  const int wanted = static_cast<int>(queues_.size()) - 1;
  threads_.reserve(wanted);
  for (int self = 0; self < wanted; ++self) {
    try {
      threads_.emplace_back([this, self] { RunThread(self); });
    } catch (const std::system_error& error) {
      if (threads_.empty()) throw;  // a process without threads cannot work at all
      LogWarning("the thread pool has ", self, " of ", wanted, " threads: ", error.what());
      break;
    }
  }
}

ThreadPool::Impl::~Impl() {
  {
    MutexLock lock(mutex_);
    ending_ = true;
    wake_.NotifyAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::Impl::Schedule(Task task) {
  Queue& queue = current_pool == this ? queues_[current_thread] : shared_;
  {
    MutexLock lock(queue.mutex);
    queue.tasks.push_back(std::move(task));
    queue.size.store(queue.tasks.size(), std::memory_order_relaxed);
    queued_.fetch_add(1, std::memory_order_seq_cst);
  }
  WakeOneUnlessSpinning();
}

void ThreadPool::Impl::CallHelpers(const std::shared_ptr<ParallelLoop>& loop) {
  for (int i = 0; i < 2 && loop->ClaimHelper(); ++i) {
    Schedule([this, loop] {
      CallHelpers(loop);
      loop->RunBlocks();
    });
  }
}

void ThreadPool::Impl::WakeOneUnlessSpinning() {
  if (spinners_.load(std::memory_order_seq_cst) > 0) return;
  if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
  // Whoever has entered `sleepers_` either waits now or has yet to read `queued_`.
  { MutexLock lock(mutex_); }
  wake_.NotifyOne();
}

void ThreadPool::Impl::RunThread(int self) {
  current_pool = this;
  current_thread = self;
  pthread_setname_np(pthread_self(), absl::StrCat("pool-", self).c_str());
  if (options_.on_thread_start) options_.on_thread_start();
  Task task;
  while (Take(self, task) || WaitForTask(self, task)) {
    task();
    task = nullptr;  // what it holds ends before the next begins
  }
}

bool ThreadPool::Impl::WaitForTask(int self, Task& task) {
  while (true) {
    if (Spin(self, task)) return true;
    {
      MutexLock lock(mutex_);
      sleepers_.fetch_add(1, std::memory_order_seq_cst);
      while (queued_.load(std::memory_order_seq_cst) == 0 && !ending_) wake_.Wait(mutex_);
      sleepers_.fetch_sub(1, std::memory_order_seq_cst);
      // A task that still runs elsewhere may schedule more: its own thread will run those.
      if (ending_ && queued_.load(std::memory_order_seq_cst) == 0) return false;
    }
    if (Take(self, task)) return true;
  }
}

bool ThreadPool::Impl::Spin(int self, Task& task) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + absl::ToChronoNanoseconds(options_.spin);
  spinners_.fetch_add(1, std::memory_order_seq_cst);
  bool found = false;
  do {
    for (int look = 0; look < kLooksPerClockRead && !found; ++look) {
      found = Take(self, task);
      if (!found) SpinPause();
    }
  } while (!found && Clock::now() < end);
  spinners_.fetch_sub(1, std::memory_order_seq_cst);
  if (found && queued_.load(std::memory_order_seq_cst) > 0) WakeOneUnlessSpinning();
  return found;
}

bool ThreadPool::Impl::Take(int self, Task& task) {
  if (queued_.load(std::memory_order_relaxed) == 0) return false;
  Queue& own = queues_[self];
  if (++takes % kFairTurn == 0 &&
      (TakeFrom(shared_, End::kOldest, task) || TakeFrom(own, End::kOldest, task))) {
    return true;
  }
  if (TakeFrom(own, End::kNewest, task) || TakeFrom(shared_, End::kOldest, task)) return true;
  const int threads = static_cast<int>(queues_.size()) - 1;
  for (int i = 1; i < threads; ++i) {
    if (TakeFrom(queues_[(self + i) % threads], End::kOldest, task)) return true;
  }
  return false;
}

bool ThreadPool::Impl::TakeFrom(Queue& queue, End end, Task& task) {
  if (queue.size.load(std::memory_order_relaxed) == 0) return false;
  MutexLock lock(queue.mutex);
  if (queue.tasks.empty()) return false;
  if (end == End::kOldest) {
    task = std::move(queue.tasks.front());
    queue.tasks.pop_front();
  } else {
    task = std::move(queue.tasks.back());
    queue.tasks.pop_back();
  }
  queue.size.store(queue.tasks.size(), std::memory_order_relaxed);
  queued_.fetch_sub(1, std::memory_order_seq_cst);
  return true;
}

ThreadPool::ThreadPool(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}
ThreadPool::~ThreadPool() = default;

void ThreadPool::Schedule(Task task) { impl_->Schedule(std::move(task)); }

int ThreadPool::parallelism() const { return impl_->thread_count(); }

void ThreadPool::ParallelFor(int64_t n, int64_t grain,
                             absl::FunctionRef<void(int64_t begin, int64_t end)> body) {
  grain = std::max<int64_t>(grain, 1);
  const int threads = impl_->thread_count();
  if (n <= grain || threads == 1) return Scheduler::ParallelFor(n, grain, body);
  const int64_t others = std::min<int64_t>((n - 1) / grain, threads - 1);
  const auto loop = std::make_shared<ParallelLoop>(n, grain, static_cast<int>(others), body);
  impl_->CallHelpers(loop);
  loop->RunBlocks();
  loop->WaitForAll();
}

}  // namespace millrace
