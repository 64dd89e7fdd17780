#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/graph_opt/pass_case.h"
#include "tests/testing/op_text.h"

namespace millrace::testing {
namespace {

constexpr PassCase kCases[] = {
    {"EqualNodesMerge", "x | y |",
     R"(x = Placeholder() {dtype=float, shape=[2]}
        a = Neg(x)
        b = Neg(x)
        y = Mul(a, b))",
     R"(x = Placeholder() {dtype=float, shape=[2]}
        a = Neg(x)
        y = Mul(a, a)
        -> y)"},
    {"EqualChainsMerge", "x | y |",
     R"(x = Placeholder() {dtype=float, shape=[2]}
        a1 = Neg(x)
        a2 = Tanh(a1)
        b1 = Neg(x)
        b2 = Tanh(b1)
        y = Mul(a2, b2))",
     R"(x = Placeholder() {dtype=float, shape=[2]}
        a1 = Neg(x)
        a2 = Tanh(a1)
        y = Mul(a2, a2)
        -> y)"},
    {"OperandsOfCommutativeOpsInAnyOrder", "x z | y |",
     R"(x = Placeholder() {dtype=float, shape=[2]}
        z = Placeholder() {dtype=float, shape=[2]}
        a = AddV2(x, z)
        b = AddV2(z, x)
        y = Mul(a, b))",
     R"(x = Placeholder() {dtype=float, shape=[2]}
        z = Placeholder() {dtype=float, shape=[2]}
        a = AddV2(x, z)
        y = Mul(a, a)
        -> y)"},
    {"OperandsOfOthersInTheirOrder", "x z | y |",
     R"(x = Placeholder() {dtype=float, shape=[2]}
        z = Placeholder() {dtype=float, shape=[2]}
        a = Sub(x, z)
        b = Sub(z, x)
        y = Mul(a, b))",
     nullptr},
    {"OutputsAreToldApart", "x z | a b |",
     R"(x = Placeholder() {dtype=int32, shape=[2]}
        z = Placeholder() {dtype=int32, shape=[1]}
        r = BroadcastGradientArgs(x, z)
        a = Neg(r)
        b = Neg(r:1))",
     nullptr},
    {"AttributesAreCompared", "x | a b |",
     R"(x = Placeholder() {dtype=float, shape=[2,2]}
        a = MatMul(x, x)
        b = MatMul(x, x) {transpose_b=true})",
     nullptr},
    {"AnnotationsAreCompared", "x | a b |",
     R"(x = Placeholder() {dtype=float, shape=[2]}
        a = Neg(x) {_note="one"}
        b = Neg(x) {_note="two"})",
     nullptr},
    {"WhyADeviceWasAskedForIsNot", "x | a b |",
     R"(x = Placeholder() {dtype=float, shape=[2]}
        a = Neg(x) {_millrace_request_reason="one"} @/job:ps
        b = Neg(x) {_millrace_request_reason="two"} @/job:ps)",
     R"(x = Placeholder() {dtype=float, shape=[2]}
        a = Neg(x) {_millrace_request_reason="one"} @/job:ps
        -> a, a)"},
    {"DevicesAreCompared", "x | a b |",
     R"(x = Placeholder() {dtype=float, shape=[2]}
        a = Neg(x) @/job:worker/task:0
        b = Neg(x) @/job:worker/task:1)",
     nullptr},
    {"DtypesOfInputsAreCompared", "x | a b |",
     R"(x = Placeholder() {dtype=float, shape=[2]}
        a = Shape(x)
        b = Shape(x) {out_type=int64})",
     nullptr},
    {"EqualConstantsMerge", "x | y |",
     R"(x = Placeholder() {dtype=float, shape=[2]}
        a = Const() {dtype=float, value=tensor(float[]: 2)}
        b = Const() {dtype=float, value=tensor(float[]: 2)}
        y1 = Mul(x, a)
        y2 = Mul(x, b)
        y = Sub(y1, y2))",
     R"(x = Placeholder() {dtype=float, shape=[2]}
        a = Const() {dtype=float, value=tensor(float[]: 2)}
        y1 = Mul(x, a)
        y = Sub(y1, y1)
        -> y)"},
    {"ConstantsAreComparedByBits", "| a b c d |",
     R"(a = Const() {dtype=float, value=tensor(float[]: 0)}
        b = Const() {dtype=float, value=tensor(float[]: -0)}
        c = Const() {dtype=int32, value=tensor(int32[]: 0)}
        d = Const() {dtype=float, value=tensor(float[1]: 0)})",
     nullptr},
    {"StringsAreComparedWhole", "| a b c |",
     R"(a = Const() {dtype=string, value=tensor(string[2]: "ab" "c")}
        b = Const() {dtype=string, value=tensor(string[2]: "a" "bc")}
        c = Const() {dtype=string, value=tensor(string[2]: "ab" "c")})",
     R"(a = Const() {dtype=string, value=tensor(string[2]: "ab" "c")}
        b = Const() {dtype=string, value=tensor(string[2]: "a" "bc")}
        -> a, b, a)"},
    {"StatefulOpsAreNotMerged", "| a b |",
     R"(s = Const() {dtype=int32, value=tensor(int32[1]: 2)}
        a = RandomUniform(s) {dtype=float}
        b = RandomUniform(s) {dtype=float})",
     nullptr},
    {"ReadsAreNotMerged", "| a b |",
     R"(v = VarHandleOp() {dtype=float, shape=[2], shared_name="v"}
        a = ReadVariableOp(v) {dtype=float}
        b = ReadVariableOp(v) {dtype=float})",
     nullptr},
    {"FeedsAreNotMerged", "x z | x z |",
     R"(x = Placeholder() {dtype=float, shape=[2]}
        z = Placeholder() {dtype=float, shape=[2]})",
     nullptr},
    {"WhatWaitsForDifferentNodesDiffers", "x | a b |",
     R"(x = Placeholder() {dtype=float, shape=[2]}
        first = NoOp()
        second = NoOp()
        a = Neg(x, ^first)
        b = Neg(x, ^second))",
     nullptr},
    {"WhatWaitsForEqualNodesMerges", "x | a b | last",
     R"(x = Placeholder() {dtype=float, shape=[2]}
        p = Tanh(x)
        q = Tanh(x)
        a = Neg(x, ^p)
        b = Neg(x, ^q)
        last = NoOp(^q, ^b))",
     R"(x = Placeholder() {dtype=float, shape=[2]}
        p = Tanh(x)
        a = Neg(x, ^p)
        last = NoOp(^p, ^a)
        -> a, a
        run last)"},
    {"TargetsBecomeWhatTheyEqual", "x | a | b",
     R"(x = Placeholder() {dtype=float, shape=[2]}
        a = Neg(x)
        b = Neg(x))",
     R"(x = Placeholder() {dtype=float, shape=[2]}
        a = Neg(x)
        -> a
        run a)"},
    {"WhatOthersAreToBeWithStays", "x | a b c |",
     R"(x = Placeholder() {dtype=float, shape=[2]}
        a = Neg(x)
        b = Neg(x)
        c = Tanh(x) {_class=["loc:@b"]})",
     nullptr},
};

