#include <memory>

#include "gtest/gtest.h"
#include "tests/graph_opt/pass_case.h"
#include "tests/testing/local_machine.h"
#include "tests/testing/op_text.h"

namespace millrace::testing {
namespace {

LocalMachine& Machine() {
  static LocalMachine& machine = *new LocalMachine;
  return machine;
}

// Of the graph after constant_folding and prune.
constexpr PassCase kCases[] = {
    {"OnlyWhatIsReadBecomesAConstant", "x | y |",
     R"(x = Placeholder() {dtype=float, shape=[2]}
        a = Const() {dtype=float, value=tensor(float[]: 2)}
        b = Neg(a)
        c = AddV2(a, b)
        d = Sub(c, b)
        y = Mul(x, d))",
     R"(x = Placeholder() {dtype=float, shape=[2]}
        d/folded = Const() {dtype=float, value=tensor(float[]: 2)}
        y = Mul(x, d/folded)
        -> y)"},
    {"ANodeWithoutConstantsStays", "x | y |",
     R"(x = Placeholder() {dtype=float, shape=[2]}
        y = Neg(x))",
     nullptr},
    {"ConstantsThemselvesStay", "| c |", R"(c = Const() {dtype=float, value=tensor(float[]: 2)})",
     nullptr},
    {"AFetchHasItsValue", "x | c x |",
     R"(x = Placeholder() {dtype=float, shape=[2]}
        a = Const() {dtype=int32, value=tensor(int32[2]: 1 2)}
        c = Neg(a))",
     R"(x = Placeholder() {dtype=float, shape=[2]}
        c/folded = Const() {dtype=int32, value=tensor(int32[2]: -1 -2)}
        -> c/folded, x)"},
    {"ATargetRunsAsItIs", "| y | c",
     R"(a = Const() {dtype=float, value=tensor(float[]: 2)}
        c = Neg(a)
        y = Neg(c))",
     R"(a = Const() {dtype=float, value=tensor(float[]: 2)}
        c = Neg(a)
        y/folded = Const() {dtype=float, value=tensor(float[]: 2)}
        -> y/folded
        run c)"},
    {"AnOutputThatIsNotTheFirst", "x | y |",
     R"(x = Placeholder() {dtype=float, shape=[2,3]}
        s = Const() {dtype=int32, value=tensor(int32[2]: 2 3)}
        t = Const() {dtype=int32, value=tensor(int32[1]: 3)}
        r = BroadcastGradientArgs(s, t)
        y = Sum(x, r:1))",
     R"(x = Placeholder() {dtype=float, shape=[2,3]}
        r/folded = Const() {dtype=int32, value=tensor(int32[1]: 0)}
        y = Sum(x, r/folded)
        -> y)"},
    {"ShapeSizeAndRankOfKnownShapes", "x | s n r |",
     R"(x = Placeholder() {dtype=float, shape=[2,3]}
        z = Neg(x)
        s = Shape(z) {out_type=int64}
        n = Size(z)
        r = Rank(z))",
     R"(x = Placeholder() {dtype=float, shape=[2,3]}
        s/folded = Const() {dtype=int64, value=tensor(int64[2]: 2 3)}
        n/folded = Const() {dtype=int32, value=tensor(int32[]: 6)}
        r/folded = Const() {dtype=int32, value=tensor(int32[]: 2)}
        -> s/folded, n/folded, r/folded)"},
    {"OnlyTheRankIsKnown", "x | s n r |",
     R"(x = Placeholder() {dtype=float, shape=[?,3]}
        s = Shape(x)
        n = Size(x)
        r = Rank(x))",
     R"(x = Placeholder() {dtype=float, shape=[?,3]}
        s = Shape(x)
        n = Size(x)
        r/folded = Const() {dtype=int32, value=tensor(int32[]: 2)}
        -> s, n, r/folded)"},
    // Each shape follows from the value of the one before.
    {"ShapesThatFollowFromValuesThatFollowFromShapes", "x f | n |",
     R"(x = Placeholder() {dtype=float, shape=[6]}
        f = Placeholder() {dtype=float, shape=[]}
        two = Const() {dtype=int32, value=tensor(int32[1]: 2)}
        s1 = Shape(x)
        d1 = FloorDiv(s1, two)
        y1 = Fill(d1, f)
        s2 = Shape(y1)
        d2 = AddV2(s2, two)
        y2 = Fill(d2, f)
        n = Size(y2))",
     R"(x = Placeholder() {dtype=float, shape=[6]}
        f = Placeholder() {dtype=float, shape=[]}
        n/folded = Const() {dtype=int32, value=tensor(int32[]: 5)}
        -> n/folded)"},
    {"StatefulOpsAreKept", "| y |",
     R"(s = Const() {dtype=int32, value=tensor(int32[1]: 2)}
        r = RandomUniform(s) {dtype=float}
        y = Neg(r))",
     nullptr},
    {"ReadsAreKept", "| y |",
     R"(v = VarHandleOp() {dtype=float, shape=[2], shared_name="v"}
        r = ReadVariableOp(v) {dtype=float}
        y = Neg(r))",
     nullptr},
    {"ANodeThatWaitsIsKept", "x | y |",
     R"(x = Placeholder() {dtype=float, shape=[]}
        a = Const() {dtype=float, value=tensor(float[]: 2)}
        first = NoOp()
        c = Neg(a, ^first)
        y = Mul(c, x))",
     nullptr},
    {"AConstantThatWaitsKeepsItsUsersWaiting", "| y |",
     R"(first = NoOp()
        a = Const(^first) {dtype=float, value=tensor(float[]: 2)}
        y = Neg(a))",
     nullptr},
    {"WhatWaitsForAFoldedNodeStillDoes", "x | y | last",
     R"(x = Placeholder() {dtype=float, shape=[]}
        a = Const() {dtype=float, value=tensor(float[]: 2)}
        c = Neg(a)
        y = Mul(c, x)
        last = NoOp(^c))",
     R"(x = Placeholder() {dtype=float, shape=[]}
        a = Const() {dtype=float, value=tensor(float[]: 2)}
        c = Neg(a)
        last = NoOp(^c)
        c/folded = Const() {dtype=float, value=tensor(float[]: -2)}
        y = Mul(c/folded, x)
        -> y
        run last)"},
    {"AFedNodeIsNoConstant", "c x | y |",
     R"(x = Placeholder() {dtype=float, shape=[]}
        a = Const() {dtype=float, value=tensor(float[]: 2)}
        c = Neg(a)
        d = Neg(c)
        y = Mul(d, x))",
     nullptr},
    {"AFeedThatNobodyReadsAnyMoreStays", "x | n |",
     R"(x = Placeholder() {dtype=float, shape=[5]}
        n = Size(x))",
     R"(x = Placeholder() {dtype=float, shape=[5]}
        n/folded = Const() {dtype=int32, value=tensor(int32[]: 5)}
        -> n/folded)"},
    {"TheDeviceIsThatOfTheFoldedNode", "x | y |",
     R"(x = Placeholder() {dtype=float, shape=[]}
        a = Const() {dtype=float, value=tensor(float[]: 2)} @/job:ps
        c = Neg(a) @/job:worker/task:1
        y = Mul(c, x))",
     R"(x = Placeholder() {dtype=float, shape=[]}
        c/folded = Const() {dtype=float, value=tensor(float[]: -2)} @/job:worker/task:1
        y = Mul(c/folded, x)
        -> y)"},
    {"TheWriteBeforeAShapeStillRunsAndComesFirst", "| y |",
     R"(v = VarHandleOp() {dtype=float, shape=[2], shared_name="v"}
        a = Const() {dtype=float, value=tensor(float[2]: 1 2)}
        w = AssignVariableOp(v, a)
        r = ReadVariableOp(v, ^w) {dtype=float}
        n = Size(r)
        y = Neg(n))",
     nullptr},
    {"AnEffectWhoseValueIsNotNeededStillHappens", "| n |",
     R"(s = Const() {dtype=int32, value=tensor(int32[1]: 2)}
        r = RandomUniform(s) {dtype=float}
        n = Size(r))",
     R"(s = Const() {dtype=int32, value=tensor(int32[1]: 2)}
        r = RandomUniform(s) {dtype=float}
        n/folded = Const() {dtype=int32, value=tensor(int32[]: 2)}
        -> n/folded)"},
    {"WhatFailsIsLeftToTheStep", "x | y d |",
     R"(x = Placeholder() {dtype=float, shape=[]}
        zero = Const() {dtype=int32, value=tensor(int32[]: 0)}
        one = Const() {dtype=int32, value=tensor(int32[]: 1)}
        d = FloorDiv(one, zero)
        a = Const() {dtype=float, value=tensor(float[]: 2)}
        c = Neg(a)
        y = Mul(c, x))",
     R"(x = Placeholder() {dtype=float, shape=[]}
        zero = Const() {dtype=int32, value=tensor(int32[]: 0)}
        one = Const() {dtype=int32, value=tensor(int32[]: 1)}
        d = FloorDiv(one, zero)
        c/folded = Const() {dtype=float, value=tensor(float[]: -2)}
        y = Mul(c/folded, x)
        -> y, d)"},
};

