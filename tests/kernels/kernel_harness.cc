#include "tests/kernels/kernel_harness.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "gtest/gtest.h"
#include "kernels/philox.h"
#include "kernels/register.h"

namespace millrace {

FakeDevice::FakeDevice(int threads) {
  info_.name = DeviceName{"localhost", 0, "CPU", 0};
  if (threads == 0) {
    class Inline final : public Scheduler {
     public:
      void Schedule(Task task) override { task(); }
      int parallelism() const override { return 1; }
    };
    pool_ = std::make_unique<Inline>();
  } else {
    ThreadPool::Options options;
    options.threads = threads;
    options.on_thread_start = UseOneLibraryThread;
    pool_ = std::make_unique<ThreadPool>(std::move(options));
  }
}

KernelHarness::KernelHarness(int threads) : device_(threads) {
  RegisterAllKernels(registry_);
  EXPECT_TRUE(registry_.status().ok()) << registry_.status();
  step_.step_id = 1;
  step_.device = &device_;
}

StatusOr<ReadyKernel> KernelHarness::Ready(absl::string_view op, AttrMap attrs,
                                           std::vector<Tensor> inputs,
                                           std::vector<OutputSpec> outputs, Options options) {
  const OpDef def{std::string(op)};
  const std::string name = "node";
  NodeSignature signature;
  for (const Tensor& t : inputs) {
    signature.inputs.push_back(t.dtype());
    signature.host_inputs.push_back(false);
  }
  for (const OutputSpec& o : outputs) {
    signature.outputs.push_back(o.dtype);
    signature.host_outputs.push_back(false);
  }
  ReadyKernel ready;
  ready.step_ = &step_;
  MR_ASSIGN_OR_RETURN(ready.kernel_, registry_.Create({name, def, attrs, signature, device_}));

  std::vector<Shape> input_shapes, output_shapes;
  std::vector<const Tensor*> host_values;
  for (Tensor& t : inputs) {
    input_shapes.push_back(t.shape());
    host_values.push_back(&t);
  }
  ready.outputs_.resize(outputs.size() + options.own_outputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    output_shapes.push_back(outputs[i].shape);
    Tensor& out = ready.outputs_[i];
    if (i == 0 && options.in_place >= 0) {
      const Tensor& from = inputs[options.in_place];
      out = Tensor::Adopt(outputs[0].dtype, outputs[0].shape, const_cast<void*>(from.raw_data()),
                          from.byte_size(), [from] {});
      continue;
    }
    MR_ASSIGN_OR_RETURN(out,
                        Tensor::Allocate(device_.allocator(), outputs[i].dtype, outputs[i].shape));
    // What a kernel does not write shows.
    if (out.byte_size() > 0) std::memset(out.mutable_raw_data(), 0xAB, out.byte_size());
  }
  MR_ASSIGN_OR_RETURN(ready.prepared_,
                      ready.kernel_->Prepare({input_shapes, output_shapes, host_values}));
  ready.inputs_ = std::move(inputs);
  return ready;
}

Status ReadyKernel::Run() {
  std::vector<Tensor*> pointers;
  for (Tensor& t : inputs_) pointers.push_back(&t);
  KernelContext context(*step_, pointers, absl::MakeSpan(outputs_), prepared_.get());
  const AsyncKernel* async = kernel_->async();
  if (async == nullptr) return kernel_->Compute(context);
  Status status = Internal("not done");
  async->ComputeAsync(context, [&](Status s) { status = std::move(s); });
  return status;
}

Tensor KernelHarness::RunOne(absl::string_view op, AttrMap attrs, std::vector<Tensor> inputs,
                             DType dtype, const Shape& shape) {
  auto results = Run(op, std::move(attrs), std::move(inputs), {{dtype, shape}});
  EXPECT_TRUE(results.ok()) << op << ": " << results.status();
  return results.ok() ? (*results)[0] : Tensor::Zeros(dtype, shape);
}

Tensor KernelHarness::RunOwn(absl::string_view op, AttrMap attrs, std::vector<Tensor> inputs) {
  Options options;
  options.own_outputs = 1;
  auto results = Run(op, std::move(attrs), std::move(inputs), {}, options);
  EXPECT_TRUE(results.ok()) << op << ": " << results.status();
  return results.ok() ? (*results)[0] : Tensor();
}

std::vector<double> RandomNumbers(int64_t n, uint64_t seed) {
  std::vector<double> numbers(n);
  const PhiloxStream stream(seed, 0, 0);
  for (int64_t i = 0; i < n; ++i) {
    const Philox::Counter words = stream.At(i);
    numbers[i] = 2 * UnitDouble(words[0], words[1]) - 1;
  }
  return numbers;
}

Tensor RandomTensor(DType dtype, const Shape& shape, uint64_t seed, double scale) {
  std::vector<double> values = RandomNumbers(shape.num_elements(), seed);
  for (double& v : values) v *= scale;
  return FromDoubles(dtype, shape, values);
}

namespace {
template <typename T>
std::vector<double> ToDoubles(const Tensor& t) {
  const auto span = t.span<T>();
  return std::vector<double>(span.begin(), span.end());
}
template <typename T>
Tensor FromDoublesAs(const Shape& shape, const std::vector<double>& values) {
  Tensor t = Tensor::Zeros(DTypeOf<T>::value, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) t.mutable_data<T>()[i] = static_cast<T>(values[i]);
  return t;
}
}  // namespace

std::vector<double> Doubles(const Tensor& t) {
  switch (t.dtype()) {
    case DType::kFloat:
      return ToDoubles<float>(t);
    case DType::kDouble:
      return ToDoubles<double>(t);
    case DType::kInt32:
      return ToDoubles<int32_t>(t);
    case DType::kInt64:
      return ToDoubles<int64_t>(t);
    case DType::kUint8:
      return ToDoubles<uint8_t>(t);
    case DType::kInt8:
      return ToDoubles<int8_t>(t);
    case DType::kInt16:
      return ToDoubles<int16_t>(t);
    case DType::kUint16:
      return ToDoubles<uint16_t>(t);
    case DType::kUint32:
      return ToDoubles<uint32_t>(t);
    case DType::kUint64:
      return ToDoubles<uint64_t>(t);
    case DType::kBool:
      return ToDoubles<bool>(t);
    default:
      ADD_FAILURE() << "no doubles from " << Name(t.dtype());
      return {};
  }
}

Tensor FromDoubles(DType dtype, const Shape& shape, const std::vector<double>& values) {
  EXPECT_EQ(static_cast<int64_t>(values.size()), shape.num_elements());
  switch (dtype) {
    case DType::kFloat:
      return FromDoublesAs<float>(shape, values);
    case DType::kDouble:
      return FromDoublesAs<double>(shape, values);
    case DType::kInt32:
      return FromDoublesAs<int32_t>(shape, values);
    case DType::kInt64:
      return FromDoublesAs<int64_t>(shape, values);
    case DType::kUint8:
      return FromDoublesAs<uint8_t>(shape, values);
    case DType::kInt8:
      return FromDoublesAs<int8_t>(shape, values);
    case DType::kInt16:
      return FromDoublesAs<int16_t>(shape, values);
    case DType::kUint16:
      return FromDoublesAs<uint16_t>(shape, values);
    case DType::kUint32:
      return FromDoublesAs<uint32_t>(shape, values);
    case DType::kUint64:
      return FromDoublesAs<uint64_t>(shape, values);
    case DType::kBool:
      return FromDoublesAs<bool>(shape, values);
    default:
      ADD_FAILURE() << "no doubles to " << Name(dtype);
      return Tensor();
  }
}

Tensor Ints(std::initializer_list<int32_t> values) {
  return Tensor::Of<int32_t>(Shape({static_cast<int64_t>(values.size())}), values);
}

void ExpectNear(const Tensor& actual, const std::vector<double>& expected, double tolerance) {
  const std::vector<double> values = Doubles(actual);
  ASSERT_EQ(values.size(), expected.size());
  double largest = 1;
  for (double e : expected) {
    if (std::isfinite(e)) largest = std::max(largest, std::abs(e));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(values[i])) << "element " << i << " is " << values[i];
    } else if (std::isinf(expected[i])) {
      EXPECT_EQ(values[i], expected[i]) << "element " << i;
    } else {
      // Not EXPECT_NEAR: a NaN must fail.
      EXPECT_TRUE(std::abs(values[i] - expected[i]) <= tolerance * largest)
          << "element " << i << " of " << actual.shape().ToString() << " is " << values[i]
          << ", not " << expected[i];
    }
    if (testing::Test::HasFailure()) return;
  }
}

void ExpectSameBits(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.dtype(), b.dtype());
  ASSERT_EQ(a.shape(), b.shape());
  if (a.byte_size() == 0) return;
  EXPECT_EQ(std::memcmp(a.raw_data(), b.raw_data(), a.byte_size()), 0);
}

}  // namespace millrace
