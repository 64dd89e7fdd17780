#include "gtest/gtest.h"
#include "tests/kernels/kernel_harness.h"

namespace millrace {
namespace {

// [outer, extent, inner] along the middle.
std::vector<double> Scanned(const std::vector<double>& x, const Shape& shape, bool product,
                            bool exclusive, bool reverse) {
  const int64_t extent = shape[1], inner = shape[2];
  std::vector<double> out(x.size());
  for (int64_t o = 0; o < shape[0]; ++o) {
    for (int64_t j = 0; j < inner; ++j) {
      double sum = product ? 1 : 0;
      for (int64_t k = 0; k < extent; ++k) {
        const int64_t at = (o * extent + (reverse ? extent - 1 - k : k)) * inner + j;
        const double next = product ? sum * x[at] : sum + x[at];
        out[at] = exclusive ? sum : next;
        sum = next;
      }
    }
  }
  return out;
}

TEST(ScanTest, AllShapesAndDirections) {
  KernelHarness h;
  for (const Shape& shape :
       {Shape({1, 1, 1}), Shape({2, 7, 1}), Shape({3, 5, 4}), Shape({1, 9, 70}),
        Shape({2, 3, 5000}), Shape({300, 40, 1}), Shape({2, 3, 2049}), Shape({0, 3, 2}),
        Shape({2, 0, 3}), Shape({2, 3, 0})}) {
    for (const DType dtype : {DType::kFloat, DType::kDouble, DType::kInt32, DType::kInt64}) {
      for (int flags = 0; flags < 4; ++flags) {
        const bool exclusive = flags & 1, reverse = flags & 2;
        SCOPED_TRACE(testing::Message() << shape.ToString() << " " << Name(dtype) << " " << flags);
        std::vector<double> x = RandomNumbers(shape.num_elements(), 3);
        for (double& v : x) v = IsInteger(dtype) ? static_cast<double>(static_cast<int>(v * 5)) : v;
        const Tensor in = FromDoubles(dtype, shape, x);
        x = Doubles(in);
        const AttrMap attrs = {{"T", dtype}, {"exclusive", exclusive}, {"reverse", reverse}};
        const double tolerance = IsInteger(dtype) ? 0 : (dtype == DType::kFloat ? 1e-5 : 1e-13);
        ExpectNear(h.RunOne("Cumsum", attrs, {in, Tensor::Scalar<int32_t>(1)}, dtype, shape),
                   Scanned(x, shape, false, exclusive, reverse), tolerance);
        if (IsInteger(dtype) && shape[1] > 10) continue;
        ExpectNear(h.RunOne("Cumprod", attrs, {in, Tensor::Scalar<int64_t>(-2)}, dtype, shape),
                   Scanned(x, shape, true, exclusive, reverse), tolerance);
      }
    }
  }
}

TEST(ScanTest, IntegersWrapAround) {
  KernelHarness h;
  const Tensor x = Ints({2147483647, 1, 1});
  ExpectNear(h.RunOne("Cumsum", {{"T", DType::kInt32}}, {x, Tensor::Scalar<int32_t>(0)},
                      DType::kInt32, Shape({3})),
             {2147483647, -2147483648.0, -2147483647}, 0);
}

TEST(ScanTest, RefusesWrongAxes) {
  KernelHarness h;
  const Tensor x = Tensor::Zeros(DType::kFloat, Shape({2, 3}));
  for (const Tensor& axis :
       {Tensor::Scalar<int32_t>(2), Tensor::Scalar<int32_t>(-3), Ints({0, 1})}) {
    EXPECT_EQ(h.Run("Cumsum", {{"T", DType::kFloat}}, {x, axis}, {{DType::kFloat, x.shape()}})
                  .status()
                  .code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(h.Run("Cumprod", {{"T", DType::kFloat}},
                  {Tensor::Scalar(1.0f), Tensor::Scalar<int32_t>(0)}, {{DType::kFloat, Shape()}})
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace millrace
