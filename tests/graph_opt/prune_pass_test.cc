#include "gtest/gtest.h"
#include "tests/graph_opt/pass_case.h"

namespace millrace::testing {
namespace {

// As earlier passes leave them: fetches and targets set to others than those of the whole step.
PrunedGraph Fetching(const PassCase& c, const std::vector<std::string>& fetches) {
  PrunedGraph pruned = PrunedOrFail(c);
  pruned.fetches.clear();
  for (const std::string& name : fetches) {
    pruned.fetches.push_back(pruned.graph.FindPort(name).value());
  }
  pruned.targets.clear();
  return pruned;
}

TEST(PrunePassTest, KeepsWhatFetchesNeedAndTheFeeds) {
  PrunedGraph step = Fetching({"", "x z | y u |",
                               R"(x = Placeholder() {dtype=float, shape=[2]}
                                  z = Placeholder() {dtype=float, shape=[2]}
                                  a = Neg(x)
                                  b = Neg(z)
                                  c = Tanh(a)
                                  y = Mul(a, x)
                                  u = Mul(b, c))",
                               nullptr},
                              {"y"});
  EXPECT_TRUE(NewPrunePass()->Run(step).value());
  EXPECT_EQ(TextOf(step), Unindented(R"(x = Placeholder() {dtype=float, shape=[2]}
                                        z = Placeholder() {dtype=float, shape=[2]}
                                        a = Neg(x)
                                        y = Mul(a, x)
                                        -> y)"));
  EXPECT_FALSE(NewPrunePass()->Run(step).value());
}

TEST(PrunePassTest, KeepsControlInputs) {
  const PassCase c = {"", "x | y |",
                      R"(x = Placeholder() {dtype=float, shape=[2]}
                         a = Neg(x)
                         y = Tanh(x, ^a))",
                      nullptr};
  ExpectPass(*NewPrunePass(), c);
}

TEST(PrunePassTest, KeepsEffectsButNotReads) {
  PrunedGraph step = Fetching({"", "x | y d r | w n",
                               R"(x = Placeholder() {dtype=float, shape=[2]}
                                  v = VarHandleOp() {dtype=float, shape=[2], shared_name="v"}
                                  w = AssignAddVariableOp(v, x)
                                  s = Const() {dtype=int32, value=tensor(int32[1]: 2)}
                                  d = RandomUniform(s) {dtype=float}
                                  u = VarHandleOp() {dtype=float, shape=[2], shared_name="u"}
                                  r = ReadVariableOp(u) {dtype=float}
                                  y = Neg(x)
                                  n = NoOp())",
                               nullptr},
                              {"y"});
  EXPECT_TRUE(NewPrunePass()->Run(step).value());
  EXPECT_EQ(TextOf(step), Unindented(R"(x = Placeholder() {dtype=float, shape=[2]}
                                        v = VarHandleOp() {dtype=float, shape=[2], shared_name="v"}
                                        w = AssignAddVariableOp(v, x)
                                        s = Const() {dtype=int32, value=tensor(int32[1]: 2)}
                                        d = RandomUniform(s) {dtype=float}
                                        y = Neg(x)
                                        n = NoOp()
                                        -> y)"));
}

}  // namespace
}  // namespace millrace::testing
