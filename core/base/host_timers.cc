#include "core/base/host_timers.h"

#include <pthread.h>

#include <algorithm>

#include "core/base/checked_math.h"

namespace millrace {

HostTimers::HostTimers(const Clock& clock) : clock_(clock) {}

HostTimers::~HostTimers() { Stop(); }

void HostTimers::Start(Scheduler& scheduler) {
  thread_ = std::thread([this, &scheduler] { RunThread(scheduler); });
}

void HostTimers::Stop() {
  std::map<Key, Task> dropped;  // ends without the lock: what tasks hold may call back
  {
    MutexLock lock(mutex_);
    stopped_ = true;
    dropped.swap(waiting_);
    due_.clear();
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

Timers::Id HostTimers::After(absl::Duration delay, Task task) {
  const int64_t nanos = std::max<int64_t>(absl::ToInt64Nanoseconds(delay), 0);
  int64_t due;
  if (!CheckedAdd(clock_.NowNanos(), nanos, &due)) due = INT64_MAX;
  MutexLock lock(mutex_);
  const Id id = ++last_id_;
  if (stopped_) return id;
  const auto place = waiting_.emplace(Key(due, id), std::move(task)).first;
  due_.emplace(id, due);
  if (place == waiting_.begin()) changed_.NotifyOne();
  return id;
}

bool HostTimers::Cancel(Id id) {
  Task cancelled;  // ends without the lock
  MutexLock lock(mutex_);
  const auto found = due_.find(id);
  if (found == due_.end()) return false;
  const auto place = waiting_.find(Key(found->second, id));
  cancelled = std::move(place->second);
  waiting_.erase(place);
  due_.erase(found);
  return true;
}

void HostTimers::RunThread(Scheduler& scheduler) {
  pthread_setname_np(pthread_self(), "timers");
  while (true) {
    Task task;
    {
      MutexLock lock(mutex_);
      while (!task) {
        if (stopped_) return;
        if (waiting_.empty()) {
          changed_.Wait(mutex_);
          continue;
        }
        const auto first = waiting_.begin();
        const int64_t left = first->first.first - clock_.NowNanos();
        if (left > 0) {
          changed_.WaitFor(mutex_, absl::Nanoseconds(left));
          continue;
        }
        task = std::move(first->second);
        due_.erase(first->first.second);
        waiting_.erase(first);
      }
    }
    scheduler.Schedule(std::move(task));
  }
}

}  // namespace millrace
