#include <cmath>
#include <functional>
#include <limits>

#include "gtest/gtest.h"
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
    {"Inv", [](double x) { return 1 / x; }, true},
    {"Exp", [](double x) { return std::exp(x); }},
    {"Expm1", [](double x) { return std::expm1(x); }},
    {"Log1p", [](double x) { return std::log1p(x); }, true},
    {"Erf", [](double x) { return std::erf(x); }},
    {"Log", [](double x) { return std::log(x); }, true},
    {"Tanh", [](double x) { return std::tanh(x); }},
    {"Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
    {"Relu", [](double x) { return x > 0 ? x : 0; }, false, true},
    {"Relu6", [](double x) { return x > 6 ? 6 : (x > 0 ? x : 0); }, false, true},
    {"LeakyRelu", [](double x) { return x > 0 ? x : x / 4; }},
    {"Elu", [](double x) { return x > 0 ? x : std::expm1(x); }},
    {"Softplus",
     [](double x) {
       return static_cast<double>(std::log1p(std::exp(static_cast<long double>(x))));
     }},
};

// The ops that have it read it; the others must not mind.
AttrMap AttrsOf(DType dtype) { return {{"T", dtype}, {"alpha", 0.25f}}; }

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
        ExpectNear(h.RunOne(c.op, AttrsOf(dtype), {in}, dtype, shape), x, Tolerance(dtype));
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
      const std::vector<double> out = Doubles(h.RunOne(c.op, AttrsOf(dtype), {in}, dtype, shape));
      const std::vector<double> rounded = Doubles(in);
      for (size_t i = 0; i < x.size(); ++i) {
        double expected = c.reference(rounded[i]);
        if (dtype == DType::kFloat) expected = static_cast<float>(expected);
        if (std::isnan(rounded[i])) expected = kNan;
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

// What is exact stays exact: signs of zeros, and numbers that are as small as can be.
TEST(ElementwiseTest, FunctionsThatAreTheirArgumentNearZero) {
  KernelHarness h;
  for (const DType dtype : {DType::kFloat, DType::kDouble}) {
    const double tiny = dtype == DType::kFloat ? 1e-44 : 5e-324;
    const Tensor x = FromDoubles(dtype, Shape({6}), {0.0, -0.0, tiny, -tiny, 1e-20, -1e-20});
    for (const char* op : {"Expm1", "Log1p", "Elu"}) {
      SCOPED_TRACE(op);
      ExpectSameBits(h.RunOne(op, AttrsOf(dtype), {x}, dtype, x.shape()), x);
    }
    const Tensor zeros = FromDoubles(dtype, Shape({2}), {0.0, -0.0});
    for (const char* op : {"Erf", "LeakyRelu"}) {
      SCOPED_TRACE(op);
      ExpectSameBits(h.RunOne(op, AttrsOf(dtype), {zeros}, dtype, zeros.shape()), zeros);
    }
    const Tensor positive = FromDoubles(dtype, Shape({2}), {0.0, 0.0});
    for (const char* op : {"Relu", "Relu6"}) {
      SCOPED_TRACE(op);
      ExpectSameBits(h.RunOne(op, AttrsOf(dtype), {zeros}, dtype, zeros.shape()), positive);
    }
  }
}

TEST(ElementwiseTest, LogarithmsBeyondTheirPole) {
  KernelHarness h;
  for (const DType dtype : {DType::kFloat, DType::kDouble}) {
    const Tensor x = FromDoubles(dtype, Shape({4}), {-1, -1.5, -kInf, -0.9999999});
    const double last = Doubles(x)[3];
    ExpectNear(h.RunOne("Log1p", {{"T", dtype}}, {x}, dtype, x.shape()),
               {-kInf, kNan, kNan, std::log1p(last)}, Tolerance(dtype));
  }
}

// A wide range, in doubles, element by element.
TEST(ElementwiseTest, DoublesAreExactToFourteenDigits) {
  KernelHarness h;
  constexpr int64_t kN = 20001;
  for (const UnaryCase& c : kUnary) {
    std::vector<double> x(kN);
    for (int64_t i = 0; i < kN; ++i) {
      x[i] = (c.positive ? 0.01 : -40) + 80 * static_cast<double>(i) / kN;
    }
    const Tensor in = FromDoubles(DType::kDouble, Shape({kN}), x);
    const std::vector<double> out =
        Doubles(h.RunOne(c.op, AttrsOf(DType::kDouble), {in}, DType::kDouble, in.shape()));
    for (int64_t i = 0; i < kN; ++i) {
      const double expected = c.reference(x[i]);
      ASSERT_LE(std::fabs(out[i] - expected), 1e-14 * std::fabs(expected)) << c.op << " " << x[i];
    }
  }
}

TEST(ElementwiseTest, IntegersOfAllWidths) {
  KernelHarness h;
  const struct {
    const char* op;
    std::vector<double> x, y, expected;
  } cases[] = {
      {"AddV2", {7, 3, 9}, {2, 3, 5}, {9, 6, 14}},
      {"Sub", {7, 3, 9}, {2, 3, 5}, {5, 0, 4}},
      {"Mul", {7, 3, 9}, {2, 3, 5}, {14, 9, 45}},
      {"Div", {7, 3, 9}, {2, 3, 5}, {3, 1, 1}},
      {"FloorDiv", {7, 3, 9}, {2, 3, 5}, {3, 1, 1}},
      {"FloorMod", {7, 3, 9}, {2, 3, 5}, {1, 0, 4}},
      {"Maximum", {7, 3, 2}, {2, 3, 5}, {7, 3, 5}},
      {"Minimum", {7, 3, 2}, {2, 3, 5}, {2, 3, 2}},
      {"Less", {7, 3, 2}, {2, 3, 5}, {0, 0, 1}},
      {"GreaterEqual", {7, 3, 2}, {2, 3, 5}, {1, 1, 0}},
      {"NotEqual", {7, 3, 2}, {2, 3, 5}, {1, 0, 1}},
  };
  for (const auto& c : cases) {
    const bool compares = std::string(c.op) == "Less" || std::string(c.op) == "GreaterEqual" ||
                          std::string(c.op) == "NotEqual";
    for (const DType dtype : {DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64,
                              DType::kUint8, DType::kUint16, DType::kUint32, DType::kUint64}) {
      SCOPED_TRACE(testing::Message() << c.op << " " << Name(dtype));
      const Tensor x = FromDoubles(dtype, Shape({3}), c.x), y = FromDoubles(dtype, Shape({3}), c.y);
      ExpectNear(h.RunOne(c.op, {{"T", dtype}}, {x, y}, compares ? DType::kBool : dtype, {3}),
                 c.expected, 0);
    }
  }
  // Narrow ones wrap around, too.
  const Tensor x = FromDoubles(DType::kUint8, Shape({1}), {200});
  ExpectNear(h.RunOne("AddV2", {{"T", DType::kUint8}}, {x, x}, DType::kUint8, {1}), {144}, 0);
  const Tensor lowest = FromDoubles(DType::kInt8, Shape({1}), {-128});
  const Tensor minus_one = FromDoubles(DType::kInt8, Shape({1}), {-1});
  ExpectNear(h.RunOne("Div", {{"T", DType::kInt8}}, {lowest, minus_one}, DType::kInt8, {1}), {-128},
             0);
  for (const char* op : {"Div", "FloorDiv", "FloorMod"}) {
    const auto result = h.Run(op, {{"T", DType::kUint8}}, {x, Tensor::Zeros(DType::kUint8, {1})},
                              {{DType::kUint8, {1}}});
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument) << op;
  }
}

