// Three steps of each optimizer against numbers that follow from the formulas of optimizer.h, here
// computed by hand or written out.
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/python_free_api/program.h"

namespace millrace::testing {
namespace {

// w, double[2], begins at (1, -2); the gradient of the loss sum(c w) is c, which is fed.
class OptimizersTest : public ::testing::Test {
 protected:
  using Pair = std::vector<double>;

  void Build(const Optimizer& optimizer) {
    const int i = p_.variables.Add(
        "w", DType::kDouble, {2},
        [](GraphBuilder& b, DType, const Shape& shape, SourceLocation where) {
          return Const(b, Tensor::Of<double>(shape, {1, -2}), "", where);
        },
        true);
    const Value c = Placeholder(p_.b, DType::kDouble, {2}, "c");
    train_ = Minimize(ReduceSum(c * ReadVariable(p_.variables[i].handle)), p_.variables, optimizer);
    ASSERT_EQ(p_.b.status(), Status());
  }
  // w after a step with that gradient.
  Pair Step(double c0, double c1) {
    EXPECT_EQ(p_.Run({{"c", Tensor::Of<double>({2}, {c0, c1})}}, {}, {train_}).status(), Status());
    return p_.ValueOf("w");
  }
  static void ExpectNear(const Pair& actual, const Pair& expected) {
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-12);
  }

