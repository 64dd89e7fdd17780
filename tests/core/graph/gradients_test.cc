#include "core/graph/gradients.h"

#include "core/graph/graph_text.h"
#include "core/graph/verify.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/graph/test_ops.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

class GradientsTest : public ::testing::Test {
 protected:
  GradientsTest() : b_(TestOps()) {}

  Value Input(absl::string_view name, DType dtype = DType::kFloat) {
    return b_.AddOne("Placeholder", {}, {{"dtype", dtype}, {"shape", PartialShape{2}}},
                     SourceLocation(), name);
  }
  Value Op(absl::string_view op, Value x, absl::string_view name = "") {
    return b_.AddOne(op, {x}, {}, SourceLocation(), name);
  }
  // The nodes that the call added, and the gradients, as text.
  std::string Added(absl::Span<const Value> ys, absl::Span<const Value> xs,
                    absl::Span<const Value> dys = {}) {
    EXPECT_TRUE(b_.status().ok()) << b_.status();
    const std::string before = GraphToText(b_.graph());
    const auto gradients = Gradients(ys, xs, dys, SourceLocation{"model.cc", 7});
    if (!gradients.ok()) return std::string(gradients.status().message());
    const Status verified = Verify(b_.graph());
    EXPECT_TRUE(verified.ok()) << verified;
    const std::string after = GraphToText(b_.graph());
    EXPECT_EQ(after.substr(0, before.size()), before);
    std::string text = after.substr(before.size());
    for (const Value& dx : *gradients) absl::StrAppend(&text, "-> ", dx.name(), "\n");
    return text;
  }

  GraphBuilder b_;
};

// d(w x + w)/dw = x + 1, as w is used twice.
TEST_F(GradientsTest, SumsWherePathsMeet) {
  const Value x = Input("x");
  const Value w = Input("w");
  EXPECT_EQ(Added({Add(Mul(w, x), w)}, {w}),
            "gradients/OnesLike = OnesLike(Add)\n"
            "gradients/Mul_grad/Mul = Mul(gradients/OnesLike, x)\n"
            "gradients/AddN = AddN(gradients/OnesLike, gradients/Mul_grad/Mul)\n"
            "-> gradients/AddN:0\n");
}

// y = a b with a = -x and b = x x: each node is visited once, when both its users are done.
TEST_F(GradientsTest, Diamond) {
  const Value x = Input("x");
  const Value a = Op("Neg", x, "a");
  const Value b = b_.AddOne("Mul", {x, x}, {}, SourceLocation(), "b");
  EXPECT_EQ(Added({Mul(a, b)}, {x}),
            "gradients/OnesLike = OnesLike(Mul)\n"
            "gradients/Mul_grad/Mul = Mul(gradients/OnesLike, b)\n"
            "gradients/Mul_grad/Mul_1 = Mul(gradients/OnesLike, a)\n"
            "gradients/b_grad/Mul = Mul(gradients/Mul_grad/Mul_1, x)\n"
            "gradients/b_grad/Mul_1 = Mul(gradients/Mul_grad/Mul_1, x)\n"
            "gradients/a_grad/Neg = Neg(gradients/Mul_grad/Mul)\n"
            "gradients/AddN = AddN(gradients/b_grad/Mul, gradients/b_grad/Mul_1, "
            "gradients/a_grad/Neg)\n"
            "-> gradients/AddN:0\n");
}

TEST_F(GradientsTest, GivenGradientsAreTheSeeds) {
  const Value x = Input("x");
  const Value dy = Input("dy");
  EXPECT_EQ(Added({Op("Neg", x), Op("Identity", x)}, {x}, {dy, Value()}),
            "gradients/OnesLike = OnesLike(Identity)\n"
            "gradients/Neg_grad/Neg = Neg(dy)\n"
            "gradients/AddN = AddN(gradients/OnesLike, gradients/Neg_grad/Neg)\n"
            "-> gradients/AddN:0\n");
}

