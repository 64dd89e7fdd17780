#include "core/device/cuda_device.h"

namespace millrace {

StatusOr<std::vector<std::unique_ptr<Device>>> MakeCudaDevices(const CudaDeviceOptions&,
                                                               Scheduler&) {
  return Unavailable("no CUDA device: built without CUDA");
}

}  // namespace millrace
