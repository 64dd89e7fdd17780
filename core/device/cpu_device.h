#ifndef CORE_DEVICE_CPU_DEVICE_H_
#define CORE_DEVICE_CPU_DEVICE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/framework/device.h"

namespace millrace {

struct CpuDeviceOptions {
  std::string job = "localhost";
  int task = 0;
  int count = 1;             // several share the host's cores, each with memory and resources
  int64_t memory_limit = 0;  // bytes of each, 0: not limited
  uint64_t incarnation = 0;  // of the task
};

// The CPU devices of this process: /job:J/task:T/device:CPU:0 and on. `pool` outlives them; tensors
// of their memory may outlive both.
std::vector<std::unique_ptr<Device>> MakeCpuDevices(const CpuDeviceOptions& options,
                                                    Scheduler& pool);

}  // namespace millrace

#endif  // CORE_DEVICE_CPU_DEVICE_H_
