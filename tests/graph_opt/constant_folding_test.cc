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
        r, = BroadcastGradientArgs(s, t)
        y = Sum(x, r:1))",
     nullptr},
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
    {"ShapesThatFollowFromValuesThatFollowFromShapes", "x | n |",
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
     nullptr},
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

TEST(ConstantFoldingLimitTest, LargeResultsAreNotStored) {
  const PassCase limited = {"Limit", "x | y z |",
                            R"(x = Placeholder() {dtype=float, shape=[]}
                               a = Const() {dtype=float, value=tensor(float[]: 2)}
                               d3 = Const() {dtype=int32, value=tensor(int32[1]: 3)}
                               d4 = Const() {dtype=int32, value=tensor(int32[1]: 4)}
                               small = Fill(d3, a)
                               large = Fill(d4, a)
                               sum = Sum(large, d0)
                               y = Mul(small, x)
                               z = Mul(large, x))",
                            nullptr};
  (void)limited;
}

}  // namespace
}  // namespace millrace::testing