  Program p_;
  Operation train_;
};

TEST_F(OptimizersTest, Sgd) {
  Build(*Sgd(0.5));
  ExpectNear(Step(1, 2), {0.5, -3});   // 1 - 0.5*1, -2 - 0.5*2
  ExpectNear(Step(-2, 0), {1.5, -3});  // 0.5 + 0.5*2
  ExpectNear(Step(4, -1), {-0.5, -2.5});
  EXPECT_EQ(p_.variables.size(), 2) << "w and the global step: no slots";
}

TEST_F(OptimizersTest, Momentum) {
  Build(*Momentum(0.1, 0.5));
  ExpectNear(Step(1, 2), {0.9, -2.2});      // m = (1, 2)
  ExpectNear(Step(1, 0), {0.75, -2.3});     // m = 0.5 (1, 2) + (1, 0) = (1.5, 1)
  ExpectNear(Step(0, -1), {0.675, -2.25});  // m = 0.5 (1.5, 1) + (0, -1) = (0.75, -0.5)
  ExpectNear(p_.ValueOf("optimizer/w/momentum"), {0.75, -0.5});
}

TEST_F(OptimizersTest, NesterovMomentum) {
  Build(*Momentum(0.1, 0.5, /*nesterov=*/true));
  ExpectNear(Step(1, 2), {0.85, -2.3});       // m = (1, 2); g + 0.5 m = (1.5, 3)
  ExpectNear(Step(1, 0), {0.675, -2.35});     // m = (1.5, 1); (1.75, 0.5)
  ExpectNear(Step(0, -1), {0.6375, -2.225});  // m = (0.75, -0.5); (0.375, -1.25)
}

TEST_F(OptimizersTest, Adam) {
  Build(*Adam(0.1, 0.5, 0.75, 1e-8));
  // Step 1: m = 0.5 g, v = 0.25 g^2; the rate is 0.1 sqrt(1 - 0.75) / (1 - 0.5) = 0.1. So w moves
  // by 0.1 * 0.5 g / (0.5 |g| + 1e-8).
  ExpectNear(Step(1, -4), {1 - 0.1 * 0.5 / (0.5 + 1e-8), -2 + 0.1 * 2 / (2 + 1e-8)});
  // Step 2, g = (2, 0): m = (0.25 + 1, -1), v = (0.1875 + 1, 3); the rate is
  // 0.1 sqrt(1 - 0.5625) / (1 - 0.25).
  const double rate2 = 0.1 * std::sqrt(0.4375) / 0.75;
  const Pair after2 = {1 - 0.1 * 0.5 / (0.5 + 1e-8) - rate2 * 1.25 / (std::sqrt(1.1875) + 1e-8),
                       -2 + 0.1 * 2 / (2 + 1e-8) + rate2 * 1 / (std::sqrt(3.0) + 1e-8)};
  ExpectNear(Step(2, 0), after2);
  // Step 3, g = (0, 1): m = (0.625, 0), v = (0.890625, 2.5); the rate is
  // 0.1 sqrt(1 - 0.421875) / (1 - 0.125).
  const double rate3 = 0.1 * std::sqrt(0.578125) / 0.875;
  ExpectNear(Step(0, 1), {after2[0] - rate3 * 0.625 / (std::sqrt(0.890625) + 1e-8), after2[1]});
  ExpectNear(p_.ValueOf("optimizer/w/adam_m"), {0.625, 0});
  ExpectNear(p_.ValueOf("optimizer/w/adam_v"), {0.890625, 2.5});
  ExpectNear(p_.ValueOf("optimizer/beta1_power"), {0.0625});      // 0.5^4: for the next step
  ExpectNear(p_.ValueOf("optimizer/beta2_power"), {0.31640625});  // 0.75^4
}

TEST_F(OptimizersTest, Adagrad) {
  Build(*Adagrad(0.1, 0.25));
  // The sums of squares begin at 0.25.
  ExpectNear(Step(1, -2), {1 - 0.1 / std::sqrt(1.25), -2 + 0.2 / std::sqrt(4.25)});
  ExpectNear(Step(0, 1),
             {1 - 0.1 / std::sqrt(1.25), -2 + 0.2 / std::sqrt(4.25) - 0.1 / std::sqrt(5.25)});
  ExpectNear(p_.ValueOf("optimizer/w/adagrad_sum"), {1.25, 5.25});
}

TEST_F(OptimizersTest, RmsProp) {
  Build(*RmsProp(0.1, 0.75, 0.5, 0.5));
  // Step 1: s = 0.25 g^2 = (0.25, 1), m = 0.1 g / sqrt(s + 0.5).
  const Pair m1 = {0.1 / std::sqrt(0.75), -0.2 / std::sqrt(1.5)};
  ExpectNear(Step(1, -2), {1 - m1[0], -2 - m1[1]});
  // Step 2, g = (2, 0): s = (0.1875 + 1, 0.75), m = 0.5 m + 0.1 g / sqrt(s + 0.5).
  const Pair m2 = {0.5 * m1[0] + 0.2 / std::sqrt(1.6875), 0.5 * m1[1]};
  ExpectNear(Step(2, 0), {1 - m1[0] - m2[0], -2 - m1[1] - m2[1]});
  ExpectNear(p_.ValueOf("optimizer/w/rmsprop_square"), {1.1875, 0.75});
  ExpectNear(p_.ValueOf("optimizer/w/rmsprop_momentum"), m2);
}

TEST_F(OptimizersTest, AnAdamStepIsAsLongAsTheRateWhateverTheGradient) {
  Build(*Adam());
  ExpectNear(Step(1e3, -1e3), {1 - 1e-3 / (1 + 1e-8 / (1e3 * std::sqrt(1e-3))),
                               -2 + 1e-3 / (1 + 1e-8 / (1e3 * std::sqrt(1e-3)))});
}

TEST(OptimizerSettingsTest, AreCheckedWhenTheStepIsBuilt) {
  const double nan = std::nan("");
  const struct {
    std::unique_ptr<Optimizer> optimizer;
    const char* message;
  } cases[] = {
      {Sgd(-1), "an optimizer's rate must be a number of at least 0, but is -1"},
      {Sgd(nan), "an optimizer's rate must be a number of at least 0, but is nan"},
      {Sgd(HUGE_VAL), "an optimizer's rate must be a number of at least 0, but is inf"},
      {Momentum(0.1, -0.5), "an optimizer's momentum must be a number of at least 0, but is -0.5"},
      {Momentum(nan), "an optimizer's rate must be a number of at least 0, but is nan"},
      {Adagrad(-1), "an optimizer's rate must be a number of at least 0, but is -1"},
      {Adagrad(0.1, 0), "an optimizer's initial sum must be above 0, but is 0"},
      {RmsProp(nan), "an optimizer's rate must be a number of at least 0, but is nan"},
      {RmsProp(0.1, 1), "an optimizer's decay must be in [0,1), but is 1"},
      {RmsProp(0.1, 0.9, -1), "an optimizer's momentum must be a number of at least 0, but is -1"},
      {RmsProp(0.1, 0.9, 0, 0), "an optimizer's epsilon must be above 0, but is 0"},
      {Adam(-1), "an optimizer's rate must be a number of at least 0, but is -1"},
      {Adam(0.1, 1), "an optimizer's beta1 must be in [0,1), but is 1"},
      {Adam(0.1, 0.9, -0.1), "an optimizer's beta2 must be in [0,1), but is -0.1"},
      {Adam(0.1, 0.9, 0.999, 0), "an optimizer's epsilon must be above 0, but is 0"},
  };
  for (const auto& c : cases) {
    Program p;
    const int w = p.variables.Add("w", DType::kFloat, {2}, Zeros(), true);
    const Value loss = ReduceSum(ReadVariable(p.variables[w].handle));
    const std::string here = Here(1);
    EXPECT_FALSE(Minimize(loss, p.variables, *c.optimizer).ok()) << c.message;
    EXPECT_EQ(p.b.status().code(), absl::StatusCode::kInvalidArgument) << c.message;
    EXPECT_TRUE(MessageOf(p.b.status()).find(c.message) != std::string::npos)
        << p.b.status() << ", not " << c.message;
    EXPECT_TRUE(MessageOf(p.b.status()).find(here) != std::string::npos) << p.b.status();
  }
}

TEST(OptimizerSettingsTest, EachParameterNeedsAGradient) {
  for (const std::unique_ptr<Optimizer>& optimizer : {Sgd(0.1), Momentum(0.1), Adam()}) {
    Program p;
    const int w = p.variables.Add("w", DType::kFloat, {2}, Zeros(), true);
    EXPECT_TRUE(optimizer->Apply(p.variables, {w}, {}, SourceLocation::Current()).empty());
    EXPECT_TRUE(MessageOf(p.b.status()).find("got 0 gradients for 1 parameters") !=
                std::string::npos)
        << p.b.status();
  }
}

}  // namespace
}  // namespace millrace::testing
