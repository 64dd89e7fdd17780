#ifndef TESTS_TESTING_FAKE_DEVICE_H_
#define TESTS_TESTING_FAKE_DEVICE_H_

#include <memory>

#include "core/framework/device.h"
#include "core/framework/resource.h"

namespace millrace::testing {

// A device of a test: any name and type, its own resources and allocator, work on the pool it is
// given. Thread-safe.
class FakeDevice final : public Device {
 public:
  // REQUIRES: a full device name. `memory_limit` in bytes, 0 for none.
  FakeDevice(absl::string_view name, Scheduler& pool, int64_t memory_limit = 0);
  ~FakeDevice() override;

  const DeviceInfo& info() const override { return info_; }
  Allocator& allocator() override;
  ResourceStore& resources() override { return resources_; }
  Scheduler& pool() override { return pool_; }

  // Bytes of its tensors that are alive, and tensors made so far.
  int64_t bytes_in_use() const;
  int64_t allocations() const;

 private:
  class CountingAllocator;
  DeviceInfo info_;
  Scheduler& pool_;
  std::unique_ptr<CountingAllocator> allocator_;
  ResourceStore resources_;  // before the allocator goes, the tensors in it
};

}  // namespace millrace::testing

#endif  // TESTS_TESTING_FAKE_DEVICE_H_
