#ifndef DISTRIBUTED_INVENTORY_H_
#define DISTRIBUTED_INVENTORY_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "distributed/task_monitor.h"

namespace millrace {

// Which tasks of a cluster answered, with their devices, and why the others did not.
struct Inventory {
  std::map<std::string, TaskLife> present;  // by task
  std::map<std::string, Status> absent;
  std::map<std::string, std::string> addresses;  // of all
};

// Finds out which tasks are there. Thread-safe.
class TaskDirectory {
 public:
  // `own`: the worker of this process, reached without a connection; may be null. Both outlive the
  // directory and its calls.
  TaskDirectory(WorkerFactory* factory, WorkerInterface* own, std::string build_version);

  // Asks all tasks (name, address) at once, for so long at most: one whose connection is refused
  // may be about to start. `own_task`: the name of the one that is in this process.
  void Gather(std::vector<std::pair<std::string, std::string>> tasks, const std::string& own_task,
              absl::Duration bound, absl::AnyInvocable<void(Inventory)> done);

 private:
  // One connection an address, for as long as something uses it.
  std::shared_ptr<WorkerInterface> Connect(const std::string& task, const std::string& address);

  WorkerFactory* const factory_;
  const std::shared_ptr<WorkerInterface> own_;
  const std::string build_version_;
  Mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::weak_ptr<WorkerInterface>> connections_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace millrace

#endif  // DISTRIBUTED_INVENTORY_H_