class CommonSubexpressionTest : public ::testing::TestWithParam<PassCase> {};

TEST_P(CommonSubexpressionTest, GivesTheText) {
  ExpectPass(*NewCommonSubexpressionPass(), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Cases, CommonSubexpressionTest, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

// Two constants of `count` floats that differ in the last one, or not at all.
PrunedGraph TwoConstants(int64_t count, float last) {
  std::vector<float> values(count, 1);
  Graph graph(AllOps());
  for (const char* name : {"a", "b"}) {
    NodeSpec spec;
    spec.name = name;
    spec.op = "Const";
    const Tensor tensor = Tensor::Of<float>({count}, values);
    spec.attrs = {{"dtype", DType::kFloat}, {"value", tensor}};
    EXPECT_TRUE(graph.AddNode(std::move(spec)).ok());
    values.back() = last;
  }
  StatusOr<PrunedGraph> pruned = Prune(graph, {{}, {"a", "b"}, {}});
  EXPECT_TRUE(pruned.ok()) << pruned.status();
  return *std::move(pruned);
}

TEST(CommonSubexpressionConstantsTest, OfSomeSizeAreComparedToTheLastElement) {
  PrunedGraph equal = TwoConstants(1000, 1);
  EXPECT_TRUE(NewCommonSubexpressionPass()->Run(equal).value());
  EXPECT_EQ(equal.fetches[0], equal.fetches[1]);
  PrunedGraph different = TwoConstants(1000, 2);
  EXPECT_FALSE(NewCommonSubexpressionPass()->Run(different).value());
  EXPECT_EQ(different.graph.num_nodes(), 2);
}

TEST(CommonSubexpressionConstantsTest, LargeOnesAreLeftAlone) {
  PrunedGraph large = TwoConstants(2000, 1);
  EXPECT_FALSE(NewCommonSubexpressionPass()->Run(large).value());
  EXPECT_EQ(large.graph.num_nodes(), 2);
}

// Their text is cut where it gets long.
TEST(CommonSubexpressionAttributesTest, ListsOfTensorsAreComparedToTheLastElement) {
  Graph graph(AllOps());
  std::vector<float> values(100, 1);
  for (const char* name : {"a", "b"}) {
    NodeSpec spec;
    spec.name = name;
    spec.op = "Const";
    spec.attrs = {{"dtype", DType::kFloat}, {"value", Tensor::Scalar(1.0F)}};
    spec.attrs.Set("_notes", std::vector<Tensor>{Tensor::Of<float>({100}, values)});
    ASSERT_TRUE(graph.AddNode(std::move(spec)).ok());
    values.back() = 2;
  }
  StatusOr<PrunedGraph> pruned = Prune(graph, {{}, {"a", "b"}, {}});
  ASSERT_TRUE(pruned.ok()) << pruned.status();
  EXPECT_FALSE(NewCommonSubexpressionPass()->Run(*pruned).value());
}

}  // namespace
}  // namespace millrace::testing
