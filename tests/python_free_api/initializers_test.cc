#include <cmath>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/python_free_api/program.h"

namespace millrace::testing {
namespace {

struct Moments {
  double mean = 0, deviation = 0, largest = 0;
};
Moments MomentsOf(const std::vector<double>& values) {
  Moments m;
  const auto n = static_cast<double>(values.size());
  for (const double v : values) {
    m.mean += v / n;
    m.largest = std::max(m.largest, std::abs(v));
  }
  for (const double v : values) m.deviation += (v - m.mean) * (v - m.mean) / n;
  m.deviation = std::sqrt(m.deviation);
  return m;
}

// The first value of a variable "w", in a program of its own.
std::vector<double> Initial(const Initializer& initializer, const Shape& shape,
                            DType dtype = DType::kFloat, const char* name = "w") {
  Program p;
  p.variables.Add(name, dtype, shape, initializer, true);
  return p.ValueOf(name);
}

TEST(InitializersTest, ConstantsFillAnyShape) {
  EXPECT_EQ(Initial(Zeros(), {2, 2}), (std::vector<double>{0, 0, 0, 0}));
  EXPECT_EQ(Initial(Constant(1.5), {3}), (std::vector<double>{1.5, 1.5, 1.5}));
  EXPECT_EQ(Initial(Constant(-2), {}, DType::kInt64), (std::vector<double>{-2}));
  EXPECT_EQ(Initial(Constant(7), {0, 4}), std::vector<double>());
}

TEST(InitializersTest, GlorotIsUniformWithinItsLimit) {
  const struct {
    Shape shape;
    double fans;  // in and out
  } cases[] = {
      {{300, 200}, 500},
      {{5, 5, 16, 64}, 5 * 5 * (16 + 64)},  // a filter
      {{40000}, 80000},
  };
  for (const DType dtype : {DType::kFloat, DType::kDouble}) {
    for (const auto& c : cases) {
      const double limit = std::sqrt(6 / c.fans);
      const Moments m = MomentsOf(Initial(GlorotUniform(), c.shape, dtype));
      const auto n = static_cast<double>(c.shape.num_elements());
      EXPECT_LE(m.largest, limit * (1 + 1e-6)) << c.shape.ToString();
      EXPECT_GT(m.largest, 0.999 * limit) << c.shape.ToString();
      // Five deviations of the estimate.
      EXPECT_NEAR(m.mean, 0, 5 * limit / std::sqrt(3 * n)) << c.shape.ToString();
      EXPECT_NEAR(m.deviation, limit / std::sqrt(3), 0.01 * limit) << c.shape.ToString();
    }
  }
}

TEST(InitializersTest, HeIsNormalAndCutAtTwoDeviations) {
  constexpr double kCut = 2 / 0.87962566;  // in deviations of what is left
  for (const Shape& shape : {Shape{400, 100}, Shape{3, 3, 32, 128}}) {
    const double fan_in = shape.rank() == 2 ? 400 : 3 * 3 * 32;
    const double deviation = std::sqrt(2 / fan_in);
    const Moments m = MomentsOf(Initial(HeNormal(), shape));
    const auto n = static_cast<double>(shape.num_elements());
    EXPECT_NEAR(m.mean, 0, 5 * deviation / std::sqrt(n));
    EXPECT_NEAR(m.deviation, deviation, 5 * deviation / std::sqrt(2 * n));
    EXPECT_LE(m.largest, kCut * deviation * (1 + 1e-6));
    EXPECT_GT(m.largest, 0.99 * kCut * deviation);
  }
}

TEST(InitializersTest, NormalHasTheDeviationThatIsAskedFor) {
  const Moments m = MomentsOf(Initial(Normal(0.02), {200, 200}));
  EXPECT_NEAR(m.mean, 0, 5 * 0.02 / 200);
  EXPECT_NEAR(m.deviation, 0.02, 5 * 0.02 / (std::sqrt(2) * 200));
  EXPECT_GT(m.largest, 3 * 0.02);
  EXPECT_EQ(Initial(Normal(0), {2}), (std::vector<double>{0, 0}));
}

TEST(InitializersTest, DrawsFollowFromSeedAndVariable) {
  for (Initializer (*make)(uint64_t) : {+[](uint64_t seed) { return GlorotUniform(seed); },
                                        +[](uint64_t seed) { return HeNormal(seed); },
                                        +[](uint64_t seed) { return Normal(1, seed); }}) {
    const std::vector<double> values = Initial(make(3), {8, 8});
    EXPECT_EQ(values, Initial(make(3), {8, 8})) << "the same in another program";
    EXPECT_NE(values, Initial(make(4), {8, 8})) << "another seed";
    EXPECT_NE(values, Initial(make(3), {8, 8}, DType::kFloat, "v")) << "another name";
    Program p;
    for (const char* scope : {"first", "second"}) {
      const auto scoped = p.b.NameScope(scope);
      p.variables.Add("w", DType::kFloat, {8, 8}, make(3), true);
    }
    EXPECT_NE(p.ValueOf("first/w"), p.ValueOf("second/w")) << "another scope";
  }
}

TEST(InitializersTest, ASecondInitialisationGivesTheSameValues) {
  Program p;
  p.variables.Add("w", DType::kFloat, {8, 8}, GlorotUniform(), true);
  const std::vector<double> first = p.ValueOf("w");
  const Operation initialize = p.variables[0].initialize;
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(p.Run({}, {}, {initialize}).status(), Status());
    EXPECT_EQ(p.ValueOf("w"), first);
  }
}

TEST(InitializersTest, ADeviationMustBeANumberOfAtLeastZero) {
  for (const double deviation : {-1.0, std::nan(""), HUGE_VAL}) {
    Program p;
    p.variables.Add("w", DType::kFloat, {2}, Normal(deviation), true);
    EXPECT_EQ(p.b.status().code(), absl::StatusCode::kInvalidArgument) << deviation;
  }
}

}  // namespace
}  // namespace millrace::testing
