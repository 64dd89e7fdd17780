#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "kernels/half.h"
#include "tests/kernels/kernel_harness.h"

namespace millrace {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(CastTest, Casts) {
  KernelHarness h;
  const std::vector<DType> dtypes = {DType::kFloat,  DType::kDouble, DType::kInt8,  DType::kInt16,
                                     DType::kInt32,  DType::kInt64,  DType::kUint8, DType::kUint16,
                                     DType::kUint32, DType::kUint64};
  for (DType from : dtypes) {
    for (DType to : dtypes) {
      const Tensor x = FromDoubles(from, Shape({4}), {0, 1, 5, 100});
      ExpectNear(h.RunOne("Cast", {{"SrcT", from}, {"DstT", to}}, {x}, to, Shape({4})),
                 {0, 1, 5, 100}, 0);
    }
    const Tensor x = FromDoubles(from, Shape({3}), {0, 1, 7});
    ExpectNear(
        h.RunOne("Cast", {{"SrcT", from}, {"DstT", DType::kBool}}, {x}, DType::kBool, Shape({3})),
        {0, 1, 1}, 0);
    const Tensor b = Tensor::Of<bool>(Shape({2}), {false, true});
    ExpectNear(h.RunOne("Cast", {{"SrcT", DType::kBool}, {"DstT", from}}, {b}, from, Shape({2})),
               {0, 1}, 0);
  }
  // By way of the 16-bit formats, which hold these numbers.
  for (DType from : dtypes) {
    for (DType half : {DType::kHalf, DType::kBfloat16}) {
      const Tensor x = FromDoubles(from, Shape({4}), {0, 1, 5, 100});
      const Tensor narrow =
          h.RunOne("Cast", {{"SrcT", from}, {"DstT", half}}, {x}, half, Shape({4}));
      ExpectNear(h.RunOne("Cast", {{"SrcT", half}, {"DstT", from}}, {narrow}, from, Shape({4})),
                 {0, 1, 5, 100}, 0);
      ExpectNear(h.RunOne("Cast", {{"SrcT", half}, {"DstT", DType::kBool}}, {narrow}, DType::kBool,
                          Shape({4})),
                 {0, 1, 1, 1}, 0);
    }
  }
  const Tensor wild = FromDoubles(DType::kFloat, Shape({5}), {1e20, -1e20, kNan, 2.9, -2.9});
  ExpectNear(h.RunOne("Cast", {{"SrcT", DType::kFloat}, {"DstT", DType::kInt32}}, {wild},
                      DType::kInt32, Shape({5})),
             {2147483647, -2147483648.0, 0, 2, -2}, 0);
  ExpectNear(h.RunOne("Cast", {{"SrcT", DType::kFloat}, {"DstT", DType::kUint8}}, {wild},
                      DType::kUint8, Shape({5})),
             {255, 0, 0, 2, 0}, 0);
  const auto refused = h.Run("Cast", {{"SrcT", DType::kString}, {"DstT", DType::kFloat}}, {wild},
                             {{DType::kFloat, {5}}});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnimplemented);
}

TEST(CastTest, HalfFormatsRoundToNearestEven) {
  // All halves survive the way to float and back.
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float x = HalfToFloat(static_cast<uint16_t>(bits));
    if (std::isnan(x)) {
      EXPECT_TRUE(std::isnan(HalfToFloat(FloatToHalf(x))));
    } else {
      ASSERT_EQ(FloatToHalf(x), bits);
    }
    const float y = Bfloat16ToFloat(static_cast<uint16_t>(bits));
    if (!std::isnan(y)) {
      ASSERT_EQ(FloatToBfloat16(y), bits);
    }
  }
  EXPECT_EQ(FloatToHalf(1.0f), 0x3c00);
  EXPECT_EQ(FloatToHalf(65504.0f), 0x7bff);
  EXPECT_EQ(FloatToHalf(65519.0f), 0x7bff);
  EXPECT_EQ(FloatToHalf(65520.0f), 0x7c00);
  EXPECT_EQ(FloatToHalf(1.0f + 0x1p-11f), 0x3c00);         // a tie, to even
  EXPECT_EQ(FloatToHalf(1.0f + 3 * 0x1p-11f), 0x3c02);     // a tie, to even
  EXPECT_EQ(FloatToHalf(0x1p-24f), 1);                     // the smallest subnormal
  EXPECT_EQ(FloatToHalf(0x1p-25f), 0);                     // a tie, to even
  EXPECT_EQ(FloatToHalf(0x1.8p-24f), 2);                   // a tie, to even
  EXPECT_EQ(FloatToBfloat16(1.0f + 0x1p-8f), 0x3f80);      // a tie, to even
  EXPECT_EQ(FloatToBfloat16(1.0f + 3 * 0x1p-8f), 0x3f82);  // a tie, to even
}

