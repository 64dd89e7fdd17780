#include <cmath>
#include <limits>
#include <set>

#include "gtest/gtest.h"
#include "tests/kernels/kernel_harness.h"

namespace millrace {
namespace {

struct Reference {
  Shape shape;
  std::vector<double> values;
};

// Folds `x` over `axes`, dropping them.
template <typename Fold>
Reference Reduce(const Tensor& x, const std::set<int>& axes, double initial, Fold fold) {
  std::vector<int64_t> dims;
  for (int i = 0; i < x.shape().rank(); ++i) {
    if (axes.count(i) == 0) dims.push_back(x.shape()[i]);
  }
  Reference r;
  r.shape = *Shape::Create(dims);
  r.values.assign(r.shape.num_elements(), initial);
  const std::vector<double> values = Doubles(x);
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    int64_t rest = i, at = 0, stride = 1;
    for (int d = x.shape().rank() - 1; d >= 0; --d) {
      const int64_t index = rest % x.shape()[d];
      rest /= x.shape()[d];
      if (axes.count(d) > 0) continue;
      at += index * stride;
      stride *= x.shape()[d];
    }
    r.values[at] = fold(r.values[at], values[i]);
  }
  return r;
}

struct Case {
  Shape shape;
  std::vector<int32_t> axes;
};

const Case kCases[] = {
    {Shape(), {}},
    {Shape({7}), {}},
    {Shape({7}), {0}},
    {Shape({1}), {0}},
    {Shape({5, 7}), {0}},
    {Shape({5, 7}), {1}},
    {Shape({5, 7}), {-1, 0}},
    {Shape({3, 4, 5}), {1}},
    {Shape({3, 4, 5}), {0, 2}},
    {Shape({2, 3, 4, 5}), {0, 2}},
    {Shape({2, 3, 4, 5}), {1, 3}},
    {Shape({2, 1, 4, 1}), {1, 3}},
    {Shape({2, 3, 2, 3, 2}), {0, 2, 4}},
    {Shape({300, 500}), {0}},
    {Shape({300, 500}), {1}},
    {Shape({200001}), {0}},
    {Shape({2, 100003}), {1}},
    {Shape({70000, 3}), {0}},
    {Shape({3, 9000, 10}), {1}},
    {Shape({100, 70000}), {0}},
};

TEST(ReductionTest, SumMeanMaxMinProdOverAxes) {
  KernelHarness h;
  for (const Case& c : kCases) {
    for (const DType dtype : {DType::kFloat, DType::kDouble, DType::kInt32, DType::kInt64}) {
      SCOPED_TRACE(testing::Message() << c.shape.ToString() << " " << Name(dtype));
      const bool integer = IsInteger(dtype);
      Tensor x = RandomTensor(DType::kDouble, c.shape, 5, integer ? 9 : 1);
      x = FromDoubles(dtype, c.shape, Doubles(x));
      std::set<int> axes;
      for (int32_t a : c.axes) axes.insert(a < 0 ? a + c.shape.rank() : a);
      double count = 1;
      for (int a : axes) count *= static_cast<double>(c.shape[a]);
      const Tensor axes_tensor = Tensor::Of<int32_t>(Shape({static_cast<int64_t>(c.axes.size())}),
                                                     absl::Span<const int32_t>(c.axes));
      const auto run = [&](const char* op, const Shape& shape) {
        return h.RunOne(op, {{"T", dtype}, {"Tidx", DType::kInt32}}, {x, axes_tensor}, dtype,
                        shape);
      };
      // Within 1e-5 of the sum of absolute terms, an order below what is promised.
      Reference sum = Reduce(x, axes, 0, [](double a, double b) { return a + b; });
      const double tolerance =
          integer ? 0 : (dtype == DType::kFloat ? 1e-5 : 1e-13) * std::max(1.0, count);
      const Tensor sums = run("Sum", sum.shape);
      const std::vector<double> got = Doubles(sums);
      for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], sum.values[i], tolerance);
      for (double& v : sum.values) v = integer ? std::trunc(v / count) : v / count;
      ExpectNear(run("Mean", sum.shape), sum.values,
                 integer ? 0 : (dtype == DType::kFloat ? 1e-5 : 1e-13));
      const double infinity = std::numeric_limits<double>::infinity();
      const Reference max =
          Reduce(x, axes, -infinity, [](double a, double b) { return std::max(a, b); });
      ExpectNear(run("Max", max.shape), max.values, 0);
      const Reference min =
          Reduce(x, axes, infinity, [](double a, double b) { return std::min(a, b); });
      ExpectNear(run("Min", min.shape), min.values, 0);
      if (count < 100 && !integer) {
        const Reference prod = Reduce(x, axes, 1, [](double a, double b) { return a * b; });
        ExpectNear(run("Prod", prod.shape), prod.values, 1e-6);
      }
    }
  }
}

