#ifndef CORE_BASE_HOST_TIMERS_H_
#define CORE_BASE_HOST_TIMERS_H_

#include <cstdint>
#include <map>
#include <thread>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "core/base/mutex.h"
#include "core/base/scheduler.h"

namespace millrace {

// Timers of the host: one thread that waits for the earliest and hands it to the scheduler.
class HostTimers final : public Timers {
 public:
  // `clock` is not owned and outlives this.
  explicit HostTimers(const Clock& clock);
  ~HostTimers() override;

  // Tasks go to `scheduler` from now on, until Stop. Called once.
  void Start(Scheduler& scheduler);
  // Ends the thread. Timers that are left, and later ones, are dropped without running.
  void Stop();

  Id After(absl::Duration delay, Task task) override;
  bool Cancel(Id id) override;

 private:
  // Timers due at one time go off in the order in which they were set.
  using Key = std::pair<int64_t, Id>;  // due, by the clock

  void RunThread(Scheduler& scheduler);

  const Clock& clock_;
  std::thread thread_;
  Mutex mutex_;
  CondVar changed_;  // another timer is the earliest, or stopped_
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  Id last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  // Ordered, so that cancelled ones leave at once: most timers are time limits that never pass.
  std::map<Key, Task> waiting_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<Id, int64_t> due_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace millrace

#endif  // CORE_BASE_HOST_TIMERS_H_
