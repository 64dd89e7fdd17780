#include "core/device/cpu_device.h"

#include "core/device/pooled_allocator.h"
#include "core/framework/resource.h"

namespace millrace {
namespace {

class CpuDevice final : public Device {
 public:
  CpuDevice(DeviceInfo info, Scheduler& pool)
      : info_(std::move(info)),
        pool_(pool),
        allocator_(PooledAllocator::Create(info_.memory_limit, NewHostMemorySource())) {}

  const DeviceInfo& info() const override { return info_; }
  Allocator& allocator() override { return *allocator_; }
  ResourceStore& resources() override { return resources_; }
  Scheduler& pool() override { return pool_; }

 private:
  const DeviceInfo info_;
  Scheduler& pool_;
  const PooledAllocator::Ptr allocator_;
  ResourceStore resources_;  // last, so that what it holds goes before the memory that it is in
};

}  // namespace

std::vector<std::unique_ptr<Device>> MakeCpuDevices(const CpuDeviceOptions& options,
                                                    Scheduler& pool) {
  std::vector<std::unique_ptr<Device>> devices;
  for (int i = 0; i < options.count; ++i) {
    DeviceInfo info;
    info.name.job = options.job;
    info.name.task = options.task;
    info.name.type = "CPU";
    info.name.index = i;
    info.memory_limit = options.memory_limit;
    info.incarnation = options.incarnation;
    info.description = StrCat(pool.parallelism(), pool.parallelism() == 1 ? " thread" : " threads");
    devices.push_back(std::make_unique<CpuDevice>(std::move(info), pool));
  }
  return devices;
}

}  // namespace millrace