TEST_F(GradientsTest, InnerValuesAndTheResultItselfAreXs) {
  const Value x = Input("x");
  const Value a = Op("Neg", x, "a");
  const Value y = Op("Neg", a, "y");
  EXPECT_EQ(Added({y}, {y, a, x, x}),
            "gradients/OnesLike = OnesLike(y)\n"
            "gradients/y_grad/Neg = Neg(gradients/OnesLike)\n"
            "gradients/a_grad/Neg = Neg(gradients/y_grad/Neg)\n"
            "-> gradients/OnesLike:0\n-> gradients/y_grad/Neg:0\n"
            "-> gradients/a_grad/Neg:0\n-> gradients/a_grad/Neg:0\n");
}

// Only what is between the xs and the ys is visited: Ceil is not differentiable.
TEST_F(GradientsTest, WhatIsOffThePathsDoesNotMatter) {
  const Value x = Input("x");
  const Value c = Op("Ceil", Input("z"));
  Op("Ceil", Op("Neg", x));
  EXPECT_EQ(Added({Mul(x, c)}, {x}),
            "gradients/OnesLike = OnesLike(Mul)\n"
            "gradients/Mul_grad/Mul = Mul(gradients/OnesLike, Ceil)\n"
            "-> gradients/Mul_grad/Mul:0\n");
}

TEST_F(GradientsTest, OutputsWithoutGradientCountAsZero) {
  const Value x = Input("x");
  const std::vector<Value> halves = b_.AddMany("Halves", {x}, {}, 2, SourceLocation());
  EXPECT_EQ(Added({halves[1]}, {x}),
            "gradients/OnesLike = OnesLike(Halves:1)\n"
            "gradients/Halves_grad/ZerosLike = ZerosLike(Halves)\n"
            "gradients/Halves_grad/Add = Add(gradients/Halves_grad/ZerosLike, "
            "gradients/OnesLike)\n"
            "-> gradients/Halves_grad/Add:0\n");
}

TEST_F(GradientsTest, AZeroGradientIsZeros) {
  const Value x = Input("x");
  EXPECT_EQ(Added({Op("Sign", Op("Neg", x))}, {x}),
            "gradients/OnesLike = OnesLike(Sign)\n"
            "gradients/ZerosLike = ZerosLike(x)\n"
            "-> gradients/ZerosLike:0\n");
}

// The gradient function did not pass anything on to what is not differentiable.
TEST_F(GradientsTest, ANodeThatNoGradientReachesNeedsNone) {
  const Value x = Input("x");
  EXPECT_EQ(Added({Op("Sign", Op("Ceil", x))}, {x}),
            "gradients/OnesLike = OnesLike(Sign)\n"
            "gradients/ZerosLike = ZerosLike(x)\n"
            "-> gradients/ZerosLike:0\n");
}

TEST_F(GradientsTest, NodesAreBesideTheirForwardNodes) {
  const Value x = Input("x");
  Value a;
  Value y;
  {
    const auto device = b_.DeviceScope("/job:ps/task:1");
    a = Op("Neg", x, "a");
  }
  y = Op("Neg", a, "y");
  const auto device = b_.DeviceScope("/job:elsewhere");
  EXPECT_EQ(Added({y}, {x}),
            "gradients/OnesLike = OnesLike(y)\n"
            "gradients/y_grad/Neg = Neg(gradients/OnesLike)\n"
            "gradients/a_grad/Neg = Neg(gradients/y_grad/Neg) @/job:ps/task:1\n"
            "-> gradients/a_grad/Neg:0\n");
}

TEST_F(GradientsTest, SecondDerivatives) {
  const Value x = Input("x");
  const Value y = Mul(x, x);
  const auto first = Gradients({y}, {x});
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = Gradients({Mul((*first)[0], x)}, {x});
  // AddN of the test ops has no gradient.
  EXPECT_THAT(second.status().message(),
              HasSubstr("no gradient flows through AddN 'gradients/AddN'"));
}

TEST_F(GradientsTest, VariablesAreDifferentiatedByTheirValues) {
  const Value w = b_.AddOne("VarHandleOp", {}, {{"dtype", DType::kFloat}, {"shape", Shape{2}}},
                            SourceLocation(), "w");
  const Value read = b_.ReadVariable(w, DType::kFloat, SourceLocation());
  const Value y = Op("Neg", read, "y");
  EXPECT_EQ(Added({y}, {read}),
            "gradients/OnesLike = OnesLike(y)\n"
            "gradients/y_grad/Neg = Neg(gradients/OnesLike)\n"
            "-> gradients/y_grad/Neg:0\n");
  EXPECT_THAT(Added({y}, {w}), HasSubstr("read the variable and take the value"));
}

