#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/python_free_api/program.h"

namespace millrace::testing {
namespace {

using ::testing::HasSubstr;

// What ClipByGlobalNorm makes of constant gradients.
std::vector<std::vector<double>> Clipped(std::vector<Tensor> gradients, double limit) {
  Program p;
  std::vector<Value> values;
  for (Tensor& gradient : gradients) values.push_back(Const(p.b, std::move(gradient)));
  values = ClipByGlobalNorm(values, limit);
  EXPECT_EQ(p.b.status(), Status());
  const StatusOr<std::vector<Tensor>> run = p.Run({}, values);
  EXPECT_EQ(run.status(), Status());
  std::vector<std::vector<double>> numbers;
  if (run.ok()) {
    for (const Tensor& tensor : *run) numbers.push_back(NumbersOf(tensor));
  }
  return numbers;
}

void ExpectNear(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-6);
}

TEST(ClipByGlobalNormTest, ScalesAllGradientsByTheNormOfAllOfThem) {
  // The norm of (3, 0) and (0, 4, 12) together is 13.
  const Tensor a = Tensor::Of<float>({2}, {3, 0});
  const Tensor b = Tensor::Of<float>({3, 1}, {0, 4, 12});
  const auto clipped = Clipped({a, b}, 6.5);
  ExpectNear(clipped[0], {1.5, 0});
  ExpectNear(clipped[1], {0, 2, 6});
}

TEST(ClipByGlobalNormTest, LeavesThoseWithinTheLimitAlone) {
  const Tensor a = Tensor::Of<float>({2}, {3, 4});
  for (const double limit : {5.0, 5.1, 1e30}) {
    EXPECT_EQ(Clipped({a}, limit)[0], (std::vector<double>{3, 4})) << limit;
  }
  EXPECT_EQ(Clipped({Tensor::Zeros(DType::kFloat, {2})}, 1)[0], (std::vector<double>{0, 0}));
}

TEST(ClipByGlobalNormTest, TakesGradientsOfSeveralDtypes) {
  const auto clipped = Clipped({Tensor::Of<double>({1}, {3}), Tensor::Of<float>({1}, {4})}, 2.5);
  ExpectNear(clipped[0], {1.5});
  ExpectNear(clipped[1], {2});
}

// Zeros, as limit / infinity gives them, would hide that the step went wrong.
TEST(ClipByGlobalNormTest, ANormThatIsNotFiniteMakesAllGradientsNan) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {infinity, std::nanf(""), 3e30F}) {
    const auto clipped = Clipped({Tensor::Of<float>({2}, {1, bad}), Tensor::Scalar(1.0F)}, 1);
    for (const auto& gradient : clipped) {
      for (const double value : gradient) EXPECT_TRUE(std::isnan(value)) << bad << ": " << value;
    }
  }
}

TEST(ClipByGlobalNormTest, LimitsThatAreNoneAreRefused) {
  for (const double limit : {0.0, -1.0, std::nan(""), HUGE_VAL, 1e39}) {
    Program p;
    const Value x = Placeholder(p.b, DType::kFloat, {2});
    const std::string here = Here(1);
    const std::vector<Value> clipped = ClipByGlobalNorm({x, x}, limit);
    EXPECT_EQ(clipped.size(), 2u);
    EXPECT_FALSE(clipped[0].ok());
    EXPECT_THAT(MessageOf(p.b.status()),
                HasSubstr("the limit of a global norm must be a finite float above 0, but is "));
    EXPECT_THAT(MessageOf(p.b.status()), HasSubstr(here));
  }
  EXPECT_TRUE(ClipByGlobalNorm({}, 1).empty());
}

// w (1, 1) with the loss 3 w0 + 4 w1.
struct LinearModel {
  explicit LinearModel(Program& p) {
    w = p.variables.Add("w", DType::kFloat, {2}, Constant(1), true);
    loss =
        ReduceSum(Const(p.b, Tensor::Of<float>({2}, {3, 4})) * ReadVariable(p.variables[w].handle));
  }
  int w;
  Value loss;
};

TEST(MinimizeTest, StepsDownTheGradientAndCounts) {
  Program p;
  const LinearModel model(p);
  const Operation train = Minimize(model.loss, p.variables, *Sgd(0.25));
  EXPECT_EQ(train.name(), "optimizer/step");
  EXPECT_EQ(p.ValueOf("global_step"), (std::vector<double>{0}));
  const StatusOr<std::vector<Tensor>> run = p.Run({}, {model.loss}, {train});
  ASSERT_EQ(run.status(), Status());
  EXPECT_EQ(NumbersOf((*run)[0]), (std::vector<double>{7})) << "of the variables before the step";
  EXPECT_EQ(p.ValueOf("w"), (std::vector<double>{0.25, 0}));
  ASSERT_EQ(p.Run({}, {}, {train}).status(), Status());
  EXPECT_EQ(p.ValueOf("w"), (std::vector<double>{-0.5, -1}));
  EXPECT_EQ(p.ValueOf("global_step"), (std::vector<double>{2}));
}

