#include "gtest/gtest.h"
#include "tests/kernels/kernel_harness.h"

namespace millrace {
namespace {

struct Case {
  std::vector<int64_t> batch_x, batch_y, batch;
  int64_t m, k, n;
};

Shape With(std::vector<int64_t> dims, int64_t rows, int64_t columns) {
  dims.push_back(rows);
  dims.push_back(columns);
  return *Shape::Create(dims);
}

// Which matrix of an operand goes with matrix i of the result.
int64_t MatrixOf(const std::vector<int64_t>& own, const std::vector<int64_t>& all, int64_t i) {
  int64_t at = 0, stride = 1;
  for (size_t d = 0; d < all.size(); ++d) {
    const int64_t extent = all[all.size() - 1 - d];
    const int64_t index = i % extent;
    i /= extent;
    if (d >= own.size()) continue;
    const int64_t have = own[own.size() - 1 - d];
    if (have != 1) at += index * stride;
    stride *= have;
  }
  return at;
}

TEST(BatchMatMulTest, AllBatchesAndTransposes) {
  KernelHarness h;
  const Case cases[] = {
      {{}, {}, {}, 3, 4, 5},
      {{7}, {7}, {7}, 3, 4, 5},
      {{7}, {}, {7}, 3, 4, 5},
      {{}, {7}, {7}, 3, 4, 5},
      {{1}, {7}, {7}, 1, 4, 1},
      {{2, 1}, {3}, {2, 3}, 2, 5, 3},
      {{2, 1, 3}, {1, 4, 1}, {2, 4, 3}, 2, 2, 2},
      {{2, 3}, {1, 1}, {2, 3}, 4, 3, 2},
      {{64}, {64}, {64}, 17, 33, 19},
      {{3}, {3}, {3}, 300, 40, 270},
      {{0}, {0}, {0}, 3, 4, 5},
      {{2}, {2}, {2}, 3, 0, 5},
      {{2}, {}, {2}, 3, 0, 5},
      {{2}, {2}, {2}, 0, 4, 5},
      {{2}, {2}, {2}, 3, 4, 0},
  };
  for (const Case& c : cases) {
    for (const DType dtype : {DType::kFloat, DType::kDouble, DType::kInt32, DType::kInt64}) {
      for (int flags = 0; flags < 4; ++flags) {
        const bool ax = flags & 1, ay = flags & 2;
        const Shape sx = With(c.batch_x, ax ? c.k : c.m, ax ? c.m : c.k);
        const Shape sy = With(c.batch_y, ay ? c.n : c.k, ay ? c.k : c.n);
        const Shape out = With(c.batch, c.m, c.n);
        SCOPED_TRACE(testing::Message() << sx.ToString() << sy.ToString() << Name(dtype) << flags);
        const auto numbers = [&](const Shape& shape, uint64_t seed) {
          std::vector<double> v = RandomNumbers(shape.num_elements(), seed);
          for (double& x : v) x = IsInteger(dtype) ? static_cast<double>(int(x * 9)) : x;
          return FromDoubles(dtype, shape, v);
        };
        const Tensor x = numbers(sx, 1), y = numbers(sy, 2);
        const std::vector<double> vx = Doubles(x), vy = Doubles(y);
        std::vector<double> expected(out.num_elements());
        const int64_t size = c.m * c.n;
        for (int64_t i = 0; i < out.num_elements(); ++i) {
          const int64_t bx = MatrixOf(c.batch_x, c.batch, i / size) * c.m * c.k;
          const int64_t by = MatrixOf(c.batch_y, c.batch, i / size) * c.k * c.n;
          const int64_t row = i % size / c.n, column = i % c.n;
          for (int64_t p = 0; p < c.k; ++p) {
            expected[i] += vx[bx + (ax ? p * c.m + row : row * c.k + p)] *
                           vy[by + (ay ? column * c.k + p : p * c.n + column)];
          }
        }
        const double tolerance = IsInteger(dtype) ? 0 : (dtype == DType::kFloat ? 1e-5 : 1e-13);
        const AttrMap attrs = {{"T", dtype},    {"Ta", dtype}, {"Tb", dtype},
                               {"Tout", dtype}, {"adj_x", ax}, {"adj_y", ay}};
        for (const char* op : {"BatchMatMulV2", "BatchMatMulV3"}) {
          ExpectNear(h.RunOne(op, attrs, {x, y}, dtype, out), expected, tolerance);
        }
        if (c.batch_x != c.batch_y) continue;
        ExpectNear(h.RunOne("BatchMatMul", attrs, {x, y}, dtype, out), expected, tolerance);
      }
    }
  }
}

TEST(BatchMatMulTest, IntegersWrapAround) {
  KernelHarness h;
  const Tensor x = Tensor::Of<int32_t>(Shape({1, 2}), {65536, 1});
  const Tensor y = Tensor::Of<int32_t>(Shape({2, 1}), {65536, 7});
  for (const bool adj_y : {false, true}) {
    const Tensor right = adj_y ? y.Reshaped(Shape({1, 2})) : y;
    ExpectNear(h.RunOne("BatchMatMulV2", {{"T", DType::kInt32}, {"adj_y", adj_y}}, {x, right},
                        DType::kInt32, Shape({1, 1})),
               {7}, 0);
  }
}

TEST(BatchMatMulTest, RefusesShapesThatDoNotFit) {
  KernelHarness h;
  const auto run = [&](const Shape& x, const Shape& y, const Shape& out) {
    return h
        .Run("BatchMatMulV2", {{"T", DType::kFloat}},
             {Tensor::Zeros(DType::kFloat, x), Tensor::Zeros(DType::kFloat, y)},
             {{DType::kFloat, out}})
        .status()
        .code();
  };
  EXPECT_EQ(run({2, 3, 4}, {2, 5, 6}, {2, 3, 6}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({2, 3, 4}, {3, 4, 6}, {2, 3, 6}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({3, 4}, {4}, {3, 1}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({3, 4}, {4, 5}, {3, 4}), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace millrace
