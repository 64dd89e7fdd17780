#include "gtest/gtest.h"
#include "tests/kernels/kernel_harness.h"

namespace millrace {
namespace {

TEST(MatMulTest, AllShapesAndTransposes) {
  KernelHarness h;
  const int64_t sizes[][3] = {{0, 3, 4},     {3, 0, 4},      {3, 4, 0},     {1, 1, 1},
                              {1, 7, 1},     {2, 3, 4},      {17, 33, 5},   {5, 257, 300},
                              {64, 784, 10}, {130, 520, 70}, {1, 784, 512}, {600, 70, 800}};
  for (const auto& s : sizes) {
    const int64_t m = s[0], k = s[1], n = s[2];
    for (const DType dtype : {DType::kFloat, DType::kDouble}) {
      for (int flags = 0; flags < 4; ++flags) {
        const bool ta = flags & 1, tb = flags & 2;
        SCOPED_TRACE(testing::Message() << m << " " << k << " " << n << " " << flags);
        const Tensor a = RandomTensor(dtype, ta ? Shape({k, m}) : Shape({m, k}), 1);
        const Tensor b = RandomTensor(dtype, tb ? Shape({n, k}) : Shape({k, n}), 2);
        const std::vector<double> va = Doubles(a), vb = Doubles(b);
        std::vector<double> expected(m * n);
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t p = 0; p < k; ++p) {
            const double x = ta ? va[p * m + i] : va[i * k + p];
            for (int64_t j = 0; j < n; ++j) {
              expected[i * n + j] += x * (tb ? vb[j * k + p] : vb[p * n + j]);
            }
          }
        }
        ExpectNear(h.RunOne("MatMul", {{"T", dtype}, {"transpose_a", ta}, {"transpose_b", tb}},
                            {a, b}, dtype, Shape({m, n})),
                   expected, dtype == DType::kFloat ? 1e-5 : 1e-13);
      }
    }
  }
}

TEST(MatMulTest, Integers) {
  KernelHarness h;
  for (const DType dtype : {DType::kInt32, DType::kInt64}) {
    const Tensor a = FromDoubles(dtype, Shape({2, 3}), {1, -2, 3, 4, 5, -6});
    const Tensor b = FromDoubles(dtype, Shape({3, 2}), {7, 8, 9, 10, -11, 12});
    ExpectNear(h.RunOne("MatMul", {{"T", dtype}}, {a, b}, dtype, Shape({2, 2})), {-44, 24, 139, 10},
               0);
    ExpectNear(h.RunOne("MatMul", {{"T", dtype}, {"transpose_a", true}, {"transpose_b", true}},
                        {a, b}, dtype, Shape({3, 3})),
               {39, 49, 37, 26, 32, 82, -27, -33, -105}, 0);
  }
}

TEST(MatMulTest, RefusesShapesThatDoNotFit) {
  KernelHarness h;
  const Tensor a = Tensor::Zeros(DType::kFloat, Shape({2, 3}));
  const auto run = [&](const Tensor& b) {
    return h.Run("MatMul", {{"T", DType::kFloat}}, {a, b}, {{DType::kFloat, Shape({2, 2})}})
        .status()
        .code();
  };
  EXPECT_EQ(run(Tensor::Zeros(DType::kFloat, Shape({2, 3}))), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run(Tensor::Zeros(DType::kFloat, Shape({3}))), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace millrace