class ConstantFoldingTest : public ::testing::TestWithParam<PassCase> {};

TEST_P(ConstantFoldingTest, GivesTheText) {
  ExpectPass(*NewConstantFoldingPass(Machine().evaluator()), GetParam(), /*then_prune=*/true);
}

INSTANTIATE_TEST_SUITE_P(Cases, ConstantFoldingTest, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

// Four floats at most, of which the limit tells 16 bytes.
void ExpectLimited(const PassCase& c) {
  ExpectPass(*NewConstantFoldingPass(Machine().evaluator(), /*max_bytes=*/16), c,
             /*then_prune=*/true);
}

TEST(ConstantFoldingLimitTest, LargeResultsAreNotStoredAndSmallOnesAre) {
  ExpectLimited({"", "x | y z |",
                 R"(x = Placeholder() {dtype=float, shape=[]}
                    a = Const() {dtype=float, value=tensor(float[]: 2)}
                    d4 = Const() {dtype=int32, value=tensor(int32[1]: 4)}
                    d5 = Const() {dtype=int32, value=tensor(int32[1]: 5)}
                    small = Fill(d4, a)
                    large = Fill(d5, a)
                    y = Mul(small, x)
                    z = Mul(large, x))",
                 R"(x = Placeholder() {dtype=float, shape=[]}
                    a = Const() {dtype=float, value=tensor(float[]: 2)}
                    d5 = Const() {dtype=int32, value=tensor(int32[1]: 5)}
                    large = Fill(d5, a)
                    z = Mul(large, x)
                    small/folded = Const() {dtype=float, value=tensor(float[4]: 2 2 2 2)}
                    y = Mul(small/folded, x)
                    -> y, z)"});
}

// Neither is it made on the way to a small one, nor while its size is itself to be computed.
TEST(ConstantFoldingLimitTest, LargeValuesOnTheWayAreNotMade) {
  ExpectLimited({"", "| y |",
                 R"(a = Const() {dtype=float, value=tensor(float[]: 2)}
                    d = Const() {dtype=int32, value=tensor(int32[1]: 100000)}
                    square = Mul(d, d)
                    most = Const() {dtype=int32, value=tensor(int32[1]: 1000000000)}
                    size = Maximum(square, most)
                    large = Fill(size, a)
                    zero = Const() {dtype=int32, value=tensor(int32[1]: 0)}
                    y = Sum(large, zero))",
                 R"(a = Const() {dtype=float, value=tensor(float[]: 2)}
                    zero = Const() {dtype=int32, value=tensor(int32[1]: 0)}
                    size/folded = Const() {dtype=int32, value=tensor(int32[1]: 1410065408)}
                    large = Fill(size/folded, a)
                    y = Sum(large, zero)
                    -> y)"});
}

TEST(ConstantFoldingEvaluatorTest, SeesOnlyWhatThePortsAreComputedFrom) {
  int calls = 0;
  const Evaluator counting = [&](const Graph& graph, absl::Span<const Port> ports) {
    ++calls;
    EXPECT_EQ(graph.num_nodes(), 2);
    EXPECT_EQ(graph.node(ports[0].node)->requested_device(), "");
    return Machine().evaluator()(graph, ports);
  };
  PrunedGraph step = PrunedOrFail({"", "x | y z |",
                                   R"(x = Placeholder() {dtype=float, shape=[]}
                                      a = Const() {dtype=float, value=tensor(float[]: 2)}
                                      c = Neg(a) @/job:worker
                                      y = Mul(x, c)
                                      z = AddV2(x, y))",
                                   nullptr});
  ASSERT_TRUE(NewConstantFoldingPass(counting)->Run(step).ok());
  EXPECT_EQ(calls, 1);
}

