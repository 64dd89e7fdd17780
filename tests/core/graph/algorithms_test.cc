#include "core/graph/algorithms.h"

#include "absl/strings/str_join.h"
#include "core/graph/graph_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/graph/test_ops.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Names(const Graph& graph, const std::vector<NodeId>& ids) {
  return absl::StrJoin(
      ids, " ", [&](std::string* out, NodeId id) { absl::StrAppend(out, graph.node(id)->name()); });
}

// A chain whose ids go against its edges but for the first node.
Graph ReversedChain(int n) {
  Graph graph = ParseOrFail(ChainText(n));
  for (NodeId id = n - 1; id > 1; --id) {
    EXPECT_TRUE(graph.ReplaceInput(id - 1, 0, Port{id, 0}).ok());
  }
  EXPECT_TRUE(graph.ReplaceInput(n - 1, 0, Port{0, 0}).ok());
  return graph;
}

TEST(TopologicalOrderTest, InputsComeFirstAndTiesGoById) {
  Graph graph = ParseOrFail(R"(a = Placeholder() {dtype=float}
b = Placeholder() {dtype=float}
c = Neg(a)
d = Neg(a)
e = NoOp()
)");
  EXPECT_EQ(Names(graph, *TopologicalOrder(graph)), "a b c d e");
  ASSERT_TRUE(graph.ReplaceInput(2, 0, Port{3, 0}).ok());
  graph.AddControlInput(0, 4);
  EXPECT_EQ(Names(graph, *TopologicalOrder(graph)), "b e a d c");
  graph.RemoveNode(1);
  EXPECT_EQ(Names(graph, *TopologicalOrder(graph)), "e a d c");
}

TEST(TopologicalOrderTest, ACycleIsShownAsAPath) {
  Graph graph = ParseOrFail(R"(x = Placeholder() {dtype=float}
a = Neg(x)
b = Neg(a)
c = Neg(b)
d = Neg(c)
e = Neg(d)
)");
  ASSERT_TRUE(graph.ReplaceInput(2, 0, Port{4, 0}).ok());
  EXPECT_EQ(TopologicalOrder(graph).status().message(), "the graph has a cycle: b -> c -> d -> b");
  ASSERT_TRUE(graph.ReplaceInput(2, 0, Port{1, 0}).ok());
  graph.AddControlInput(1, 5);
  EXPECT_EQ(TopologicalOrder(graph).status().message(),
            "the graph has a cycle: a -> b -> c -> d -> e -> a");
  graph.RemoveControlInput(1, 5);
  graph.AddControlInput(3, 3);
  EXPECT_EQ(TopologicalOrder(graph).status().message(), "the graph has a cycle: c -> c");
}

TEST(TopologicalOrderTest, HugeGraphsAndCycles) {
  const ProcessorTimeLimit limit;
  Graph graph = ReversedChain(100'000);
  EXPECT_EQ(TopologicalOrder(graph)->size(), 100'000u);
  ASSERT_TRUE(graph.ReplaceInput(99'999, 0, Port{1, 0}).ok());
  const Status status = TopologicalOrder(graph).status();
  EXPECT_THAT(status.message(), HasSubstr("(99983 more) -> n0"));
  EXPECT_LT(status.message().size(), 400u);
}

TEST(FanOutTest, ListsEachUserOnce) {
  const Graph graph = ParseOrFail(R"(a = Placeholder() {dtype=float}
b = Add(a, a)
c = Neg(a, ^b)
d = NoOp(^a, ^b)
)");
  const FanOut fan_out = ComputeFanOut(graph);
  EXPECT_THAT(fan_out.data[0], ElementsAre(1, 2));
  EXPECT_THAT(fan_out.data[1], IsEmpty());
  EXPECT_THAT(fan_out.control[0], ElementsAre(3));
  EXPECT_THAT(fan_out.control[1], ElementsAre(2, 3));
}

TEST(ReachableBackwardsTest, FollowsDataAndControlInputs) {
  const Graph graph = ParseOrFail(R"(a = Placeholder() {dtype=float}
b = NoOp()
c = Neg(a, ^b)
d = Neg(c)
e = Neg(a)
)");
  EXPECT_THAT(ReachableBackwards(graph, {3}), ElementsAre(true, true, true, true, false));
  EXPECT_THAT(ReachableBackwards(graph, {}), ElementsAre(false, false, false, false, false));
  const Graph chain = ParseOrFail(ChainText(100'000));
  EXPECT_TRUE(ReachableBackwards(chain, {99'999})[0]);
}

TEST(SpecializeShapesTest, RefinesWhatFollows) {
  Graph graph = ParseOrFail(R"(x = Placeholder() {dtype=float, shape=[?,3]}
w = Placeholder() {dtype=float, shape=[3,5]}
y = MatMul(x, w)
z = Neg(y)
)");
  ASSERT_TRUE(SpecializeShapes(graph, {{{Port{0, 0}, PartialShape{8, 3}}}}).ok());
  EXPECT_EQ(graph.Find("z")->output_shape(0).ToString(), "[8,5]");
  EXPECT_EQ(SpecializeShapes(graph, {{{Port{0, 0}, PartialShape{9, 3}}}}).message(),
            "'x' has shape [8,3], which [9,3] does not fit");
  EXPECT_FALSE(SpecializeShapes(graph, {{{Port{0, 1}, PartialShape{9, 3}}}}).ok());
  graph.SetOutputShape(Port{1, 0}, PartialShape{4, 5});
  EXPECT_THAT(SpecializeShapes(graph, {}).message(), HasSubstr("Placeholder 'w': output 0"));
}

TEST(StepSignatureTest, KeysTellSignaturesApart) {
  const StepSignature signatures[] = {
      {{"a"}, {"b"}, {}}, {{"a", "b"}, {}, {}},   {{}, {"a", "b"}, {}}, {{}, {}, {"a", "b"}},
      {{"ab"}, {}, {}},   {{}, {"a;1:b"}, {}},    {{"a"}, {}, {"b"}},   {},
      {{""}, {}, {}},     {{"1:a", "b"}, {}, {}},
  };
  for (const StepSignature& a : signatures) {
    for (const StepSignature& b : signatures) EXPECT_EQ(a.Key() == b.Key(), a == b);
  }
}

}  // namespace
}  // namespace millrace
