#ifndef CORE_FRAMEWORK_DEVICE_H_
#define CORE_FRAMEWORK_DEVICE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/scheduler.h"
#include "core/base/status.h"
#include "core/framework/allocator.h"

namespace millrace {

class ResourceStore;  // resource.h

// A full or partial device string: "/job:worker/replica:0/task:1/device:CPU:0", "/job:ps",
// "/cpu:0", "/device:GPU:*", "" (anything); "*" leaves a part open. The replica is read, must be 0,
// and is not kept.
struct DeviceName {
  std::optional<std::string> job;
  std::optional<int> task;
  std::optional<std::string> type;  // upper case: "CPU", "CUDA" ("GPU" is read as "CUDA")
  std::optional<int> index;

  static StatusOr<DeviceName> Parse(absl::string_view text);
  // The parts that are set: "/job:ps/task:0/device:CPU:0", with "*" for an index left open.
  std::string ToString() const;
  // "/job:ps/task:0"
  std::string TaskString() const;
  bool IsFull() const { return job && task && type && index; }
  // Whether every part that `pattern` sets is equal here.
  bool Matches(const DeviceName& pattern) const;
  // This one's parts, and `other`'s where this one has none. An index goes with its type: that of
  // a default of another type is not taken.
  DeviceName WithDefaults(const DeviceName& other) const;
  // What both say; InvalidArgument, naming both, if they contradict each other.
  StatusOr<DeviceName> Combine(const DeviceName& other) const;
  friend bool operator==(const DeviceName& a, const DeviceName& b) {
    return a.job == b.job && a.task == b.task && a.type == b.type && a.index == b.index;
  }
};

// What the planner knows of a device, here or in another task.
struct DeviceInfo {
  DeviceName name;           // full
  int64_t memory_limit = 0;  // bytes, 0: not limited
  uint64_t incarnation = 0;  // of its task: changes at each start
  std::string description;   // "2 threads", "NVIDIA H100"
};

// A device of this process. Thread-safe.
class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;
  virtual Allocator& allocator() = 0;
  virtual ResourceStore& resources() = 0;
  // The host's one pool, for work inside a kernel.
  virtual Scheduler& pool() = 0;
  // The device's queue (a cudaStream_t); null on the CPU.
  virtual void* stream() { return nullptr; }
};

}  // namespace millrace

#endif  // CORE_FRAMEWORK_DEVICE_H_