TEST(ConstantFoldingEvaluatorTest, WithoutOneThatWorksNothingChanges) {
  const Evaluator failing = [](const Graph&,
                               absl::Span<const Port>) -> StatusOr<std::vector<Tensor>> {
    return Unimplemented("no kernels here");
  };
  ExpectPass(*NewConstantFoldingPass(failing), {"", "x | y |",
                                                R"(x = Placeholder() {dtype=float, shape=[]}
                 a = Const() {dtype=float, value=tensor(float[]: 2)}
                 c = Neg(a)
                 d = Neg(a)
                 e = AddV2(c, d)
                 y = Mul(x, e))",
                                                nullptr});
}

TEST(ConstantFoldingErrorTest, NamesTheNodeWhoseOperandsContradict) {
  PrunedGraph step = PrunedOrFail({"", "x | y |",
                                   R"(x = Placeholder() {dtype=float, shape=[6]}
                                      a = Const() {dtype=int32, value=tensor(int32[1]: 7)}
                                      b = Neg(a)
                                      c = Neg(b)
                                      y = Reshape(x, c))",
                                   nullptr});
  const StatusOr<bool> changed = NewConstantFoldingPass(Machine().evaluator())->Run(step);
  EXPECT_EQ(changed.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(changed.status().message().find("Reshape 'y'"), std::string::npos) << changed.status();
}

}  // namespace
}  // namespace millrace::testing
