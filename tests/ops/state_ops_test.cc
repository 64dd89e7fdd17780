#include "ops/state_ops.h"

#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/match.h"
#include "ops/array_ops.h"
#include "ops/math_ops.h"
#include "tests/testing/array.h"
#include "tests/testing/graph_runner.h"
#include "tests/testing/op_text.h"

// Variables and their updates against the formulas, step by step, through the session.
namespace millrace::testing {
namespace {

class StateOpsTest : public ::testing::TestWithParam<DType> {
 protected:
  Value Variable(const char* name, std::vector<double> values) {
    const Shape shape{static_cast<int64_t>(values.size())};
    const Value handle = VariableHandle(b_, name, GetParam(), shape);
    initial_.push_back(Assign(handle, Constant({{shape.dim(0)}, std::move(values)})));
    return handle;
  }
  Value Constant(const Array& array) {
    const auto tensor = ToTensor(array, GetParam());
    EXPECT_TRUE(tensor.ok()) << tensor.status();
    return Const(b_, *tensor);
  }
  Value Number(double value) { return Scalar(b_, value, GetParam()); }

  // A session in which the variables have their first values.
  void Start() {
    const Operation initialize = Group(b_, initial_, "initialize");
    ASSERT_TRUE(b_.status().ok()) << b_.status();
    auto session = runner_.NewSession(b_.graph());
    ASSERT_TRUE(session.ok()) << session.status();
    session_ = *std::move(session);
    const auto done = GraphRunner::Run(*session_, {}, {}, {initialize.name()});
    ASSERT_TRUE(done.ok()) << done.status();
  }
  void Step(Operation target) {
    const auto done = GraphRunner::Run(*session_, {}, {}, {target.name()});
    ASSERT_TRUE(done.ok()) << done.status();
  }
  void Expect(Value value, const std::vector<double>& wanted) {
    const auto got = GraphRunner::Run(*session_, {}, {value.name()});
    ASSERT_TRUE(got.ok()) << got.status();
    const auto array = ToArray((*got)[0]);
    ASSERT_TRUE(array.ok()) << array.status();
    ASSERT_EQ(array->values.size(), wanted.size());
    const double tolerance = GetParam() == DType::kDouble ? 1e-12 : 1e-5;
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_NEAR((*array)[i], wanted[i], tolerance * std::max(1.0, std::abs(wanted[i]))) << i;
    }
  }