TEST(ElementwiseTest, IsFiniteAndLogicalNot) {
  KernelHarness h;
  const Tensor x = FromDoubles(DType::kFloat, Shape({4}), {1, kInf, kNan, -kInf});
  EXPECT_EQ(Doubles(h.RunOne("IsFinite", {{"T", DType::kFloat}}, {x}, DType::kBool, Shape({4}))),
            (std::vector<double>{1, 0, 0, 0}));
  EXPECT_EQ(Doubles(h.RunOne("IsNan", {{"T", DType::kFloat}}, {x}, DType::kBool, Shape({4}))),
            (std::vector<double>{0, 0, 1, 0}));
  EXPECT_EQ(Doubles(h.RunOne("IsInf", {{"T", DType::kFloat}}, {x}, DType::kBool, Shape({4}))),
            (std::vector<double>{0, 1, 0, 1}));
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
    {"InvGrad", [](double y, double dy) { return -dy * y * y; }, false},
    {"ReluGrad", [](double dy, double x) { return x > 0 ? dy : 0; }, false},
    {"Relu6Grad", [](double dy, double x) { return x > 0 && x < 6 ? dy : 0; }, false},
    {"EluGrad", [](double dy, double y) { return y < 0 ? dy * (y + 1) : dy; }, false},
    {"SoftplusGrad", [](double dy, double x) { return dy / (1 + std::exp(-x)); }, false},
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

TEST(ElementwiseTest, SlopesThatAreInfiniteMeetNoGradient) {
  KernelHarness h;
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor dy = Tensor::Of<float>(Shape({3}), {0, -0.0f, 1});
  const Tensor zeros = Tensor::Of<float>(Shape({3}), {0, 0, 0});
  const Tensor infinite = Tensor::Of<float>(Shape({3}), {inf, inf, inf});
  const AttrMap attrs = {{"T", DType::kFloat}};
  const Shape shape({3});
  ExpectSameBits(h.RunOne("SqrtGrad", attrs, {zeros, dy}, DType::kFloat, shape),
                 Tensor::Of<float>(shape, {0, 0, inf}));
  ExpectSameBits(h.RunOne("RsqrtGrad", attrs, {infinite, dy}, DType::kFloat, shape),
                 Tensor::Of<float>(shape, {0, 0, -inf}));
  ExpectSameBits(h.RunOne("ReciprocalGrad", attrs, {infinite, dy}, DType::kFloat, shape),
                 Tensor::Of<float>(shape, {0, 0, -inf}));
}

TEST(ElementwiseTest, SignOfZeroIsZero) {
  KernelHarness h;
  const Shape shape({3});
  ExpectSameBits(h.RunOne("Sign", {{"T", DType::kFloat}},
                          {Tensor::Of<float>(shape, {-0.0f, 0.0f, -3})}, DType::kFloat, shape),
                 Tensor::Of<float>(shape, {0, 0, -1}));
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

}  // namespace
}  // namespace millrace
