#ifndef TESTS_KERNELS_KERNEL_HARNESS_H_
#define TESTS_KERNELS_KERNEL_HARNESS_H_

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/framework/kernel.h"
#include "core/framework/resource.h"

namespace millrace {

// A device with nothing behind it: host memory, and a pool of `threads` threads (0: the caller
// does all itself).
class FakeDevice final : public Device {
 public:
  explicit FakeDevice(int threads = 0);
  const DeviceInfo& info() const override { return info_; }
  Allocator& allocator() override { return HostAllocator(); }
  ResourceStore& resources() override { return resources_; }
  Scheduler& pool() override { return *pool_; }

 private:
  DeviceInfo info_;
  ResourceStore resources_;
  std::unique_ptr<Scheduler> pool_;
};

struct OutputSpec {
  DType dtype;
  Shape shape;
};

// A kernel that is made, prepared and given its outputs; to be run many times, as a step's is.
class ReadyKernel {
 public:
  Status Run();
  std::vector<Tensor>& outputs() { return outputs_; }

 private:
  friend class KernelHarness;
  const StepContext* step_ = nullptr;
  std::unique_ptr<Kernel> kernel_;
  std::unique_ptr<PreparedShapes> prepared_;
  std::vector<Tensor> inputs_;
  std::vector<Tensor> outputs_;
};

// Runs single kernels of the CPU, as the executor would: made from attributes, prepared for the
// shapes, with outputs allocated.
class KernelHarness {
 public:
  explicit KernelHarness(int threads = 0);

  // `outputs` in the order of the op; empty for ops that allocate their own (then give their
  // number in own_outputs). `in_place` >= 0 lets output 0 have the buffer of that input.
  struct Options {
    int own_outputs = 0;
    int in_place = -1;
  };
  StatusOr<ReadyKernel> Ready(absl::string_view op, AttrMap attrs, std::vector<Tensor> inputs,
                              std::vector<OutputSpec> outputs, Options options);
  StatusOr<std::vector<Tensor>> Run(absl::string_view op, AttrMap attrs, std::vector<Tensor> inputs,
                                    std::vector<OutputSpec> outputs, Options options) {
    MR_ASSIGN_OR_RETURN(ReadyKernel ready, Ready(op, std::move(attrs), std::move(inputs),
                                                 std::move(outputs), options));
    MR_RETURN_IF_ERROR(ready.Run());
    return std::move(ready.outputs());
  }
  StatusOr<std::vector<Tensor>> Run(absl::string_view op, AttrMap attrs, std::vector<Tensor> inputs,
                                    std::vector<OutputSpec> outputs) {
    return Run(op, std::move(attrs), std::move(inputs), std::move(outputs), Options());
  }
  // The only output; a failed expectation and an empty tensor if it fails.
  Tensor RunOne(absl::string_view op, AttrMap attrs, std::vector<Tensor> inputs, DType dtype,
                const Shape& shape);
  // Of an op that allocates its one output.
  Tensor RunOwn(absl::string_view op, AttrMap attrs, std::vector<Tensor> inputs);

  FakeDevice& device() { return device_; }
  StepContext& step() { return step_; }
  const KernelRegistry& registry() const { return registry_; }

 private:
  KernelRegistry registry_;
  FakeDevice device_;
  StepContext step_;
};

// Numbers in [-1, 1), the same for the same seed.
std::vector<double> RandomNumbers(int64_t n, uint64_t seed);
// As a tensor of dtype kFloat or kDouble, scaled.
Tensor RandomTensor(DType dtype, const Shape& shape, uint64_t seed, double scale = 1);
// The elements as doubles; of any numeric dtype or bool.
std::vector<double> Doubles(const Tensor& tensor);
Tensor FromDoubles(DType dtype, const Shape& shape, const std::vector<double>& values);
Tensor Ints(std::initializer_list<int32_t> values);

// Expects every element within `tolerance` of the largest magnitude of `expected` (at least 1).
void ExpectNear(const Tensor& actual, const std::vector<double>& expected, double tolerance);
// Expects equal dtypes, shapes and bytes.
void ExpectSameBits(const Tensor& a, const Tensor& b);

}  // namespace millrace

#endif  // TESTS_KERNELS_KERNEL_HARNESS_H_
