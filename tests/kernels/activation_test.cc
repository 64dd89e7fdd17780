#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "tests/kernels/kernel_harness.h"

// What elementwise_test's tables do not say of activations.
namespace millrace {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

double Tolerance(DType dtype) { return dtype == DType::kFloat ? 2e-6 : 1e-14; }

TEST(ActivationTest, GradientsAtSpecialNumbers) {
  KernelHarness h;
  for (const DType dtype : {DType::kFloat, DType::kDouble}) {
    const Shape shape({7});
    const Tensor dy = FromDoubles(dtype, shape, {2, 2, 2, 2, 2, 2, 2});
    const Tensor x = FromDoubles(dtype, shape, {kNan, kInf, -kInf, 0.0, 6, -1000, 1000});
    const auto run = [&](const char* op) {
      return h.RunOne(op, {{"T", dtype}, {"alpha", 0.25f}}, {dy, x}, dtype, shape);
    };
    ExpectNear(run("ReluGrad"), {0, 2, 0, 0, 2, 0, 2}, 0);
    ExpectNear(run("Relu6Grad"), {0, 0, 0, 0, 0, 0, 0}, 0);
    ExpectNear(run("LeakyReluGrad"), {0.5, 2, 0.5, 0.5, 2, 0.5, 2}, 0);
    ExpectNear(run("SoftplusGrad"), {kNan, 2, 0, 1, 2 / (1 + std::exp(-6.0)), 0, 2},
               Tolerance(dtype));
    ExpectNear(run("EluGrad"), {2, 2, -kInf, 2, 2, -1998, 2}, 0);
  }
}

// One element alone goes the same way as among many.
TEST(ActivationTest, SoftplusGradDoesNotDependOnTheShape) {
  KernelHarness h;
  const Tensor dy = RandomTensor(DType::kFloat, Shape({40}), 1, 3);
  const Tensor x = RandomTensor(DType::kFloat, Shape({40}), 2, 5);
  const AttrMap attrs = {{"T", DType::kFloat}};
  const Tensor whole = h.RunOne("SoftplusGrad", attrs, {dy, x}, DType::kFloat, Shape({40}));
  for (int64_t i = 0; i < 40; ++i) {
    const Tensor one = h.RunOne("SoftplusGrad", attrs, {dy.Slice(i, i + 1), x.Slice(i, i + 1)},
                                DType::kFloat, Shape({1}));
    ExpectSameBits(one, whole.Slice(i, i + 1));
  }
}

TEST(ActivationTest, LeakyReluInPlaceAndOfOtherSlopes) {
  KernelHarness h;
  for (const DType dtype : {DType::kFloat, DType::kDouble}) {
    for (const float alpha : {0.0f, 0.1f, -2.0f, 3.0f}) {
      const Tensor x = RandomTensor(dtype, Shape({70000}), 3);
      std::vector<double> expected = Doubles(x);
      for (double& v : expected) {
        if (v <= 0) v = dtype == DType::kFloat ? static_cast<float>(v) * alpha : v * alpha;
      }
      KernelHarness::Options options;
      options.in_place = 0;
      const auto out =
          h.Run("LeakyRelu", {{"T", dtype}, {"alpha", alpha}}, {x}, {{dtype, x.shape()}}, options);
      ASSERT_TRUE(out.ok()) << out.status();
      ExpectNear((*out)[0], expected, 0);
    }
  }
  const Tensor x = Tensor::Zeros(DType::kFloat, Shape({2}));
  const Tensor other = Tensor::Zeros(DType::kFloat, Shape({3}));
  EXPECT_EQ(h.Run("LeakyReluGrad", {{"T", DType::kFloat}, {"alpha", 0.2f}}, {x, other},
                  {{DType::kFloat, Shape({2})}})
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace millrace
