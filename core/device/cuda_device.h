#ifndef CORE_DEVICE_CUDA_DEVICE_H_
#define CORE_DEVICE_CUDA_DEVICE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/framework/device.h"

namespace millrace {

struct CudaDeviceOptions {
  std::string job = "localhost";
  int task = 0;
  int max_count = 0;         // 0: all that the system shows
  int64_t memory_limit = 0;  // bytes of each, 0: what the device has
  uint64_t incarnation = 0;  // of the task
};

// The CUDA devices of this process: /job:J/task:T/device:CUDA:0 and on. The index is the number
// that the CUDA runtime has for the device: a kernel makes it the thread's current one before it
// launches on stream(). All work of a device is in one stream, in whose order memory is reused: who
// reads device memory from the host, or from another stream, waits before the tensor goes.
//
// Unavailable, "no CUDA device: <reason>", where there is none, no driver, or the program was built
// without CUDA. `pool` outlives the devices.
StatusOr<std::vector<std::unique_ptr<Device>>> MakeCudaDevices(const CudaDeviceOptions& options,
                                                               Scheduler& pool);

}  // namespace millrace

#endif  // CORE_DEVICE_CUDA_DEVICE_H_
