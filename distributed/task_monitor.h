#ifndef DISTRIBUTED_TASK_MONITOR_H_
#define DISTRIBUTED_TASK_MONITOR_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "core/base/cancellation.h"
#include "core/base/mutex.h"
#include "core/base/scheduler.h"
#include "core/framework/device.h"
#include "distributed/worker_interface.h"

namespace millrace {

// One life of a task: from its start to its end.
struct TaskLife {
  std::string task;     // "/job:ps/task:0"
  std::string address;  // "host:port"
  uint64_t incarnation = 0;
  std::shared_ptr<WorkerInterface> worker;
  std::vector<DeviceInfo> devices;  // named as in the session's cluster
};

// A session's interest in one task. The task's worker hears of the session in each heartbeat for as
// long as this lives.
class TaskWatch {
 public:
  virtual ~TaskWatch() = default;
  virtual const TaskLife& life() const = 0;
  // Is cancelled, with the reason, when the task falls silent or turns out to have been restarted.
  // A new one every time it comes back.
  virtual Cancellation down() const = 0;
};

struct TaskMonitorOptions {
  absl::Duration period = absl::Seconds(1);
  // No answer for so long: the task counts as dead.
  absl::Duration silence = absl::Seconds(4);
};

// Sends heartbeats to all tasks that sessions of a master use, one at a time to each. Made by
// std::make_shared. Thread-safe.
class TaskMonitor : public std::enable_shared_from_this<TaskMonitor> {
 public:
  TaskMonitor(Environment environment, TaskMonitorOptions options)
      : environment_(environment), options_(options) {}

  // `ended_below` is asked before each heartbeat: steps of the session below it are over. It may
  // be called once more after the watch has ended.
  std::shared_ptr<TaskWatch> Watch(const TaskLife& life, uint64_t session,
                                   std::function<uint64_t()> ended_below);

  int num_watched() const;

 private:
  class WatchImpl;
  using Key = std::pair<std::string, uint64_t>;  // address, incarnation
  struct Entry {
    TaskLife life;
    std::multimap<uint64_t, std::function<uint64_t()>> sessions;
    Cancellation down;
    int64_t last_answer_nanos = 0;
    uint64_t number = 0;  // of the entry: what was sent for an earlier one does not count
    Timers::Id timer = 0;
  };

  void Forget(const Key& key, uint64_t session);
  Cancellation Down(const Key& key) const;
  void Beat(const Key& key, uint64_t number);
  void OnAnswer(const Key& key, uint64_t number, const Status& status);
  void BeatAfter(const Key& key, Entry& entry, absl::Duration delay)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Entry* Find(const Key& key, uint64_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Environment environment_;
  const TaskMonitorOptions options_;
  mutable Mutex mutex_;
  std::map<Key, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_number_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace millrace

#endif  // DISTRIBUTED_TASK_MONITOR_H_
