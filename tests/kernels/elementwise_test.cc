#include <cmath>
#include <functional>
#include <limits>

#include "gtest/gtest.h"
#include "kernels/half.h"
#include "tests/kernels/kernel_harness.h"

namespace millrace {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct UnaryCase {
  const char* op;
  std::function<double(double)> reference;
  bool positive = false;  // only defined for these
  bool integers = false;
};

const UnaryCase kUnary[] = {
    {"Neg", [](double x) { return -x; }, false, true},
    {"Abs", [](double x) { return std::fabs(x); }, false, true},
    {"Sign", [](double x) { return x > 0   ? 1.0
                                   : x < 0 ? -1.0
                                           : 0.0; }, false, true},
    {"Square", [](double x) { return x * x; }, false, true},
    {"Sqrt", [](double x) { return std::sqrt(x); }, true},
    {"Rsqrt", [](double x) { return 1 / std::sqrt(x); }, true},
    {"Reciprocal", [](double x) { return 1 / x; }, true},
    {"Exp", [](double x) { return std::exp(x); }},
    {"Log", [](double x) { return std::log(x); }, true},
    {"Tanh", [](double x) { return std::tanh(x); }},
    {"Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
    {"Relu", [](double x) { return x > 0 ? x : 0; }, false, true},
};

double Tolerance(DType dtype) { return dtype == DType::kFloat ? 2e-6 : 1e-14; }

TEST(ElementwiseTest, UnaryOpsOnAllShapes) {
  KernelHarness h;
  for (const UnaryCase& c : kUnary) {
    for (const DType dtype : {DType::kFloat, DType::kDouble}) {
      for (const Shape& shape :
           {Shape(), Shape({0}), Shape({1}), Shape({7}), Shape({3, 5, 7}), Shape({100, 1001})}) {
        SCOPED_TRACE(testing::Message() << c.op << " " << shape.ToString());
        std::vector<double> x = RandomNumbers(shape.num_elements(), 1);
        for (double& v : x) v = c.positive ? std::fabs(v) * 3 + 0.01 : v * 5;
        const Tensor in = FromDoubles(dtype, shape, x);
        x = Doubles(in);
        for (double& v : x) v = c.reference(v);
        ExpectNear(h.RunOne(c.op, {{"T", dtype}}, {in}, dtype, shape), x, Tolerance(dtype));
      }
    }
    if (!c.integers) continue;
    for (const DType dtype : {DType::kInt32, DType::kInt64}) {
      SCOPED_TRACE(c.op);
      std::vector<double> x = {-7, 0, 3, 12, -1};
      const Tensor in = FromDoubles(dtype, Shape({5}), x);
      for (double& v : x) v = c.reference(v);
      ExpectNear(h.RunOne(c.op, {{"T", dtype}}, {in}, dtype, Shape({5})), x, 0);
    }
  }
}

TEST(ElementwiseTest, UnaryOpsOnSpecialNumbers) {
  KernelHarness h;
  const std::vector<double> x = {0.0, -0.0, kInf, -kInf, kNan, 1e-40, 88.7, 89, -87, -104, -200};
  const Shape shape({static_cast<int64_t>(x.size())});
  for (const UnaryCase& c : kUnary) {
    for (const DType dtype : {DType::kFloat, DType::kDouble}) {
      SCOPED_TRACE(c.op);
      const Tensor in = FromDoubles(dtype, shape, x);
      const std::vector<double> out = Doubles(h.RunOne(c.op, {{"T", dtype}}, {in}, dtype, shape));
      const std::vector<double> rounded = Doubles(in);
      for (size_t i = 0; i < x.size(); ++i) {
        double expected = c.reference(rounded[i]);
        if (dtype == DType::kFloat) expected = static_cast<float>(expected);
        if (std::string(c.op) == "Sign" && std::isnan(rounded[i])) expected = kNan;
        if (std::string(c.op) == "Relu" && std::isnan(rounded[i])) expected = kNan;
        if (std::isnan(expected)) {
          EXPECT_TRUE(std::isnan(out[i])) << rounded[i] << " gives " << out[i];
        } else if (std::isinf(expected)) {
          EXPECT_EQ(out[i], expected) << "of " << rounded[i];
        } else {
          const double allowed = std::max(std::fabs(expected) * Tolerance(dtype) * 2,
                                          dtype == DType::kFloat ? 1e-44 : 0);
          EXPECT_LE(std::fabs(out[i] - expected), allowed) << "of " << rounded[i];
        }
      }
    }
  }
}

TEST(ElementwiseTest, IsFiniteAndLogicalNot) {
  KernelHarness h;
  const Tensor x = FromDoubles(DType::kFloat, Shape({4}), {1, kInf, kNan, -kInf});
  EXPECT_EQ(Doubles(h.RunOne("IsFinite", {{"T", DType::kFloat}}, {x}, DType::kBool, Shape({4}))),
            (std::vector<double>{1, 0, 0, 0}));
  const Tensor b = Tensor::Of<bool>(Shape({2}), {true, false});
  EXPECT_EQ(Doubles(h.RunOne("LogicalNot", {}, {b}, DType::kBool, Shape({2}))),
            (std::vector<double>{0, 1}));
}

struct BinaryCase {
  const char* op;
  std::function<double(double, double)> reference;
  bool integers = true;
  bool positive_x = false;
  bool to_bool = false;
};

const BinaryCase kBinary[] = {
    {"AddV2", [](double x, double y) { return x + y; }},
    {"Add", [](double x, double y) { return x + y; }},
    {"Sub", [](double x, double y) { return x - y; }},
    {"Mul", [](double x, double y) { return x * y; }},
    {"RealDiv", [](double x, double y) { return x / y; }, false},
    {"DivNoNan", [](double x, double y) { return y == 0 ? 0 : x / y; }, false},
    {"FloorDiv", [](double x, double y) { return std::floor(x / y); }},
    {"FloorMod", [](double x, double y) { return x - y * std::floor(x / y); }},
    {"Maximum", [](double x, double y) { return std::fmax(x, y); }},
    {"Minimum", [](double x, double y) { return std::fmin(x, y); }},
    {"Pow", [](double x, double y) { return std::pow(x, y); }, false, true},
    {"SquaredDifference", [](double x, double y) { return (x - y) * (x - y); }},
    {"Equal", [](double x, double y) { return double(x == y); }, true, false, true},
    {"NotEqual", [](double x, double y) { return double(x != y); }, true, false, true},
    {"Less", [](double x, double y) { return double(x < y); }, true, false, true},
    {"LessEqual", [](double x, double y) { return double(x <= y); }, true, false, true},
    {"Greater", [](double x, double y) { return double(x > y); }, true, false, true},
    {"GreaterEqual", [](double x, double y) { return double(x >= y); }, true, false, true},
    {"TanhGrad", [](double y, double dy) { return dy * (1 - y * y); }, false},
    {"SigmoidGrad", [](double y, double dy) { return dy * y * (1 - y); }, false},
    {"SqrtGrad", [](double y, double dy) { return dy * 0.5 / y; }, false, true},
    {"RsqrtGrad", [](double y, double dy) { return -0.5 * dy * y * y * y; }, false},
    {"ReciprocalGrad", [](double y, double dy) { return -dy * y * y; }, false},
    {"ReluGrad", [](double dy, double x) { return x > 0 ? dy : 0; }, false},
};

// The operands' elements, broadcast to `out`, as NumPy says.
std::vector<double> Broadcast(const Tensor& t, const Shape& out) {
  const std::vector<double> values = Doubles(t);
  std::vector<double> result(out.num_elements());
  for (int64_t i = 0; i < out.num_elements(); ++i) {
    int64_t rest = i, at = 0, stride = 1;
    for (int d = out.rank() - 1; d >= 0; --d) {
      const int64_t index = rest % out[d];
      rest /= out[d];
      const int own = d - (out.rank() - t.shape().rank());
      if (own < 0) continue;
      if (t.shape()[own] != 1) at += index * stride;
      stride *= t.shape()[own];
    }
    result[i] = values[at];
  }
  return result;
}

TEST(ElementwiseTest, BinaryOpsBroadcast) {
  KernelHarness h;
  const Shape shapes[][3] = {
      {Shape(), Shape(), Shape()},
      {Shape({0}), Shape({0}), Shape({0})},
      {Shape({5}), Shape(), Shape({5})},
      {Shape(), Shape({3, 4}), Shape({3, 4})},
      {Shape({3, 4}), Shape({3, 4}), Shape({3, 4})},
      {Shape({3, 4}), Shape({4}), Shape({3, 4})},
      {Shape({3, 1}), Shape({1, 4}), Shape({3, 4})},
      {Shape({2, 3, 1, 5}), Shape({3, 4, 1}), Shape({2, 3, 4, 5})},
      {Shape({1, 1}), Shape({7, 19}), Shape({7, 19})},
      {Shape({1, 0}), Shape({3, 1}), Shape({3, 0})},
      {Shape({2, 1, 3}), Shape({2, 2, 3}), Shape({2, 2, 3})},
      {Shape({70000}), Shape({70000}), Shape({70000})},
      {Shape({300, 301}), Shape({300, 1}), Shape({300, 301})},
  };
  for (const BinaryCase& c : kBinary) {
    for (const DType dtype : {DType::kFloat, DType::kDouble, DType::kInt32, DType::kInt64}) {
      const bool integer = IsInteger(dtype);
      if (integer && !c.integers) continue;
      for (const auto& s : shapes) {
        SCOPED_TRACE(testing::Message()
                     << c.op << " " << Name(dtype) << s[0].ToString() << s[1].ToString());
        const auto numbers = [&](const Shape& shape, uint64_t seed, bool positive) {
          std::vector<double> v = RandomNumbers(shape.num_elements(), seed);
          for (double& x : v) {
            if (integer) {
              x = std::trunc(x * 20);
              if (x == 0) x = 3;  // a divisor
            } else {
              x = (positive ? std::fabs(x) + 0.1 : x) * 2;
              x = std::round(x * 64) / 64;  // some are equal
            }
          }
          return FromDoubles(dtype, shape, v);
        };
        const Tensor x = numbers(s[0], 3, c.positive_x);
        const Tensor y = numbers(s[1], 4, false);
        const std::vector<double> bx = Broadcast(x, s[2]), by = Broadcast(y, s[2]);
        std::vector<double> expected(bx.size());
        for (size_t i = 0; i < bx.size(); ++i) expected[i] = c.reference(bx[i], by[i]);
        const std::string op = c.op;
        // Near whole quotients floats and doubles floor differently: integers test these.
        if ((op == "FloorDiv" || op == "FloorMod") && !integer) continue;
        ExpectNear(h.RunOne(op, {{"T", dtype}}, {x, y}, c.to_bool ? DType::kBool : dtype, s[2]),
                   expected, integer ? 0 : Tolerance(dtype));
      }
    }
  }
}

TEST(ElementwiseTest, FloorsOfFloats) {
  KernelHarness h;
  const Tensor x = Tensor::Of<float>(Shape({4}), {7, -7, 7, -7});
  const Tensor y = Tensor::Of<float>(Shape({4}), {2, 2, -2, -2});
  const AttrMap attrs = {{"T", DType::kFloat}};
  EXPECT_EQ(Doubles(h.RunOne("FloorDiv", attrs, {x, y}, DType::kFloat, Shape({4}))),
            (std::vector<double>{3, -4, -4, 3}));
  EXPECT_EQ(Doubles(h.RunOne("FloorMod", attrs, {x, y}, DType::kFloat, Shape({4}))),
            (std::vector<double>{1, 1, -1, -1}));
}

TEST(ElementwiseTest, IntegerCornersAreNoTraps) {
  KernelHarness h;
  constexpr int32_t kLowest = std::numeric_limits<int32_t>::min();
  const Tensor lowest = Tensor::Of<int32_t>(Shape({1}), {kLowest});
  const Tensor minus_one = Ints({-1});
  const AttrMap attrs = {{"T", DType::kInt32}};
  for (const char* op : {"Div", "FloorDiv", "Mul", "Sub"}) {
    h.RunOne(op, attrs, {lowest, minus_one}, DType::kInt32, Shape({1}));
  }
  EXPECT_EQ(h.RunOne("FloorMod", attrs, {lowest, minus_one}, DType::kInt32, Shape({1}))
                .data<int32_t>()[0],
            0);
  EXPECT_EQ(h.RunOne("Neg", attrs, {lowest}, DType::kInt32, Shape({1})).data<int32_t>()[0],
            kLowest);
  for (const char* op : {"Div", "FloorDiv", "FloorMod"}) {
    const auto result = h.Run(op, attrs, {Ints({1, 2}), Ints({1, 0})}, {{DType::kInt32, {2}}});
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument) << op;
  }
  EXPECT_EQ(Doubles(h.RunOne("Pow", attrs, {Ints({2, -3, 5}), Ints({10, 3, 0})}, DType::kInt32,
                             Shape({3}))),
            (std::vector<double>{1024, -27, 1}));
  EXPECT_EQ(h.Run("Pow", attrs, {Ints({2}), Ints({-1})}, {{DType::kInt32, {1}}}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ElementwiseTest, OutputMayBeAnInput) {
  KernelHarness h;
  for (int input : {0, 1}) {
    const Tensor x = RandomTensor(DType::kFloat, Shape({50, 70}), 1);
    const Tensor y = RandomTensor(DType::kFloat, Shape({50, 70}), 2);
    const Tensor expected =
        h.RunOne("Sub", {{"T", DType::kFloat}}, {x, y}, DType::kFloat, x.shape());
    KernelHarness::Options options;
    options.in_place = input;
    const auto result =
        h.Run("Sub", {{"T", DType::kFloat}}, {x, y}, {{DType::kFloat, x.shape()}}, options);
    ASSERT_TRUE(result.ok());
    ExpectSameBits((*result)[0], expected);
  }
}

TEST(ElementwiseTest, AddNInRankOrderAndInPlaceOfAnyInput) {
  KernelHarness h;
  for (int input = -1; input < 3; ++input) {
    std::vector<Tensor> xs;
    std::vector<double> expected(5000);
    for (int k = 0; k < 3; ++k) {
      xs.push_back(RandomTensor(DType::kFloat, Shape({5000}), 10 + k));
      // In float, in order: bit-equal.
      for (int i = 0; i < 5000; ++i) {
        const float sum = static_cast<float>(expected[i]) + xs[k].data<float>()[i];
        expected[i] = k == 0 ? xs[k].data<float>()[i] : sum;
      }
    }
    KernelHarness::Options options;
    options.in_place = input;
    const auto result = h.Run("AddN", {{"T", DType::kFloat}, {"N", 3}}, xs,
                              {{DType::kFloat, Shape({5000})}}, options);
    ASSERT_TRUE(result.ok()) << result.status();
    ExpectNear((*result)[0], expected, 0);
  }
}

TEST(ElementwiseTest, LogicalOps) {
  KernelHarness h;
  const Tensor x = Tensor::Of<bool>(Shape({4}), {false, false, true, true});
  const Tensor y = Tensor::Of<bool>(Shape({4}), {false, true, false, true});
  EXPECT_EQ(Doubles(h.RunOne("LogicalAnd", {}, {x, y}, DType::kBool, Shape({4}))),
            (std::vector<double>{0, 0, 0, 1}));
  EXPECT_EQ(Doubles(h.RunOne("LogicalOr", {}, {x, y}, DType::kBool, Shape({4}))),
            (std::vector<double>{0, 1, 1, 1}));
}

TEST(ElementwiseTest, SelectBroadcasts) {
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

TEST(ElementwiseTest, Casts) {
  KernelHarness h;
  const std::vector<DType> dtypes = {DType::kFloat, DType::kDouble, DType::kInt8,
                                     DType::kInt32, DType::kInt64,  DType::kUint8};
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

TEST(ElementwiseTest, HalfFormatsRoundToNearestEven) {
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

}  // namespace
}  // namespace millrace
