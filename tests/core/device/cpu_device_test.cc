#include "core/device/cpu_device.h"

#include "core/base/thread_pool.h"
#include "core/framework/resource.h"
#include "core/framework/tensor.h"
#include "gtest/gtest.h"

namespace millrace {
namespace {

ThreadPool::Options Threads(int threads) {
  ThreadPool::Options options;
  options.threads = threads;
  return options;
}

TEST(CpuDeviceTest, SeveralShareThePoolButNotTheirMemory) {
  ThreadPool pool(Threads(2));
  CpuDeviceOptions options;
  options.job = "worker";
  options.task = 3;
  options.count = 2;
  options.memory_limit = 1000;
  options.incarnation = 42;
  const auto devices = MakeCpuDevices(options, pool);
  ASSERT_EQ(devices.size(), 2U);
  EXPECT_EQ(devices[0]->info().name.ToString(), "/job:worker/task:3/device:CPU:0");
  EXPECT_EQ(devices[1]->info().name.ToString(), "/job:worker/task:3/device:CPU:1");
  EXPECT_TRUE(devices[1]->info().name.IsFull());
  EXPECT_EQ(devices[1]->info().incarnation, 42U);
  EXPECT_EQ(devices[1]->info().description, "2 threads");
  EXPECT_EQ(&devices[0]->pool(), &pool);
  EXPECT_EQ(&devices[1]->pool(), &pool);
  EXPECT_NE(&devices[0]->resources(), &devices[1]->resources());
  EXPECT_EQ(devices[0]->stream(), nullptr);

  const StatusOr<Tensor> fits =
      Tensor::Allocate(devices[0]->allocator(), DType::kUint8, Shape{900});
  EXPECT_EQ(fits.status().code(), absl::StatusCode::kResourceExhausted);  // rounded: 1024
  EXPECT_TRUE(Tensor::Allocate(devices[0]->allocator(), DType::kUint8, Shape{890}).ok());
  EXPECT_EQ(devices[1]->allocator().stats().peak_bytes_in_use, 0);
}

TEST(CpuDeviceTest, ResourcesAndFetchedTensorsEndInAnyOrder) {
  Tensor fetched;
  {
    ThreadPool pool(Threads(1));
    const auto devices = MakeCpuDevices({}, pool);
    Device& device = *devices[0];
    const auto variable =
        device.resources().LookupOrCreateVariable("", "w", DType::kFloat, Shape{4}).value();
    Tensor value = Tensor::Allocate(device.allocator(), DType::kFloat, Shape{4}).value();
    std::fill_n(value.mutable_data<float>(), 4, 1.0F);
    ASSERT_TRUE(variable->Assign(value).ok());
    fetched = variable->Read().value();
    EXPECT_EQ(device.info().name.ToString(), "/job:localhost/task:0/device:CPU:0");
    EXPECT_EQ(device.info().description, "1 thread");
  }
  EXPECT_EQ(fetched.span<float>()[3], 1);
}

}  // namespace
}  // namespace millrace
