#include <algorithm>
#include <limits>

#include "gtest/gtest.h"
#include "tests/kernels/kernel_harness.h"

namespace millrace {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(SelectTest, Broadcasts) {
  KernelHarness h;
  const Tensor c = Tensor::Of<bool>(Shape({2, 1}), {true, false});
  const Tensor x = Tensor::Of<float>(Shape({3}), {1, 2, 3});
  const Tensor y = Tensor::Of<float>(Shape(), {9});
  ExpectNear(h.RunOne("SelectV2", {{"T", DType::kFloat}}, {c, x, y}, DType::kFloat, Shape({2, 3})),
             {1, 2, 3, 9, 9, 9}, 0);
  const Tensor small = Tensor::Of<uint8_t>(Shape({3}), {1, 2, 3});
  ExpectNear(
      h.RunOne("SelectV2", {{"T", DType::kUint8}}, {c, small, small}, DType::kUint8, Shape({2, 3})),
      {1, 2, 3, 1, 2, 3}, 0);
}

TEST(SelectTest, OlderFormPicksRowsOrElements) {
  KernelHarness h;
  const Tensor x = Tensor::Of<int64_t>(Shape({2, 2}), {1, 2, 3, 4});
  const Tensor y = Tensor::Of<int64_t>(Shape({2, 2}), {5, 6, 7, 8});
  const auto run = [&](const Tensor& condition) {
    return h.RunOne("Select", {{"T", DType::kInt64}}, {condition, x, y}, DType::kInt64,
                    Shape({2, 2}));
  };
  ExpectNear(run(Tensor::Scalar(false)), {5, 6, 7, 8}, 0);
  ExpectNear(run(Tensor::Of<bool>(Shape({2}), {true, false})), {1, 2, 7, 8}, 0);
  ExpectNear(run(Tensor::Of<bool>(Shape({2, 2}), {true, false, false, true})), {1, 6, 7, 4}, 0);
  for (const Shape& shape : {Shape({1}), Shape({2, 1}), Shape({1, 2}), Shape({3}), Shape({1, 1})}) {
    EXPECT_EQ(h.Run("Select", {{"T", DType::kInt64}}, {Tensor::Zeros(DType::kBool, shape), x, y},
                    {{DType::kInt64, Shape({2, 2})}})
                  .status()
                  .code(),
              absl::StatusCode::kInvalidArgument)
        << shape.ToString();
  }
  EXPECT_EQ(
      h.Run("Select", {{"T", DType::kInt64}}, {Tensor::Scalar(true), x, Tensor::Scalar<int64_t>(1)},
            {{DType::kInt64, Shape({2, 2})}})
          .status()
          .code(),
      absl::StatusCode::kInvalidArgument);
}

TEST(SelectTest, OlderFormOfManyRows) {
  KernelHarness h;
  const int64_t rows = 3000, columns = 41;
  Tensor condition = Tensor::Zeros(DType::kBool, Shape({rows}));
  for (int64_t i = 0; i < rows; ++i) condition.mutable_data<bool>()[i] = i % 3 == 0;
  const Tensor x = RandomTensor(DType::kFloat, Shape({rows, columns}), 1);
  const Tensor y = RandomTensor(DType::kFloat, Shape({rows, columns}), 2);
  std::vector<double> expected = Doubles(y);
  for (int64_t i = 0; i < rows * columns; ++i) {
    if (i / columns % 3 == 0) expected[i] = x.data<float>()[i];
  }
  ExpectNear(
      h.RunOne("Select", {{"T", DType::kFloat}}, {condition, x, y}, DType::kFloat, x.shape()),
      expected, 0);
}

TEST(ClipTest, BoundsAreScalarsOrTensors) {
  KernelHarness h;
  const std::vector<double> x = {5, -1, 2, 3, -7, 9, 0, 4};
  const Shape shape({2, 4});
  for (const DType dtype : {DType::kFloat, DType::kDouble, DType::kInt8, DType::kInt32}) {
    SCOPED_TRACE(Name(dtype));
    const Tensor t = FromDoubles(dtype, shape, x);
    const Tensor low = FromDoubles(dtype, Shape(), {0}), high = FromDoubles(dtype, Shape(), {4});
    const Tensor lows = FromDoubles(dtype, shape, {6, -3, 0, 0, -9, 0, 0, 0});
    const Tensor highs = FromDoubles(dtype, shape, {7, 8, 1, 9, 9, 8, 8, 4});
    const auto clip = [&](const Tensor& a, const Tensor& b) {
      return h.RunOne("ClipByValue", {{"T", dtype}}, {t, a, b}, dtype, shape);
    };
    ExpectNear(clip(low, high), {4, 0, 2, 3, 0, 4, 0, 4}, 0);
    ExpectNear(clip(lows, highs), {6, -1, 1, 3, -7, 8, 0, 4}, 0);
    ExpectNear(clip(lows, high), {6, -1, 2, 3, -7, 4, 0, 4}, 0);
    ExpectNear(clip(low, highs), {5, 0, 1, 3, 0, 8, 0, 4}, 0);
    // Bounds that cross: the lower one wins.
    ExpectNear(clip(high, low), std::vector<double>(8, 4), 0);
    EXPECT_EQ(h.Run("ClipByValue", {{"T", dtype}},
                    {t, FromDoubles(dtype, Shape({4}), {1, 2, 3, 4}), high}, {{dtype, shape}})
                  .status()
                  .code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST(ClipTest, NanStaysAndIsNoBound) {
  KernelHarness h;
  for (const DType dtype : {DType::kFloat, DType::kDouble}) {
    const Tensor t = FromDoubles(dtype, Shape({4}), {kNan, kInf, -kInf, 5});
    const auto clip = [&](double low, double high) {
      return h.RunOne("ClipByValue", {{"T", dtype}},
                      {t, FromDoubles(dtype, Shape(), {low}), FromDoubles(dtype, Shape(), {high})},
                      dtype, Shape({4}));
    };
    ExpectNear(clip(0, 3), {kNan, 3, 0, 3}, 0);
    ExpectNear(clip(kNan, 3), {kNan, 3, -kInf, 3}, 0);
    ExpectNear(clip(0, kNan), {kNan, kInf, 0, 5}, 0);
  }
}

TEST(ClipTest, OutputMayBeTheInput) {
  KernelHarness h;
  KernelHarness::Options options;
  options.in_place = 0;
  const Tensor t = RandomTensor(DType::kFloat, Shape({50000}), 7);
  std::vector<double> expected = Doubles(t);
  for (double& v : expected) v = std::max(std::min(v, 0.5), -0.25);
  const auto out = h.Run("ClipByValue", {{"T", DType::kFloat}},
                         {t, Tensor::Scalar(-0.25f), Tensor::Scalar(0.5f)},
                         {{DType::kFloat, t.shape()}}, options);
  ASSERT_TRUE(out.ok()) << out.status();
  ExpectNear((*out)[0], expected, 0);
}

}  // namespace
}  // namespace millrace