TEST(ReductionTest, OfNothing) {
  KernelHarness h;
  const AttrMap attrs = {{"T", DType::kFloat}};
  const Tensor x = Tensor::Zeros(DType::kFloat, Shape({2, 0, 3}));
  const Shape out({2, 3});
  const std::vector<double> zeros(6, 0), ones(6, 1);
  const std::vector<double> lowest(6, -std::numeric_limits<double>::infinity());
  const std::vector<double> nans(6, std::numeric_limits<double>::quiet_NaN());
  ExpectNear(h.RunOne("Sum", attrs, {x, Ints({1})}, DType::kFloat, out), zeros, 0);
  ExpectNear(h.RunOne("Prod", attrs, {x, Ints({1})}, DType::kFloat, out), ones, 0);
  ExpectNear(h.RunOne("Max", attrs, {x, Ints({1})}, DType::kFloat, out), lowest, 0);
  ExpectNear(h.RunOne("Mean", attrs, {x, Ints({1})}, DType::kFloat, out), nans, 0);
  h.RunOne("Sum", attrs, {x, Ints({0})}, DType::kFloat, Shape({0, 3}));
  const Tensor no_ints = Tensor::Zeros(DType::kInt32, Shape({0}));
  EXPECT_EQ(h.Run("Mean", {{"T", DType::kInt32}}, {no_ints, Ints({0})}, {{DType::kInt32, Shape()}})
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ReductionTest, RefusesWrongAxes) {
  KernelHarness h;
  const Tensor x = Tensor::Zeros(DType::kFloat, Shape({2, 3}));
  for (const Tensor& axes : {Ints({2}), Ints({-3}), Ints({0, -2})}) {
    EXPECT_EQ(h.Run("Sum", {{"T", DType::kFloat}}, {x, axes}, {{DType::kFloat, Shape({3})}})
                  .status()
                  .code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST(ReductionTest, LongFloatSumsAreAccurate) {
  KernelHarness h;
  const int64_t n = 1 << 22;
  Tensor x = Tensor::Zeros(DType::kFloat, Shape({n}));
  for (int64_t i = 0; i < n; ++i) x.mutable_data<float>()[i] = 0.1f;
  const Tensor sum = h.RunOne("Sum", {{"T", DType::kFloat}}, {x, Ints({0})}, DType::kFloat, {});
  EXPECT_NEAR(sum.data<float>()[0], 0.1f * static_cast<double>(n), 1e-6 * 0.1 * n);
}

TEST(ReductionTest, MaxKeepsNan) {
  KernelHarness h;
  for (int at : {0, 3, 16, 39}) {
    Tensor x = RandomTensor(DType::kFloat, Shape({40}), 1);
    x.mutable_data<float>()[at] = std::nanf("");
    const Tensor max = h.RunOne("Max", {{"T", DType::kFloat}}, {x, Ints({0})}, DType::kFloat, {});
    EXPECT_TRUE(std::isnan(max.data<float>()[0]));
  }
}

TEST(ReductionTest, ArgMaxAndArgMinGiveTheFirst) {
  KernelHarness h;
  const Tensor x = Tensor::Of<float>(Shape({2, 4}), {1, 5, 5, 2, -1, -3, -1, -2});
  const Tensor axis = Tensor::Scalar<int32_t>(1);
  EXPECT_EQ(
      Doubles(h.RunOne("ArgMax", {{"T", DType::kFloat}}, {x, axis}, DType::kInt64, Shape({2}))),
      (std::vector<double>{1, 0}));
  EXPECT_EQ(Doubles(h.RunOne("ArgMax", {{"T", DType::kFloat}}, {x, Tensor::Scalar<int32_t>(-2)},
                             DType::kInt32, Shape({4}))),
            (std::vector<double>{0, 0, 0, 0}));
  EXPECT_EQ(
      Doubles(h.RunOne("ArgMin", {{"T", DType::kFloat}}, {x, axis}, DType::kInt32, Shape({2}))),
      (std::vector<double>{0, 1}));
  const Tensor bools = Tensor::Of<bool>(Shape({1, 4}), {true, false, false, true});
  EXPECT_EQ(
      Doubles(h.RunOne("ArgMin", {{"T", DType::kBool}}, {bools, axis}, DType::kInt64, Shape({1}))),
      (std::vector<double>{1}));
  const Tensor none = Tensor::Zeros(DType::kFloat, Shape({3, 0}));
  EXPECT_FALSE(
      h.Run("ArgMax", {{"T", DType::kFloat}}, {none, axis}, {{DType::kInt64, Shape({3})}}).ok());
}

// NaN is passed over; where there is nothing else, the first element is taken.
TEST(ReductionTest, ArgMaxAndArgMinPassOverNan) {
  KernelHarness h;
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  const struct {
    std::vector<double> x;
    double largest, smallest;
  } cases[] = {{{nan, 1, 2}, 2, 1}, {{1, nan, 2}, 2, 0},    {{2, nan, 1}, 0, 2},
               {{nan, nan}, 0, 0},  {{-inf, -inf}, 0, 0},   {{inf, inf}, 0, 0},
               {{nan, -inf}, 0, 1}, {{-inf, nan, -5}, 2, 0}};
  for (const DType dtype : {DType::kFloat, DType::kDouble}) {
    for (const auto& c : cases) {
      const Tensor x = FromDoubles(dtype, Shape({static_cast<int64_t>(c.x.size())}), c.x);
      const auto run = [&](const char* op) {
        return h.RunOne(op, {{"T", dtype}}, {x, Tensor::Scalar<int32_t>(0)}, DType::kInt64, {});
      };
      ExpectNear(run("ArgMax"), {c.largest}, 0);
      ExpectNear(run("ArgMin"), {c.smallest}, 0);
    }
  }
}

TEST(ReductionTest, AllAndAnyOverAxes) {
  KernelHarness h;
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.shape.ToString());
    for (const double share : {0.5, 0.0001, 0.9999}) {
      std::vector<double> values = RandomNumbers(c.shape.num_elements(), 9);
      for (double& v : values) v = (v + 1) / 2 < share;
      const Tensor x = FromDoubles(DType::kBool, c.shape, values);
      std::set<int> axes;
      for (int32_t a : c.axes) axes.insert(a < 0 ? a + c.shape.rank() : a);
      const Tensor axes_tensor = Tensor::Of<int32_t>(Shape({static_cast<int64_t>(c.axes.size())}),
                                                     absl::Span<const int32_t>(c.axes));
      const Reference all = Reduce(x, axes, 1, [](double a, double b) { return a * b; });
      ExpectNear(h.RunOne("All", {}, {x, axes_tensor}, DType::kBool, all.shape), all.values, 0);
      const Reference any = Reduce(x, axes, 0, [](double a, double b) { return std::max(a, b); });
      ExpectNear(h.RunOne("Any", {}, {x, axes_tensor}, DType::kBool, any.shape), any.values, 0);
    }
  }
  const Tensor none = Tensor::Zeros(DType::kBool, Shape({0, 2}));
  ExpectNear(h.RunOne("All", {}, {none, Ints({0})}, DType::kBool, Shape({2})), {1, 1}, 0);
  ExpectNear(h.RunOne("Any", {}, {none, Ints({0})}, DType::kBool, Shape({2})), {0, 0}, 0);
}

TEST(ReductionTest, L2Loss) {
  KernelHarness h;
  for (const DType dtype : {DType::kFloat, DType::kDouble}) {
    for (int64_t n : {0, 1, 1000, 300000}) {
      const Tensor x = RandomTensor(dtype, Shape({n}), 2);
      double expected = 0;
      for (double v : Doubles(x)) expected += v * v / 2;
      ExpectNear(h.RunOne("L2Loss", {{"T", dtype}}, {x}, dtype, Shape()), {expected}, 1e-6);
    }
  }
}

}  // namespace
}  // namespace millrace
