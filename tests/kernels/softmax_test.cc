#include <algorithm>
#include <cmath>

#include "gtest/gtest.h"
#include "tests/kernels/kernel_harness.h"

namespace millrace {
namespace {

std::vector<double> Softmax(const std::vector<double>& x, int64_t k, bool logarithm) {
  std::vector<double> out(x.size());
  for (size_t row = 0; row < x.size(); row += k) {
    const double largest = *std::max_element(x.begin() + row, x.begin() + row + k);
    double sum = 0;
    for (int64_t j = 0; j < k; ++j) sum += std::exp(x[row + j] - largest);
    for (int64_t j = 0; j < k; ++j) {
      const double log = x[row + j] - largest - std::log(sum);
      out[row + j] = logarithm ? log : std::exp(log);
    }
  }
  return out;
}

double Tolerance(DType dtype) { return dtype == DType::kFloat ? 2e-6 : 1e-14; }

TEST(SoftmaxTest, SoftmaxAndItsLogarithm) {
  KernelHarness h;
  for (const DType dtype : {DType::kFloat, DType::kDouble}) {
    for (const Shape& shape : {Shape({1}), Shape({3, 1}), Shape({4, 10}), Shape({2, 3, 33}),
                               Shape({2, 70000}), Shape({0, 5}), Shape({5, 0})}) {
      SCOPED_TRACE(shape.ToString());
      const Tensor x = RandomTensor(dtype, shape, 7, 30);
      const int64_t k = std::max<int64_t>(1, shape[shape.rank() - 1]);
      const AttrMap attrs = {{"T", dtype}};
      ExpectNear(h.RunOne("Softmax", attrs, {x}, dtype, shape), Softmax(Doubles(x), k, false),
                 Tolerance(dtype));
      ExpectNear(h.RunOne("LogSoftmax", attrs, {x}, dtype, shape), Softmax(Doubles(x), k, true),
                 Tolerance(dtype));
    }
  }
}

TEST(SoftmaxTest, LargeLogitsDoNotOverflow) {
  KernelHarness h;
  const Tensor x = Tensor::Of<float>(Shape({2, 3}), {1e30f, 0, -1e30f, 1000, 1001, -1000});
  ExpectNear(h.RunOne("Softmax", {{"T", DType::kFloat}}, {x}, DType::kFloat, x.shape()),
             Softmax(Doubles(x), 3, false), 1e-6);
}

TEST(SoftmaxTest, SparseCrossEntropy) {
  KernelHarness h;
  for (const DType dtype : {DType::kFloat, DType::kDouble}) {
    for (const DType label_dtype : {DType::kInt32, DType::kInt64}) {
      const int64_t n = 37, k = 10;
      const Tensor x = RandomTensor(dtype, Shape({n, k}), 8, 5);
      std::vector<double> labels(n);
      for (int64_t i = 0; i < n; ++i) labels[i] = static_cast<double>(i * 7 % k);
      const auto result =
          h.Run("SparseSoftmaxCrossEntropyWithLogits", {{"T", dtype}, {"Tlabels", label_dtype}},
                {x, FromDoubles(label_dtype, Shape({n}), labels)},
                {{dtype, Shape({n})}, {dtype, Shape({n, k})}});
      ASSERT_TRUE(result.ok()) << result.status();
      const std::vector<double> logs = Softmax(Doubles(x), k, true);
      std::vector<double> loss(n), gradient(n * k);
      for (int64_t i = 0; i < n; ++i) {
        const int64_t label = static_cast<int64_t>(labels[i]);
        loss[i] = -logs[i * k + label];
        for (int64_t j = 0; j < k; ++j) {
          gradient[i * k + j] = std::exp(logs[i * k + j]) - (j == label ? 1 : 0);
        }
      }
      ExpectNear((*result)[0], loss, Tolerance(dtype));
      ExpectNear((*result)[1], gradient, Tolerance(dtype));
    }
  }
}

TEST(SoftmaxTest, SparseCrossEntropyNamesTheWrongLabel) {
  KernelHarness h;
  const Tensor x = Tensor::Zeros(DType::kFloat, Shape({3, 4}));
  for (int32_t wrong : {4, -1}) {
    const auto result = h.Run(
        "SparseSoftmaxCrossEntropyWithLogits", {{"T", DType::kFloat}, {"Tlabels", DType::kInt32}},
        {x, Ints({0, wrong, 3})}, {{DType::kFloat, Shape({3})}, {DType::kFloat, Shape({3, 4})}});
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(result.status().message(), StrCat("label ", wrong, " of row 1 is not in [0, 4)"));
  }
}

TEST(SoftmaxTest, CrossEntropyWithDistributions) {
  KernelHarness h;
  for (const DType dtype : {DType::kFloat, DType::kDouble}) {
    const int64_t n = 20, k = 33;
    const Tensor x = RandomTensor(dtype, Shape({n, k}), 9, 4);
    const Tensor raw = RandomTensor(DType::kDouble, Shape({n, k}), 10, 3);
    const Tensor p = FromDoubles(dtype, Shape({n, k}), Softmax(Doubles(raw), k, false));
    const auto result = h.Run("SoftmaxCrossEntropyWithLogits", {{"T", dtype}}, {x, p},
                              {{dtype, Shape({n})}, {dtype, Shape({n, k})}});
    ASSERT_TRUE(result.ok()) << result.status();
    const std::vector<double> logs = Softmax(Doubles(x), k, true), target = Doubles(p);
    std::vector<double> loss(n), gradient(n * k);
    for (int64_t i = 0; i < n * k; ++i) {
      loss[i / k] -= target[i] * logs[i];
      gradient[i] = std::exp(logs[i]) - target[i];
    }
    ExpectNear((*result)[0], loss, Tolerance(dtype));
    ExpectNear((*result)[1], gradient, Tolerance(dtype));
  }
}

TEST(BiasTest, AddAndGradient) {
  KernelHarness h;
  for (const DType dtype : {DType::kFloat, DType::kDouble}) {
    for (const Shape& shape : {Shape({3, 4}), Shape({2, 5, 5, 6}), Shape({1, 1}), Shape({0, 3}),
                               Shape({3, 0}), Shape({5, 1500}), Shape({20000, 10})}) {
      SCOPED_TRACE(shape.ToString());
      const int64_t k = shape[shape.rank() - 1];
      const Tensor x = RandomTensor(dtype, shape, 1), bias = RandomTensor(dtype, Shape({k}), 2);
      std::vector<double> y = Doubles(x), sums(k);
      const std::vector<double> b = Doubles(bias);
      for (size_t i = 0; i < y.size(); ++i) {
        sums[i % k] += y[i];
        y[i] += b[i % k];
      }
      ExpectNear(h.RunOne("BiasAdd", {{"T", dtype}}, {x, bias}, dtype, shape), y, Tolerance(dtype));
      ExpectNear(h.RunOne("BiasAddGrad", {{"T", dtype}}, {x}, dtype, Shape({k})), sums,
                 dtype == DType::kFloat ? 1e-5 : 1e-13);
    }
  }
  const Tensor x = Tensor::Zeros(DType::kFloat, Shape({2, 3}));
  const Tensor wrong = Tensor::Zeros(DType::kFloat, Shape({4}));
  EXPECT_FALSE(
      h.Run("BiasAdd", {{"T", DType::kFloat}}, {x, wrong}, {{DType::kFloat, Shape({2, 3})}}).ok());
}

}  // namespace
}  // namespace millrace