TEST_F(GradientsTest, Errors) {
  const Value x = Input("x");
  const Value z = Input("z");
  const Value y = Op("Neg", x, "y");
  const Value integer = Op("Round", x, "integer");
  GraphBuilder other(TestOps());
  const Value foreign =
      other.AddOne("Placeholder", {}, {{"dtype", DType::kFloat}}, SourceLocation(), "foreign");
  const struct {
    std::vector<Value> ys, xs, dys;
    const char* message;
  } cases[] = {
      {{}, {x}, {}, "there is no y to differentiate"},
      {{Value()}, {x}, {}, "y 0 is an empty Value"},
      {{y}, {x, z}, {}, "no gradient with respect to 'z' (x 1): no y depends on it"},
      {{x}, {y}, {}, "no gradient with respect to 'y' (x 0): no y depends on it"},
      {{integer}, {x}, {}, "y 0 (integer:0) is int64, but only floating-point values have"},
      {{y}, {integer}, {}, "x 0 (integer:0) is int64"},
      {{Op("ToFloat", integer)}, {x}, {}, "no gradient with respect to 'x' (x 0)"},
      {{Op("StopGradient", x)}, {x}, {}, "no gradient with respect to 'x' (x 0)"},
      {{Op("Ceil", x, "c")},
       {x},
       {},
       "no gradient flows through Ceil 'c', which is between the xs and the ys: it is a step "
       "function (at model.cc:7)"},
      {{y}, {foreign}, {}, "x 0 is not a value of the builder of y 0"},
      {{y}, {x}, {y, y}, "there are 2 dys for 1 ys"},
      {{y}, {x}, {Input("d", DType::kDouble)}, "dy 0 is double [2], but y 0 (y:0) is float [2]"},
      {{Op("Failing", x, "f")}, {x}, {}, "gradient of Failing 'f': not for an even window"},
      {{Op("Wrong", x, "w")},
       {x},
       {},
       "gradient of Wrong 'w': that of input 0 is int64 [2], but the input is float [2]"},
  };
  for (const auto& c : cases) EXPECT_THAT(Added(c.ys, c.xs, c.dys), HasSubstr(c.message));
  EXPECT_TRUE(b_.status().ok()) << b_.status();
}

TEST_F(GradientsTest, TheBuildersFirstErrorIsTheResult) {
  const Value x = Input("x");
  b_.Fail(InvalidArgument("no such layer"), SourceLocation{"model.cc", 3});
  EXPECT_EQ(Gradients({x}, {x}).status().message(), "no such layer (at model.cc:3)");
}

TEST_F(GradientsTest, AMissingOpIsNamed) {
  auto ops = std::make_shared<OpRegistry>();
  ops->Add(OpDef("Source").Output("y: float").Shape(ScalarShape).NotDifferentiable("a source"));
  GraphBuilder b(ops);
  const Value x = b.AddOne("Source", {}, {}, SourceLocation());
  EXPECT_THAT(Gradients({x}, {x}).status().message(), HasSubstr("unknown op 'OnesLike'"));
}

TEST_F(GradientsTest, DepthAndWidthAreNotLimited) {
  const ProcessorTimeLimit limit;
  const Value x = Input("x");
  Value y = x;
  for (int i = 0; i < 100'000; ++i) y = Op("Neg", y);
  auto gradients = Gradients({y}, {x});
  ASSERT_TRUE(gradients.ok()) << gradients.status();
  EXPECT_EQ(b_.graph().num_nodes(), 200'002);
  // 2^30 paths, but 30 nodes.
  y = x;
  for (int i = 0; i < 30; ++i) y = Add(y, y);
  gradients = Gradients({y}, {x});
  ASSERT_TRUE(gradients.ok()) << gradients.status();
}

TEST_F(GradientsTest, ACycleIsAnError) {
  const Value x = Input("x");
  const Value a = Op("Neg", x, "a");
  const Value b = Op("Neg", a, "b");
  ASSERT_TRUE(b_.graph().ReplaceInput(a.port().node, 0, b.port()).ok());
  EXPECT_THAT(Gradients({b}, {x}).status().message(), HasSubstr("cycle"));
}

}  // namespace
}  // namespace millrace
