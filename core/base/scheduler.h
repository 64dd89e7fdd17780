#ifndef CORE_BASE_SCHEDULER_H_
#define CORE_BASE_SCHEDULER_H_

#include <cstdint>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/time/time.h"

// How code under core/base is given time, threads and chance. Nothing else in the system names a
// thread, sleeps or reads a clock, so that the same master, worker and executor run on a real pool
// or on one seeded, single-threaded scheduler (simulation.h).
namespace millrace {

using Task = absl::AnyInvocable<void()>;

// Runs closures. Thread-safe. Tasks must not block, except through ParallelFor.
class Scheduler {
 public:
  virtual ~Scheduler() = default;

  // Runs `task` later, never inside this call.
  virtual void Schedule(Task task) = 0;

  // How many tasks can run at once (at least 1).
  virtual int parallelism() const = 0;

  // Calls `body(begin, end)` for the blocks [0,grain), [grain,2*grain)... of [0,n), perhaps on
  // several threads at once, and returns when all are done. The blocks depend on n and grain alone,
  // never on the number of threads: results stay bit-equal. The caller works too, so nesting
  // cannot deadlock. The default runs all blocks in the caller.
  virtual void ParallelFor(int64_t n, int64_t grain,
                           absl::FunctionRef<void(int64_t begin, int64_t end)> body);
};

class Clock {
 public:
  virtual ~Clock() = default;
  // Monotonic; only differences mean something.
  virtual int64_t NowNanos() const = 0;
  // Since the Unix epoch; for names of files, logs and traces.
  virtual int64_t WallMicros() const = 0;
};

// One-shot timers. Thread-safe.
class Timers {
 public:
  using Id = uint64_t;  // never 0
  virtual ~Timers() = default;
  // Runs `task` once, through the scheduler, no sooner than `delay` from now.
  virtual Id After(absl::Duration delay, Task task) = 0;
  // True if the task will not run; false if it ran, runs, or the id is unknown. Never waits.
  virtual bool Cancel(Id id) = 0;
};

// Random bits for incarnations, session handles and seeds; never for model data. Thread-safe.
class Entropy {
 public:
  virtual ~Entropy() = default;
  virtual uint64_t Next() = 0;
};

class FileSystem;  // file.h

// What a component is given of the outside world. Pointers are not owned and outlive it.
struct Environment {
  Scheduler* scheduler = nullptr;
  Timers* timers = nullptr;
  Clock* clock = nullptr;
  Entropy* entropy = nullptr;
  FileSystem* files = nullptr;
};

}  // namespace millrace

#endif  // CORE_BASE_SCHEDULER_H_
