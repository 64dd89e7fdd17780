#include "core/base/process.h"
#include "gtest/gtest.h"
#include "tests/kernels/kernel_harness.h"

namespace millrace {
namespace {

// Heavy enough that each is cut into several tasks.
struct Case {
  const char* op;
  AttrMap attrs;
  std::vector<Tensor> inputs;
  std::vector<OutputSpec> outputs;
};

std::vector<Case> Cases() {
  const DType f = DType::kFloat;
  const AttrMap t = {{"T", f}};
  const auto random = [&](const Shape& shape, uint64_t seed) {
    return RandomTensor(f, shape, seed);
  };
  const AttrMap window = {{"T", f},
                          {"ksize", std::vector<int64_t>{1, 3, 3, 1}},
                          {"strides", std::vector<int64_t>{1, 2, 2, 1}},
                          {"padding", "SAME"}};
  const Tensor images = random(Shape({24, 28, 28, 16}), 1);
  const Tensor filter = random(Shape({5, 5, 16, 24}), 2);
  const Tensor d_out = random(Shape({24, 14, 14, 24}), 3);
  const Tensor pooled = random(Shape({24, 14, 14, 16}), 3);
  const Tensor a = random(Shape({300, 700}), 4), b = random(Shape({700, 500}), 5);
  const Tensor column = random(Shape({300, 1}), 6);
  Tensor labels = Tensor::Zeros(DType::kInt32, Shape({300}));
  return {
      {"AddV2", t, {a, column}, {{f, a.shape()}}},
      {"Exp", t, {a}, {{f, a.shape()}}},
      {"Erf", t, {a}, {{f, a.shape()}}},
      {"LeakyRelu", {{"T", f}, {"alpha", 0.2f}}, {a}, {{f, a.shape()}}},
      {"SoftplusGrad", t, {a, a}, {{f, a.shape()}}},
      {"AddN", t, {a, a, a}, {{f, a.shape()}}},
      {"Sum", t, {a, Ints({0})}, {{f, Shape({700})}}},
      {"Sum", t, {a, Ints({1})}, {{f, Shape({300})}}},
      {"Sum", t, {a, Ints({0, 1})}, {{f, Shape()}}},
      {"Mean", t, {images, Ints({0, 1, 2})}, {{f, Shape({16})}}},
      {"L2Loss", t, {a}, {{f, Shape()}}},
      {"Cumsum", t, {a, Tensor::Scalar<int32_t>(1)}, {{f, a.shape()}}},
      {"Cumsum", t, {a, Tensor::Scalar<int32_t>(0)}, {{f, a.shape()}}},
      {"ArgMin", t, {a, Tensor::Scalar<int32_t>(1)}, {{DType::kInt64, Shape({300})}}},
      {"BiasAddGrad", t, {images}, {{f, Shape({16})}}},
      {"MatMul", t, {a, b}, {{f, Shape({300, 500})}}},
      {"MatMul",
       {{"T", DType::kDouble}},
       {RandomTensor(DType::kDouble, a.shape(), 1), RandomTensor(DType::kDouble, b.shape(), 2)},
       {{DType::kDouble, Shape({300, 500})}}},
      {"BatchMatMulV2",
       {{"T", f}, {"adj_y", true}},
       {images, random(Shape({24, 1, 30, 16}), 9)},
       {{f, Shape({24, 28, 28, 30})}}},
      {"Conv2D", window, {images, filter}, {{f, d_out.shape()}}},
      {"Conv2DBackpropInput",
       window,
       {Ints({24, 28, 28, 16}), filter, d_out},
       {{f, images.shape()}}},
      {"Conv2DBackpropFilter",
       window,
       {images, Ints({5, 5, 16, 24}), d_out},
       {{f, filter.shape()}}},
      {"MaxPool", window, {images}, {{f, pooled.shape()}}},
      {"AvgPoolGrad", window, {Ints({24, 28, 28, 16}), pooled}, {{f, images.shape()}}},
      {"Softmax", t, {a}, {{f, a.shape()}}},
      {"SparseSoftmaxCrossEntropyWithLogits",
       {{"T", f}, {"Tlabels", DType::kInt32}},
       {a, labels},
       {{f, Shape({300})}, {f, a.shape()}}},
      {"Transpose", t, {a, Ints({1, 0})}, {{f, Shape({700, 300})}}},
  };
}

TEST(ThreadsTest, ResultsAreBitEqualForAnyNumberOfThreads) {
  KernelHarness alone, one(1), three(3);
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.op);
    const auto reference = alone.Run(c.op, c.attrs, c.inputs, c.outputs);
    ASSERT_TRUE(reference.ok()) << reference.status();
    for (KernelHarness* h : {&one, &three, &three}) {
      const auto result = h->Run(c.op, c.attrs, c.inputs, c.outputs);
      ASSERT_TRUE(result.ok()) << result.status();
      for (size_t i = 0; i < c.outputs.size(); ++i) ExpectSameBits((*reference)[i], (*result)[i]);
    }
  }
}

TEST(ThreadsTest, LibrariesStartNoThreadsOfTheirOwn) {
  KernelHarness h(3);
  const std::vector<Case> cases = Cases();
  const int before = ThreadCount();
  for (int repeat = 0; repeat < 2; ++repeat) {
    for (const Case& c : cases) ASSERT_TRUE(h.Run(c.op, c.attrs, c.inputs, c.outputs).ok());
    EXPECT_EQ(ThreadCount(), before);
  }
}

TEST(ThreadsTest, CheapKernelsSaySo) {
  KernelHarness h;
  const std::string name = "n";
  const NodeSignature signature;
  const auto expensive = [&](const char* op_name, AttrMap attrs) {
    const OpDef op{std::string(op_name)};
    auto kernel = h.registry().Create({name, op, attrs, signature, h.device()});
    EXPECT_TRUE(kernel.ok()) << kernel.status();
    return (*kernel)->IsExpensive();
  };
  for (const char* op :
       {"NoOp", "Identity", "IdentityN", "PreventGradient", "Shape", "Size", "Rank", "Reshape",
        "ExpandDims", "Squeeze", "BroadcastGradientArgs", "ReadVariableOp", "AssignVariableOp"}) {
    EXPECT_FALSE(expensive(op, {})) << op;
  }
  EXPECT_FALSE(expensive("Const", {{"value", Tensor::Scalar<float>(1)}}));
  EXPECT_TRUE(expensive("MatMul", {{"T", DType::kFloat}}));
  EXPECT_TRUE(expensive("Relu", {{"T", DType::kFloat}}));
}

}  // namespace
}  // namespace millrace
