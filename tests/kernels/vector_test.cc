#include <cmath>
#include <cstring>
#include <functional>

#include "gtest/gtest.h"
#include "kernels/cpu/vector_conv.h"
#include "kernels/cpu/vector_gemm.h"
#include "kernels/cpu/vector_math.h"
#include "kernels/cpu/vector_reduce.h"
#include "kernels/cpu/vector_special.h"
#include "tests/kernels/kernel_harness.h"

namespace millrace {
namespace {

using vector::Binary;
using vector::Operands;
using vector::Special;
using vector::Unary;

constexpr Unary kUnary[] = {Unary::kNeg,        Unary::kAbs,  Unary::kSquare,  Unary::kSqrt,
                            Unary::kRsqrt,      Unary::kRelu, Unary::kExp,     Unary::kLog,
                            Unary::kReciprocal, Unary::kTanh, Unary::kSigmoid, Unary::kRelu6};
constexpr Special kSpecial[] = {Special::kExpm1, Special::kLog1p, Special::kErf, Special::kElu,
                                Special::kSoftplus};
constexpr Binary kBinary[] = {
    Binary::kAdd,         Binary::kSub,         Binary::kMul,       Binary::kDiv,
    Binary::kMaximum,     Binary::kMinimum,     Binary::kReluGrad,  Binary::kSquaredDifference,
    Binary::kTanhGrad,    Binary::kSigmoidGrad, Binary::kRelu6Grad, Binary::kEluGrad,
    Binary::kSoftplusGrad};

template <typename T>
std::vector<T> Numbers(int64_t n, uint64_t seed, double scale) {
  const std::vector<double> v = RandomNumbers(n, seed);
  std::vector<T> out(n);
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(v[i] * scale);
  return out;
}

// Whatever the position, alignment and neighbours: that is what allows ranges to be cut anywhere.
template <typename T>
void ExpectPositionsDoNotMatter() {
  constexpr int kN = 75;
  const std::vector<T> x = Numbers<T>(kN, 1, 8), y = Numbers<T>(kN, 2, 8);
  std::vector<T> whole(kN), cut(kN);
  for (Unary op : kUnary) {
    vector::Run(op, x.data(), whole.data(), kN);
    for (int at : {1, 2, 7, 16, 33}) {
      vector::Run(op, x.data(), cut.data(), at);
      vector::Run(op, x.data() + at, cut.data() + at, kN - at);
      EXPECT_EQ(std::memcmp(whole.data(), cut.data(), kN * sizeof(T)), 0) << static_cast<int>(op);
    }
  }
  for (Binary op : kBinary) {
    for (Operands o : {Operands::kBothVectors, Operands::kScalarX, Operands::kScalarY}) {
      vector::Run(op, o, x.data(), y.data(), whole.data(), kN);
      const int dx = o == Operands::kScalarX ? 0 : 1, dy = o == Operands::kScalarY ? 0 : 1;
      for (int i = 0; i < kN; ++i) {
        vector::Run(op, o, x.data() + i * dx, y.data() + i * dy, cut.data() + i, 1);
      }
      EXPECT_EQ(std::memcmp(whole.data(), cut.data(), kN * sizeof(T)), 0) << static_cast<int>(op);
    }
  }
}

TEST(VectorMathTest, PositionsDoNotMatter) {
  ExpectPositionsDoNotMatter<float>();
  ExpectPositionsDoNotMatter<double>();
}

TEST(VectorSpecialTest, PositionsDoNotMatter) {
  constexpr int kN = 75;
  const std::vector<float> x = Numbers<float>(kN, 1, 8);
  std::vector<float> whole(kN), cut(kN);
  const auto expect_same = [&](const std::function<void(int begin, int n, float* out)>& run) {
    run(0, kN, whole.data());
    for (int at : {1, 2, 7, 16, 33}) {
      run(0, at, cut.data());
      run(at, kN - at, cut.data() + at);
      EXPECT_EQ(std::memcmp(whole.data(), cut.data(), kN * sizeof(float)), 0);
    }
  };
  for (Special op : kSpecial) {
    expect_same([&](int begin, int n, float* out) { vector::Run(op, x.data() + begin, out, n); });
  }
  expect_same([&](int begin, int n, float* out) {
    vector::Leak(x.data() + begin, x.data() + begin, 0.3f, out, n);
  });
  expect_same(
      [&](int begin, int n, float* out) { vector::Clip(x.data() + begin, -1.5f, 2.5f, out, n); });
}

TEST(VectorSpecialTest, WritesNothingBeyondTheEnd) {
  for (int n = 0; n < 40; ++n) {
    std::vector<float> x(n, 2.0f), out(n + 20, -1.0f);
    for (Special op : kSpecial) vector::Run(op, x.data(), out.data(), n);
    vector::Leak(x.data(), x.data(), 0.3f, out.data(), n);
    vector::Clip(x.data(), 0.0f, 1.0f, out.data(), n);
    for (size_t i = n; i < out.size(); ++i) ASSERT_EQ(out[i], -1.0f);
  }
}

TEST(VectorMathTest, WritesNothingBeyondTheEnd) {
  for (int n = 0; n < 40; ++n) {
    std::vector<float> x(n, 2.0f), out(n + 20, -1.0f);
    vector::Run(Unary::kExp, x.data(), out.data(), n);
    for (size_t i = n; i < out.size(); ++i) ASSERT_EQ(out[i], -1.0f);
  }
}

// The largest error in units in the last place over kN evenly spaced numbers of [low, high].
double WorstError(const std::function<void(const float* x, float* out, int64_t n)>& run,
                  const std::function<double(double)>& reference, double low, double high) {
  constexpr int kN = 100000;
  std::vector<float> x(kN), out(kN);
  for (int i = 0; i < kN; ++i) x[i] = static_cast<float>(low + (high - low) * (i + 0.5) / kN);
  run(x.data(), out.data(), kN);
  double worst = 0;
  for (int i = 0; i < kN; ++i) {
    const double expected = reference(x[i]);
    const float rounded = static_cast<float>(expected);
    const double unit = std::nextafter(std::fabs(rounded), INFINITY) - std::fabs(rounded);
    worst = std::max(worst, std::fabs(out[i] - expected) / unit);
  }
  return worst;
}

TEST(VectorMathTest, FunctionsAreWithinUnitsInTheLastPlace) {
  const struct {
    Unary op;
    std::function<double(double)> reference;
    double low, high;
  } cases[] = {
      {Unary::kExp, [](double x) { return std::exp(x); }, -87, 88.7},
      {Unary::kExp, [](double x) { return std::exp(x); }, -1, 1},
      {Unary::kLog, [](double x) { return std::log(x); }, 1e-30, 10},
      {Unary::kLog, [](double x) { return std::log(x); }, 1, 1e30},
      {Unary::kTanh, [](double x) { return std::tanh(x); }, -10, 10},
      {Unary::kTanh, [](double x) { return std::tanh(x); }, -0.1, 0.1},
      {Unary::kSigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, -80, 80},
  };
  for (const auto& c : cases) {
    const double worst =
        WorstError([&](const float* x, float* out, int64_t n) { vector::Run(c.op, x, out, n); },
                   c.reference, c.low, c.high);
    EXPECT_LE(worst, 5) << static_cast<int>(c.op) << " in [" << c.low << ", " << c.high << "]";
  }
}

TEST(VectorSpecialTest, FunctionsAreWithinUnitsInTheLastPlace) {
  const auto expm1 = [](double x) { return std::expm1(x); };
  const auto log1p = [](double x) { return std::log1p(x); };
  const auto erf = [](double x) { return std::erf(x); };
  const auto elu = [](double x) { return x < 0 ? std::expm1(x) : x; };
  const auto softplus = [](double x) {
    return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x)));
  };
  const struct {
    Special op;
    std::function<double(double)> reference;
    double low, high;
  } cases[] = {
      {Special::kExpm1, expm1, -20, 88.7},   {Special::kExpm1, expm1, -1, 1},
      {Special::kExpm1, expm1, -1e-3, 1e-3}, {Special::kLog1p, log1p, -0.99999, 1},
      {Special::kLog1p, log1p, -1e-3, 1e-3}, {Special::kLog1p, log1p, 1, 100},
      {Special::kLog1p, log1p, 1, 1e38},     {Special::kErf, erf, -5, 5},
      {Special::kErf, erf, 0.9, 1.1},        {Special::kErf, erf, -1e-3, 1e-3},
      {Special::kErf, erf, 3, 4.5},          {Special::kElu, elu, -20, 20},
      {Special::kElu, elu, -1, 1},           {Special::kSoftplus, softplus, -86, 20},
      {Special::kSoftplus, softplus, -2, 2}, {Special::kSoftplus, softplus, 10, 100},
  };
  for (const auto& c : cases) {
    const double worst =
        WorstError([&](const float* x, float* out, int64_t n) { vector::Run(c.op, x, out, n); },
                   c.reference, c.low, c.high);
    EXPECT_LE(worst, 4) << static_cast<int>(c.op) << " in [" << c.low << ", " << c.high << "]";
  }
}