  GraphRunner runner_;
  GraphBuilder b_{AllOps()};
  std::vector<Operation> initial_;
  std::unique_ptr<Session> session_;
};

TEST_P(StateOpsTest, AssignAddSubAndRead) {
  const Value w = Variable("w", {1, 2, 3});
  const Operation add = AssignAdd(w, Constant({{3}, {10, 20, 30}}));
  const Operation sub = AssignSub(w, Constant({{3}, {1, 1, 1}}));
  const Value read = ReadVariable(w);
  Start();
  Expect(read, {1, 2, 3});
  Step(add);
  Expect(read, {11, 22, 33});
  Step(sub);
  Step(sub);
  Expect(read, {9, 20, 31});
}

TEST_P(StateOpsTest, VariablesHaveNoValueUntilAssigned) {
  const Value w = VariableHandle(b_, "w", GetParam(), {2});
  const Value is = IsInitialized(w);
  const Operation assign = Assign(w, Constant({{2}, {1, 2}}));
  const Value read = ReadVariable(w);
  Start();
  Expect(is, {0});
  const auto unread = GraphRunner::Run(*session_, {}, {read.name()});
  ASSERT_FALSE(unread.ok());
  EXPECT_EQ(unread.status().code(), absl::StatusCode::kFailedPrecondition) << unread.status();
  EXPECT_TRUE(absl::StrContains(unread.status().message(), "w")) << unread.status();
  Step(assign);
  Expect(is, {1});
  Expect(read, {1, 2});
}

TEST_P(StateOpsTest, AReadIsAValue) {
  const Value w = Variable("w", {1, 2});
  const Value before = ReadVariable(w);
  const Operation update = AssignAdd(w, before);
  const Value after = ReadVariable(w);
  Start();
  const auto both = GraphRunner::Run(*session_, {}, {before.name(), after.name()}, {update.name()});
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(ToArray((*both)[0])->values, (std::vector<double>{1, 2}));
  EXPECT_EQ(ToArray((*both)[1])->values, (std::vector<double>{2, 4}));
}

TEST_P(StateOpsTest, GradientDescent) {
  const Value w = Variable("w", {1, -2, 0});
  const Operation update = ApplyGradientDescent(w, Number(0.5), Constant({{3}, {2, 4, -1}}));
  const Value read = ReadVariable(w);
  Start();
  Step(update);
  Expect(read, {0, -4, 0.5});
}

TEST_P(StateOpsTest, Momentum) {
  for (const bool nesterov : {false, true}) {
    const double rate = 0.1, momentum = 0.9;
    const std::vector<double> gradient = {2, -1};
    const std::string suffix = nesterov ? "_nesterov" : "";
    const Value w = Variable(StrCat("w", suffix).c_str(), {1, 2});
    const Value m = Variable(StrCat("m", suffix).c_str(), {0.5, 0});
    const Operation update =
        ApplyMomentum(w, m, Number(rate), Constant({{2}, gradient}), Number(momentum), nesterov);
    const Value read_w = ReadVariable(w), read_m = ReadVariable(m);
    Start();
    std::vector<double> wanted_w = {1, 2}, wanted_m = {0.5, 0};
    for (int step = 0; step < 3; ++step) {
      Step(update);
      for (size_t i = 0; i < 2; ++i) {
        wanted_m[i] = momentum * wanted_m[i] + gradient[i];
        wanted_w[i] -= rate * (nesterov ? gradient[i] + momentum * wanted_m[i] : wanted_m[i]);
      }
      Expect(read_w, wanted_w);
      Expect(read_m, wanted_m);
    }
  }
}

TEST_P(StateOpsTest, AdagradAndRmsProp) {
  const double rate = 0.1, decay = 0.75, momentum = 0.5, epsilon = 1e-3;
  const std::vector<double> gradient = {2, -1};
  const Value w = Variable("w", {1, 2}), sum = Variable("sum", {0.5, 0.25});
  const Value x = Variable("x", {1, 2}), square = Variable("square", {1, 1}),
              m = Variable("m", {0, 0});
  const Value g = Constant({{2}, gradient});
  const Operation step = Group(b_, {ApplyAdagrad(w, sum, Number(rate), g),
                                    ApplyRmsProp(x, square, m, Number(rate), Number(decay),
                                                 Number(momentum), Number(epsilon), g)});
  const Value read_w = ReadVariable(w), read_x = ReadVariable(x);
  Start();
  std::vector<double> ww = {1, 2}, ws = {0.5, 0.25}, wx = {1, 2}, wq = {1, 1}, wm = {0, 0};
  for (int i = 0; i < 3; ++i) {
    Step(step);
    for (size_t k = 0; k < 2; ++k) {
      ws[k] += gradient[k] * gradient[k];
      ww[k] -= rate * gradient[k] / std::sqrt(ws[k]);
      wq[k] = decay * wq[k] + (1 - decay) * gradient[k] * gradient[k];
      wm[k] = momentum * wm[k] + rate * gradient[k] / std::sqrt(wq[k] + epsilon);
      wx[k] -= wm[k];
    }
    Expect(read_w, ww);
    Expect(read_x, wx);
  }
}

// Reads of rows and their updates keep the program's order.
TEST_P(StateOpsTest, RowsInOrder) {
  const Value table = Variable("table", {1, 2, 3});
  const Value one = Const(b_, Tensor::Of<int32_t>(Shape({2}), {1, 1}));
  const Value before = GatherRows(table, one);
  const Operation add = AddToRows(table, one, Constant({{2}, {10, 20}}));
  const Value between = GatherRows(table, one);
  const Operation sub = SubtractFromRows(table, one, Number(1));
  const Value after = ReadVariable(table);
  Start();
  const auto got = GraphRunner::Run(*session_, {}, {before.name(), between.name(), after.name()},
                                    {add.name(), sub.name()});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(ToArray((*got)[0])->values, (std::vector<double>{2, 2}));
  EXPECT_EQ(ToArray((*got)[1])->values, (std::vector<double>{32, 32}));
  EXPECT_EQ(ToArray((*got)[2])->values, (std::vector<double>{1, 30, 3}));
}

TEST_P(StateOpsTest, Adam) {
  const double rate = 0.01, beta1 = 0.9, beta2 = 0.99, epsilon = 1e-7;
  const std::vector<double> gradient = {2, -1, 0};
  const Value w = Variable("w", {1, 2, 3});
  const Value m = Variable("m", {0, 0, 0}), v = Variable("v", {0, 0, 0});
  const Value power1 = Variable("power1", {beta1}), power2 = Variable("power2", {beta2});
  const auto scalar = [&](Value handle) {
    return Reshape(ReadVariable(handle), std::vector<int64_t>{});
  };
  const Operation adam =
      ApplyAdam(w, m, v, scalar(power1), scalar(power2), Number(rate), Number(beta1), Number(beta2),
                Number(epsilon), Constant({{3}, gradient}));
  Operation train;
  {
    const auto after = b_.ControlDependencies({adam});
    train = Group(b_, {Assign(power1, ReadVariable(power1) * beta1),
                       Assign(power2, ReadVariable(power2) * beta2)});
  }
  const Value read_w = ReadVariable(w), read_m = ReadVariable(m), read_v = ReadVariable(v);
  Start();
  std::vector<double> ww = {1, 2, 3}, wm(3, 0.0), wv(3, 0.0);
  double p1 = beta1, p2 = beta2;
  for (int step = 0; step < 4; ++step) {
    Step(train);
    const double folded = rate * std::sqrt(1 - p2) / (1 - p1);
    for (size_t i = 0; i < 3; ++i) {
      wm[i] = beta1 * wm[i] + (1 - beta1) * gradient[i];
      wv[i] = beta2 * wv[i] + (1 - beta2) * gradient[i] * gradient[i];
      ww[i] -= folded * wm[i] / (std::sqrt(wv[i]) + epsilon);
    }
    p1 *= beta1;
    p2 *= beta2;
    Expect(read_w, ww);
    Expect(read_m, wm);
    Expect(read_v, wv);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, StateOpsTest, ::testing::Values(DType::kFloat, DType::kDouble),
                         [](const auto& info) { return std::string(Name(info.param)); });

}  // namespace
}  // namespace millrace::testing
