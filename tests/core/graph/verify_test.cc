#include "core/graph/verify.h"

#include "core/graph/graph_text.h"
#include "gtest/gtest.h"
#include "tests/core/graph/test_ops.h"

namespace millrace {
namespace {

constexpr char kText[] = R"(x = Placeholder() {dtype=float, shape=[?,3]}
w = Placeholder() {dtype=float, shape=[3,5]}
y = MatMul(x, w)
h = Halves(y)
z = Neg(h:1, ^w)
done = NoOp(^z)
)";

TEST(VerifyTest, AcceptsWhatWasBuilt) {
  EXPECT_TRUE(Verify(ParseOrFail(kText)).ok());
  EXPECT_TRUE(Verify(Graph(TestOps())).ok());
}

// One breach each, of those that the graph's own methods let by.
TEST(VerifyTest, FindsEachBreach) {
  const struct {
    const char* message;
    void (*breach)(Graph& graph);
  } cases[] = {
      {"Neg 'z': input 0 has been removed", [](Graph& g) { g.RemoveNode(g.Find("h")->id()); }},
      {"NoOp 'done': control input 0 has been removed",
       [](Graph& g) { g.RemoveNode(g.Find("z")->id()); }},
      {"the graph has a cycle: y -> h -> y",
       [](Graph& g) {
         EXPECT_TRUE(g.ReplaceInput(2, 0, Port{3, 0}).ok());
       }},
      {"the graph has a cycle: w -> y -> h -> z -> w", [](Graph& g) { g.AddControlInput(1, 4); }},
      {"NoOp 'done': the name is not unique",
       [](Graph& g) {
         g.AddCopy(*g.Find("z"), "done", {Port{1, 0}}, {});
         g.RemoveNode(6);
       }},
      {"Neg 'a:1': the name is malformed",
       [](Graph& g) {
         g.AddCopy(*g.Find("z"), "a:1", {Port{1, 0}}, {});
       }},
      {"MatMul 'y': attribute 'transpose_w' is 3 (int), but must be of kind bool",
       [](Graph& g) { g.SetAttr(2, "transpose_w", 3); }},
      {"MatMul 'y': op 'MatMul' has no attribute 'extra'",
       [](Graph& g) { g.SetAttr(2, "extra", 3); }},
      {"MatMul 'y': the attributes were changed so that they say other inputs or outputs",
       [](Graph& g) { g.SetAttr(2, "T", DType::kDouble); }},
      {"MatMul 'copy': has 1 inputs, but its attributes say 2",
       [](Graph& g) {
         g.AddCopy(*g.Find("y"), "copy", {Port{0, 0}}, {});
       }},
      {"MatMul 'copy': input 1 is output 3 of 'w', which has 1",
       [](Graph& g) {
         g.AddCopy(*g.Find("y"), "copy", {Port{0, 0}, Port{1, 3}}, {});
       }},
      {"MatMul 'y': output 0 has shape ?, but from its inputs follows [?,5]",
       [](Graph& g) {
         g.SetOutputShape(Port{2, 0}, PartialShape());
       }},
      {"MatMul 'y': output 0 has shape [2,4], but from its inputs follows [?,5]",
       [](Graph& g) {
         g.SetOutputShape(Port{2, 0}, PartialShape{2, 4});
       }},
      {"MatMul 'y': x has 3 columns, but w has 4 rows",
       [](Graph& g) {
         g.SetAttr(1, "shape", PartialShape{4, 5});
         g.SetOutputShape(Port{1, 0}, PartialShape{4, 5});
       }},
      {"MatMul 'y': the assigned device /job:ps is not a full name",
       [](Graph& g) { g.SetAssignedDevice(2, *DeviceName::Parse("/job:ps")); }},
  };
  for (const auto& c : cases) {
    Graph graph = ParseOrFail(kText);
    c.breach(graph);
    EXPECT_EQ(std::string(Verify(graph).message()), c.message);
  }
}

TEST(VerifyTest, FindsMalformedDevices) {
  Graph graph = ParseOrFail(kText);
  graph.SetRequestedDevice(2, "/jobb:ps");
  EXPECT_EQ(Verify(graph).message().substr(0, 12), "MatMul 'y': ");
}

TEST(VerifyTest, FindsDTypesThatDoNotFit) {
  Graph graph = ParseOrFail(kText);
  const Graph other = ParseOrFail("i = Placeholder() {dtype=int64}\n", graph.shared_ops());
  graph.AddCopy(*other.Find("i"), "i", {}, {});
  graph.AddCopy(*graph.Find("z"), "copy", {Port{6, 0}}, {});
  EXPECT_EQ(Verify(graph).message(), "Neg 'copy': input 0 (i) is int64, but must be float");
}

TEST(VerifyTest, FindsOpsOfAnotherRegistry) {
  Graph graph = ParseOrFail(kText);
  const Graph other = ParseOrFail("n = NoOp()\n");
  graph.AddCopy(*other.Find("n"), "n", {}, {});
  EXPECT_EQ(Verify(graph).message(), "NoOp 'n': the op is not of the graph's registry");
}

// Better than what the inputs say is well: a rewrite may know more.
TEST(VerifyTest, ShapesMayBeBetter) {
  Graph graph = ParseOrFail(kText);
  graph.SetOutputShape(Port{2, 0}, PartialShape{8, 5});
  EXPECT_TRUE(Verify(graph).ok());
}

TEST(VerifyTest, AHundredThousandNodesTakeNoTime) {
  const ProcessorTimeLimit limit;
  Graph graph = ParseOrFail(ChainText(100'000));
  EXPECT_TRUE(Verify(graph).ok());
  ASSERT_TRUE(graph.ReplaceInput(1, 0, Port{99'999, 0}).ok());
  EXPECT_FALSE(Verify(graph).ok());
}

}  // namespace
}  // namespace millrace