// Among integers, the low bits stay; NaN is not false.
TEST(CastTest, IntegersWrapAndNanIsTrue) {
  KernelHarness h;
  const auto cast = [&](const Tensor& x, DType to) {
    return h.RunOne("Cast", {{"SrcT", x.dtype()}, {"DstT", to}}, {x}, to, x.shape());
  };
  const Tensor wide = FromDoubles(DType::kInt64, Shape({4}), {300, -129, 1099511627776.0, -1});
  ExpectNear(cast(wide, DType::kInt8), {44, 127, 0, -1}, 0);
  ExpectNear(cast(wide, DType::kUint32), {300, 4294967167.0, 0, 4294967295.0}, 0);
  const Tensor x = FromDoubles(DType::kFloat, Shape({4}), {kNan, -0.0, 1e-40, kInf});
  ExpectNear(cast(x, DType::kBool), {1, 0, 1, 1}, 0);
}

// By way of the 16-bit formats and back: rounded to nearest, or towards zero if asked. What the
// target only has as a subnormal is rounded to nearest anyway, and so are doubles to bfloat16, as
// in the public op.
TEST(CastTest, TruncateRoundsTowardsZero) {
  KernelHarness h;
  const std::vector<double> given = {1.0009765, 3.14159274, -3.14159274, 1e-7, 70000, kNan, kInf};
  const struct {
    DType from, to;
    bool truncate;
    std::vector<double> expected;
  } cases[] = {
      {DType::kFloat,
       DType::kHalf,
       false,
       {1.0009765625, 3.140625, -3.140625, 0x1p-23, kInf, kNan, kInf}},
      {DType::kFloat, DType::kHalf, true, {1, 3.140625, -3.140625, 0x1p-23, kInf, kNan, kInf}},
      {DType::kDouble, DType::kHalf, true, {1, 3.140625, -3.140625, 0x1p-23, kInf, kNan, kInf}},
      {DType::kFloat,
       DType::kBfloat16,
       false,
       {1, 3.140625, -3.140625, 1.00117177e-07, 70144, kNan, kInf}},
      {DType::kFloat,
       DType::kBfloat16,
       true,
       {1, 3.140625, -3.140625, 9.96515155e-08, 69632, kNan, kInf}},
      {DType::kDouble,
       DType::kBfloat16,
       true,
       {1, 3.140625, -3.140625, 1.00117177e-07, 70144, kNan, kInf}},
      {DType::kDouble,
       DType::kFloat,
       true,
       {std::nextafter(1.0009765f, 0.0f), 3.1415925f, -3.1415925f, std::nextafter(1e-7f, 0.0f),
        70000, kNan, kInf}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(testing::Message() << Name(c.from) << " to " << Name(c.to) << " " << c.truncate);
    const Tensor x = FromDoubles(c.from, Shape({7}), given);
    Tensor y = h.RunOne("Cast", {{"SrcT", c.from}, {"DstT", c.to}, {"Truncate", c.truncate}}, {x},
                        c.to, x.shape());
    if (c.to != DType::kFloat) {
      y = h.RunOne("Cast", {{"SrcT", c.to}, {"DstT", DType::kFloat}}, {y}, DType::kFloat,
                   x.shape());
    }
    const std::vector<double> out = Doubles(y);
    for (size_t i = 0; i < out.size(); ++i) {
      if (std::isnan(c.expected[i])) {
        EXPECT_TRUE(std::isnan(out[i]));
      } else {
        EXPECT_FLOAT_EQ(static_cast<float>(out[i]), static_cast<float>(c.expected[i])) << i;
      }
    }
  }
}

}  // namespace
}  // namespace millrace
