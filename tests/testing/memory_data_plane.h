#ifndef TESTS_TESTING_MEMORY_DATA_PLANE_H_
#define TESTS_TESTING_MEMORY_DATA_PLANE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/scheduler.h"
#include "distributed/transport.h"

namespace millrace::testing {

// Data planes of one process that hand tensors over in tasks of the scheduler. No windows, no
// frames: for tests of the control plane on real threads. Thread-safe.
class MemoryDataPlanes {
 public:
  explicit MemoryDataPlanes(Scheduler& scheduler) : scheduler_(scheduler) {}

  // The data plane of one life of the task at `address`. The planes outlive what is sent over them.
  std::unique_ptr<DataPlane> Create(const std::string& address, uint64_t incarnation);

 private:
  class Plane;
  struct Step;

  std::shared_ptr<Plane> Find(const std::string& address, uint64_t incarnation);

  Scheduler& scheduler_;
  Mutex mutex_;
  std::map<std::pair<std::string, uint64_t>, std::weak_ptr<Plane>> planes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace millrace::testing

#endif  // TESTS_TESTING_MEMORY_DATA_PLANE_H_