TEST(VectorMathTest, DoublesUpToTheLargestExponential) {
  const std::vector<double> x = {-745, -700, -1, 0, 1, 699, 701, 706, 709.7, 710};
  std::vector<double> out(x.size());
  vector::Run(Unary::kExp, x.data(), out.data(), static_cast<int64_t>(x.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    const double expected = std::exp(x[i]);
    if (std::isinf(expected)) {
      EXPECT_EQ(out[i], expected);
    } else {
      EXPECT_LE(std::fabs(out[i] - expected), 1e-14 * expected + 1e-323) << x[i];
    }
  }
}

TEST(VectorReduceTest, SumsAndMaximaOfAllLengths) {
  for (int64_t n = 0; n < 200; n += n < 70 ? 1 : 13) {
    const std::vector<float> x = Numbers<float>(n, 3, 1);
    double sum = 0, squares = 0, max = -INFINITY;
    for (float v : x) {
      sum += v;
      squares += double{v} * v;
      max = std::max(max, double{v});
    }
    EXPECT_NEAR(vector::Sum(x.data(), n), sum, 1e-5);
    EXPECT_NEAR(vector::SumOfSquares(x.data(), n), squares, 1e-5);
    EXPECT_EQ(vector::Max(x.data(), n), max);
  }
}

TEST(VectorReduceTest, RowsOfAllWidths) {
  for (int64_t width : {1, 2, 3, 5, 6, 10, 16, 17, 31, 33, 64, 65, 130}) {
    for (int64_t rows : {0, 1, 2, 40, 300}) {
      for (int64_t stride : {width, width + 3}) {
        const std::vector<double> x = Numbers<double>(rows * stride + width, 4, 1);
        std::vector<double> sums(width, -7);
        vector::SumRows(x.data(), rows, stride, width, sums.data());
        for (int64_t j = 0; j < width; ++j) {
          double expected = 0;
          for (int64_t i = 0; i < rows; ++i) expected += x[i * stride + j];
          ASSERT_NEAR(sums[j], expected, 1e-12) << width << " " << rows << " " << stride;
        }
      }
    }
  }
}

TEST(VectorGemmTest, AccumulatesAndDoesNotDependOnCuts) {
  const int64_t m = 29, n = 37, k = 600;
  const std::vector<float> a = Numbers<float>(m * k, 5, 1), b = Numbers<float>(k * n, 6, 1);
  std::vector<float> scratch(vector::GemmWorkspace(m, n, k));
  const auto product = [&](int64_t rows, int64_t first, bool accumulate, std::vector<float>& c) {
    vector::Gemm(rows, n, k, vector::Matrix<float>{a.data() + first * k, k, 1},
                 vector::Matrix<float>{b.data(), n, 1}, accumulate, c.data() + first * n, n,
                 scratch.data());
  };
  std::vector<float> whole(m * n), cut(m * n);
  product(m, 0, false, whole);
  product(10, 0, false, cut);
  product(m - 10, 10, false, cut);
  EXPECT_EQ(std::memcmp(whole.data(), cut.data(), m * n * sizeof(float)), 0);
  std::vector<float> twice = whole;
  product(m, 0, true, twice);
  for (int64_t i = 0; i < m * n; ++i) {
    double expected = 0;
    for (int64_t p = 0; p < k; ++p) expected += double{a[i / n * k + p]} * b[p * n + i % n];
    ASSERT_NEAR(whole[i], expected, 1e-4);
    ASSERT_NEAR(twice[i], 2 * expected, 2e-4);
  }
}

}  // namespace
}  // namespace millrace
