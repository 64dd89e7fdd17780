#include "core/device/cuda_device.h"

#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "core/base/thread_pool.h"
#include "core/framework/resource.h"
#include "core/framework/tensor.h"
#include "gtest/gtest.h"

namespace millrace {
namespace {

// Passes with a device by what it does, and without one by the status that says why.
class CudaDeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    CudaDeviceOptions options;
    options.job = "worker";
    options.task = 2;
    options.max_count = 1;
    options.memory_limit = int64_t{64} << 20;
    auto devices = MakeCudaDevices(options, pool_);
    if (devices.ok()) {
      devices_ = *std::move(devices);
      return;
    }
    EXPECT_EQ(devices.status().code(), absl::StatusCode::kUnavailable);
    EXPECT_TRUE(absl::StartsWith(devices.status().message(), "no CUDA device: "));
    GTEST_SKIP() << devices.status();
  }

  HostEnvironment host_;
  Scheduler& pool_ = *host_.environment().scheduler;
  std::vector<std::unique_ptr<Device>> devices_;
};

TEST_F(CudaDeviceTest, IsDescribed) {
  ASSERT_EQ(devices_.size(), 1U);
  const DeviceInfo& info = devices_[0]->info();
  EXPECT_EQ(info.name.ToString(), "/job:worker/task:2/device:CUDA:0");
  EXPECT_EQ(info.memory_limit, int64_t{64} << 20);
  EXPECT_FALSE(info.description.empty());
  EXPECT_NE(devices_[0]->stream(), nullptr);
  std::cout << info.description << "\n";
}

TEST_F(CudaDeviceTest, MemoryIsLimitedAndReused) {
  Allocator& allocator = devices_[0]->allocator();
  EXPECT_FALSE(allocator.IsHostMemory());
  void* block = allocator.Allocate(1 << 20);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % Allocator::kAlignment, 0U);
  allocator.Deallocate(block, 1 << 20);
  EXPECT_EQ(allocator.Allocate(1 << 20), block);
  EXPECT_EQ(allocator.stats().bytes_in_use, 1 << 20);
  allocator.Deallocate(block, 1 << 20);
  EXPECT_EQ(allocator.Allocate(size_t{65} << 20), nullptr);
}

TEST_F(CudaDeviceTest, TensorsAndVariablesNeverTouchItFromTheHost) {
  Tensor kept;
  {
    Device& device = *devices_[0];
    kept = Tensor::Allocate(device.allocator(), DType::kFloat, Shape{100}).value();
    EXPECT_EQ(kept.ToString(), "float[100]");
    EXPECT_TRUE(kept.Copy(device.allocator()).ok());
    const auto variable =
        device.resources().LookupOrCreateVariable("", "w", DType::kFloat, Shape{100}).value();
    ASSERT_TRUE(variable->Assign(kept).ok());
    const Status status = variable->Update(device.allocator(), 1, [&](Tensor& value) {
      EXPECT_FALSE(value.SharesBufferWith(kept));
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status;
  }
  devices_.clear();
  kept = Tensor();  // outlives its device
}

}  // namespace
}  // namespace millrace