TEST(MinimizeTest, ClipsWhenItIsTold) {
  Program p;
  const LinearModel model(p);
  const Operation train =
      Minimize(model.loss, p.variables, *Sgd(1), {.clip_global_norm = 0.5});  // the norm is 5
  ASSERT_EQ(p.Run({}, {}, {train}).status(), Status());
  ExpectNear(p.ValueOf("w"), {1 - 0.3, 1 - 0.4});
}

TEST(MinimizeTest, LeavesVariablesAloneThatAreNotTrainable) {
  Program p;
  const LinearModel model(p);
  const int fixed = p.variables.Add("fixed", DType::kFloat, {2}, Constant(1), false);
  const Value loss = model.loss + ReduceSum(ReadVariable(p.variables[fixed].handle));
  const Operation train = Minimize(loss, p.variables, *Sgd(1));
  ASSERT_EQ(p.Run({}, {}, {train}).status(), Status());
  EXPECT_EQ(p.ValueOf("fixed"), (std::vector<double>{1, 1}));
  EXPECT_EQ(p.ValueOf("w"), (std::vector<double>{-2, -3}));
}

TEST(MinimizeTest, TwoLossesShareTheGlobalStep) {
  Program p;
  const LinearModel model(p);
  const Operation first = Minimize(model.loss, p.variables, *Momentum(0.1));
  const Operation second = Minimize(model.loss * 2.0, p.variables, *Momentum(0.1));
  ASSERT_EQ(p.b.status(), Status());
  ASSERT_EQ(p.Run({}, {}, {first}).status(), Status());
  ASSERT_EQ(p.Run({}, {}, {second}).status(), Status());
  EXPECT_EQ(p.ValueOf("global_step"), (std::vector<double>{2}));
  EXPECT_EQ(p.ValueOf("optimizer/w/momentum"), (std::vector<double>{3, 4}));
  EXPECT_EQ(p.ValueOf("optimizer_1/w/momentum"), (std::vector<double>{6, 8}));
}

// A read under control dependencies is one of its own.
TEST(MinimizeTest, TheGradientIsThatOfAllReads) {
  Program p;
  const LinearModel model(p);
  Value again;
  {
    const Operation barrier = p.b.Add("NoOp", {}, {}, SourceLocation(), "barrier");
    const auto after = p.b.ControlDependencies({barrier});
    again = ReadVariable(p.variables[model.w].handle);
  }
  const Value loss = model.loss + ReduceSum(again * 10.0);
  const Operation train = Minimize(loss, p.variables, *Sgd(1));
  ASSERT_EQ(p.Run({}, {}, {train}).status(), Status());
  EXPECT_EQ(p.ValueOf("w"), (std::vector<double>{1 - 13, 1 - 14}));
}

TEST(MinimizeTest, AVariableThatTheLossDoesNotDependOnIsNamed) {
  Program p;
  const LinearModel model(p);
  p.variables.Add("unused", DType::kFloat, {2}, Zeros(), true);
  const std::string here = Here(1);
  EXPECT_FALSE(Minimize(model.loss, p.variables, *Sgd(1)).ok());
  EXPECT_EQ(p.b.status(),
            InvalidArgument("the loss 'Sum:0' does not depend on the variable 'unused': use it, or "
                            "add it as one that is not trainable (",
                            here, ")"));
}

TEST(MinimizeTest, ALossThatDependsOnAVariableByIntegersAloneIsNamed) {
  Program p;
  const int w = p.variables.Add("w", DType::kFloat, {2}, Zeros(), true);
  const Value winner = ArgMax(ReadVariable(p.variables[w].handle), 0);
  const std::string here = Here(1);
  EXPECT_FALSE(Minimize(Cast(winner, DType::kFloat), p.variables, *Sgd(1)).ok());
  EXPECT_THAT(MessageOf(p.b.status()), HasSubstr("no gradient with respect to 'w/Read'"));
  EXPECT_THAT(MessageOf(p.b.status()), HasSubstr(here));
}

TEST(MinimizeTest, AClipLimitOutOfRangeIsRefused) {
  for (const double limit : {-1.0, std::nan(""), HUGE_VAL}) {
    Program p;
    const LinearModel model(p);
    EXPECT_FALSE(Minimize(model.loss, p.variables, *Sgd(1), {.clip_global_norm = limit}).ok());
    EXPECT_THAT(MessageOf(p.b.status()), HasSubstr("the limit of a global norm"));
  }
}

}  // namespace
}  // namespace millrace::testing
