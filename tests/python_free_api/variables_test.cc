#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/python_free_api/program.h"

namespace millrace::testing {
namespace {

using ::testing::HasSubstr;

TEST(VariablesTest, AreNamedByScopeAndOutliveSessions) {
  Program p;
  {
    const auto scope = p.b.NameScope("layer");
    p.variables.Add("w", DType::kFloat, {2}, Constant(3), true);
  }
  EXPECT_EQ(p.variables[0].name, "layer/w");
  EXPECT_EQ(p.variables[0].shape, (Shape{2}));
  EXPECT_TRUE(p.variables[0].trainable);
  EXPECT_EQ(p.ValueOf("layer/w"), (std::vector<double>{3, 3}));
  const auto another = p.runtime->OpenSession(p.b);
  ASSERT_EQ(another.status(), Status());
  const auto read = RunStep(**another, {}, {p.variables[0].saved});
  ASSERT_EQ(read.status(), Status());
  EXPECT_EQ(NumbersOf((*read)[0]), (std::vector<double>{3, 3}));
}

// They would share their storage.
TEST(VariablesTest, ASecondOneOfANameIsRefusedWithBothLines) {
  Program p;
  const std::string first = Here(1);
  p.variables.Add("w", DType::kFloat, {2}, Zeros(), true);
  const std::string second = Here(1);
  const int i = p.variables.Add("w", DType::kFloat, {2}, Constant(1), true);
  EXPECT_FALSE(p.variables[i].handle.ok());
  EXPECT_EQ(p.b.status(), InvalidArgument("variable 'w' was made already, ", first,
                                          ": choose another name or a name scope (", second, ")"));
}

TEST(VariablesTest, ASecondOneIsRefusedFromAnotherSetOfThem) {
  Program p;
  Variables others(p.b);
  p.variables.Add("w", DType::kFloat, {2}, Zeros(), true);
  others.Add("w", DType::kFloat, {2}, Zeros(), true);
  EXPECT_THAT(MessageOf(p.b.status()), HasSubstr("variable 'w' was made already"));
}

TEST(VariablesTest, ASecondOneIsRefusedThoughAnotherNodeHasItsName) {
  Program p;
  Placeholder(p.b, DType::kFloat, {2}, "w");
  p.variables.Add("w", DType::kFloat, {2}, Zeros(), true);
  ASSERT_EQ(p.b.status(), Status());
  p.variables.Add("w", DType::kFloat, {2}, Zeros(), true);
  EXPECT_THAT(MessageOf(p.b.status()), HasSubstr("variable 'w' was made already"));
}

TEST(VariablesTest, InitializersThatDoNotFitAreRefusedWithTheUsersLine) {
  const struct {
    const char* what;
    Initializer initializer;
    const char* message;
  } cases[] = {
      {"none", nullptr, "variable 'w' has no initializer: give one, such as Zeros()"},
      {"gives nothing", [](GraphBuilder&, DType, const Shape&, SourceLocation) { return Value(); },
       "the initializer of variable 'w' gives no value"},
      {"another shape",
       [](GraphBuilder& b, DType dtype, const Shape&, SourceLocation where) {
         return Scalar(b, 1, dtype, where);
       },
       "has shape [], but the variable has [2]"},
      {"another dtype",
       [](GraphBuilder& b, DType, const Shape&, SourceLocation where) {
         return Const(b, Tensor::Zeros(DType::kInt32, {2}), "", where);
       },
       "int32"},
  };
  for (const auto& c : cases) {
    Program p;
    const std::string here = Here(1);
    p.variables.Add("w", DType::kFloat, {2}, c.initializer, true);
    EXPECT_EQ(p.b.status().code(), absl::StatusCode::kInvalidArgument) << c.what;
    EXPECT_THAT(MessageOf(p.b.status()), HasSubstr(c.message)) << c.what;
    EXPECT_THAT(MessageOf(p.b.status()), HasSubstr(here)) << c.what;
    EXPECT_FALSE(p.variables.Initialize().ok()) << c.what;
  }
}

TEST(VariablesTest, AVariableNeedsAName) {
  Program p;
  p.variables.Add("", DType::kFloat, {2}, Zeros(), true);
  EXPECT_THAT(MessageOf(p.b.status()), HasSubstr("a variable needs a name"));
}

TEST(VariablesTest, AfterAnErrorTheyArePoisonedAndTheErrorStays) {
  Program p;
  p.b.Fail(InvalidArgument("the first"), SourceLocation{"model.cc", 3});
  const int i = p.variables.Add("w", DType::kFloat, {2}, Zeros(), true);
  EXPECT_EQ(i, 0);
  EXPECT_FALSE(p.variables[i].handle.ok());
  EXPECT_FALSE(p.variables[p.variables.GlobalStep()].handle.ok());
  EXPECT_FALSE(p.variables.Initialize().ok());
  EXPECT_EQ(MessageOf(p.b.status()), "the first (at model.cc:3)");
  EXPECT_EQ(p.runtime->OpenSession(p.b).status(), p.b.status());
}

TEST(VariablesTest, TheGlobalStepIsOneAtTheRootWhateverScopeIsCurrent) {
  Program p;
  const Operation before = p.b.Add("NoOp", {}, {}, SourceLocation(), "before");
  const auto name = p.b.NameScope("layer");
  const auto device = p.b.DeviceScope("/job:nowhere");
  const auto after = p.b.ControlDependencies({before});
  const int step = p.variables.GlobalStep();
  EXPECT_EQ(p.variables.GlobalStep(), step);
  const Variables::Variable& v = p.variables[step];
  EXPECT_EQ(v.name, "global_step");
  EXPECT_EQ(v.dtype, DType::kInt64);
  EXPECT_EQ(v.shape, Shape());
  EXPECT_FALSE(v.trainable);
  const Node& handle = *p.b.graph().Find("global_step");
  EXPECT_EQ(handle.requested_device(), "");
  EXPECT_TRUE(handle.control_inputs().empty());
}

// Else a step that initialises or restores would run what the variable was made after.
TEST(VariablesTest, TheirSetUpWaitsForNothingAround) {
  Program p;
  const Operation before = p.b.Add("NoOp", {}, {}, SourceLocation(), "before");
  const auto after = p.b.ControlDependencies({before});
  p.variables.Add("w", DType::kFloat, {2}, GlorotUniform(), true);
  for (const Node* node :
       {p.b.graph().Find("w_setup/initialize"), p.b.graph().Find("w_setup/restore"),
        p.b.graph().Find("w_setup/saved")}) {
    ASSERT_NE(node, nullptr);
    EXPECT_TRUE(node->control_inputs().empty()) << node->name();
  }
}

}  // namespace
}  // namespace millrace::testing
