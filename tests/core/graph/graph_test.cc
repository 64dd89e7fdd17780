#include "core/graph/graph.h"

#include "core/graph/graph_text.h"
#include "gtest/gtest.h"
#include "tests/core/graph/test_ops.h"

namespace millrace {
namespace {

constexpr char kSmall[] = R"(x = Placeholder() {dtype=float, shape=[?,3]}
w = Placeholder() {dtype=float, shape=[3,5]}
k = Placeholder() {dtype=int32, shape=[3,5]}
y = MatMul(x, w)
h = Halves(y)
done = NoOp(^y)
)";

NodeSpec Spec(std::string name, std::string op, std::vector<Port> inputs, AttrMap attrs = {}) {
  NodeSpec spec;
  spec.name = std::move(name);
  spec.op = std::move(op);
  spec.inputs = std::move(inputs);
  spec.attrs = std::move(attrs);
  return spec;
}

TEST(GraphTest, AddNodeInfersAttributesSignatureAndShapes) {
  const Graph graph = ParseOrFail(kSmall);
  const Node& y = *graph.Find("y");
  EXPECT_EQ(y.attrs().GetOr<DType>("T", DType::kInvalid), DType::kFloat);
  EXPECT_EQ(y.attrs().GetOr<bool>("transpose_w", true), false);
  EXPECT_EQ(y.output_dtype(0), DType::kFloat);
  EXPECT_EQ(y.output_shape(0).ToString(), "[?,5]");
  EXPECT_EQ(graph.num_nodes(), 6);
}

// Errors name op and node, and nothing is added.
TEST(GraphTest, AddNodeRefusesWhatDoesNotFit) {
  Graph graph = ParseOrFail(kSmall);
  const auto port = [&graph](absl::string_view name) { return *graph.FindPort(name); };
  const struct {
    NodeSpec spec;
    const char* message;
  } cases[] = {
      {Spec("z", "MatMull", {port("x"), port("w")}),
       "unknown op 'MatMull' of node 'z'; did you mean 'MatMul'?"},
      {Spec("z", "Convolve", {}), "unknown op 'Convolve' of node 'z'"},
      {Spec("z", "MatMul", {port("x"), port("k")}),
       "MatMul 'z': input 'w' is int32, but attribute 'T' is float (from input 'x')"},
      {Spec("z", "MatMul", {port("x")}), "MatMul 'z': is given 1 inputs, which do not fit (x, w)"},
      {Spec("z", "MatMul", {port("x"), port("x")}), "MatMul 'z': x has 3 columns, but w has"},
      {Spec("z", "Neg", {Port{99, 0}}), "Neg 'z': input 0 does not exist"},
      {Spec("z", "Neg", {Port{0, 1}}), "Neg 'z': input 0 does not exist"},
      {Spec("z", "Neg", {port("x")}, {{"axis", 3}}), "Neg 'z': has no attribute 'axis'"},
      {Spec("z", "Placeholder", {}), "Placeholder 'z': attribute 'dtype' (type) is missing"},
      {Spec("x", "NoOp", {}), "NoOp 'x': another node has that name"},
      {Spec("", "NoOp", {}), "NoOp '': not a name for a node"},
      {Spec("a:0", "NoOp", {}), "NoOp 'a:0': not a name for a node"},
      {Spec("^a", "NoOp", {}), "not a name for a node"},
  };
  // [3,5] times [?,3]: the first case of a wrong shape needs known columns.
  graph.SetOutputShape(port("x"), PartialShape{7, 3});
  for (const auto& c : cases) {
    const StatusOr<NodeId> added = graph.AddNode(c.spec);
    ASSERT_FALSE(added.ok()) << c.message;
    EXPECT_NE(added.status().message().find(c.message), std::string::npos) << added.status();
    EXPECT_EQ(graph.num_ids(), 6);
  }
}

TEST(GraphTest, AddNodeRefusesMalformedDevicesAndMissingControlInputs) {
  Graph graph = ParseOrFail(kSmall);
  NodeSpec spec = Spec("z", "NoOp", {});
  spec.device = "/jobb:x";
  EXPECT_FALSE(graph.AddNode(spec).ok());
  spec.device = "";
  spec.control_inputs = {99};
  EXPECT_FALSE(graph.AddNode(spec).ok());
  spec.control_inputs = {3, 0, 3};
  ASSERT_TRUE(graph.AddNode(spec).ok());
  EXPECT_EQ(graph.Find("z")->control_inputs(), (std::vector<NodeId>{0, 3}));
}

TEST(GraphTest, ShapeFunctionsSeeConstantsThroughIdentities) {
  const Graph graph = ParseOrFail(R"(x = Placeholder() {dtype=float}
c = Const() {dtype=int32, value=tensor(int32[2]: 3 -1)}
i = Identity(c)
j = Identity(i)
k = Placeholder() {dtype=int32, shape=[2]}
known = Reshape(x, j)
unknown = Reshape(x, k)
)");
  EXPECT_EQ(graph.Find("known")->output_shape(0).ToString(), "[3,?]");
  EXPECT_EQ(graph.Find("unknown")->output_shape(0).ToString(), "[?,?]");
  EXPECT_EQ(graph.ConstantValue(*graph.FindPort("k")), nullptr);
}

TEST(GraphTest, ConstantLookupEndsOnACycleOfIdentities) {
  Graph graph = ParseOrFail(
      "c = Const() {dtype=int32, value=tensor(int32[]: 1)}\n"
      "i = Identity(c)\nj = Identity(i)\n");
  ASSERT_TRUE(graph.ReplaceInput(1, 0, Port{2, 0}).ok());
  EXPECT_EQ(graph.ConstantValue(Port{2, 0}), nullptr);
}

TEST(GraphTest, FindPort) {
  const Graph graph = ParseOrFail(kSmall);
  const struct {
    const char* name;
    const char* result;
  } cases[] = {
      {"x", "x"},
      {"x:0", "x"},
      {"h:1", "h:1"},
      {"h:2", "there is no 'h:2' in the graph: Halves 'h' has 2 outputs"},
      {"x:1", "there is no 'x:1' in the graph: Placeholder 'x' has 1 output"},
      {"done", "NoOp 'done' has no outputs"},
      {"dome", "there is no 'dome' in the graph; did you mean 'done'?"},
      {"nothing/like/it", "there is no 'nothing/like/it' in the graph"},
      {"x:-1", "there is no 'x:-1' in the graph"},
      {"x: 0", "there is no 'x: 0' in the graph"},
      {"x:99999999999", "there is no 'x:99999999999' in the graph"},
      {"", "there is no '' in the graph"},
  };
  for (const auto& c : cases) {
    const StatusOr<Port> port = graph.FindPort(c.name);
    if (port.ok()) {
      EXPECT_EQ(graph.PortName(*port), c.result) << c.name;
    } else {
      EXPECT_EQ(port.status().code(), absl::StatusCode::kNotFound);
      EXPECT_EQ(port.status().message().substr(0, std::string(c.result).size()), c.result);
    }
  }
}

TEST(GraphTest, UniqueNameSkipsWhatIsTaken) {
  Graph graph(TestOps());
  for (const char* name : {"a", "a_1", "a_2", "a_1_1"}) {
    EXPECT_EQ(graph.UniqueName(name), name);
    ASSERT_TRUE(graph.AddNode(Spec(name, "NoOp", {})).ok());
  }
  EXPECT_EQ(graph.UniqueName("a"), "a_3");
  EXPECT_EQ(graph.UniqueName("a"), "a_3");
  EXPECT_EQ(graph.UniqueName("a_1"), "a_1_2");
}

TEST(GraphTest, ReplaceInputChecksDTypes) {
  Graph graph = ParseOrFail(kSmall);
  const NodeId y = graph.Find("y")->id();
  EXPECT_FALSE(graph.ReplaceInput(y, 1, *graph.FindPort("k")).ok());
  EXPECT_FALSE(graph.ReplaceInput(y, 2, *graph.FindPort("w")).ok());
  EXPECT_FALSE(graph.ReplaceInput(y, 0, Port{99, 0}).ok());
  EXPECT_FALSE(graph.ReplaceInput(99, 0, *graph.FindPort("w")).ok());
  EXPECT_TRUE(graph.ReplaceInput(y, 0, *graph.FindPort("w")).ok());
  EXPECT_EQ(graph.node(y)->inputs()[0], *graph.FindPort("w"));
}

// What was put behind a port goes on reading it.
TEST(GraphTest, ReplaceUsesLeavesTheNewSourceAlone) {
  Graph graph = ParseOrFail(kSmall);
  const NodeId copy = *graph.AddNode(Spec("copy", "Identity", {*graph.FindPort("y")}));
  ASSERT_TRUE(graph.ReplaceUses(*graph.FindPort("y"), Port{copy, 0}).ok());
  EXPECT_EQ(graph.Find("h")->inputs()[0], (Port{copy, 0}));
  EXPECT_EQ(graph.Find("copy")->inputs()[0], *graph.FindPort("y"));
  EXPECT_FALSE(graph.ReplaceUses(*graph.FindPort("y"), *graph.FindPort("k")).ok());
  EXPECT_FALSE(graph.ReplaceUses(*graph.FindPort("y"), Port{copy, 1}).ok());
}

TEST(GraphTest, ControlInputsAreASet) {
  Graph graph = ParseOrFail("a = NoOp()\nb = NoOp()\nc = NoOp()\n");
  graph.AddControlInput(2, 1);
  graph.AddControlInput(2, 0);
  graph.AddControlInput(2, 1);
  EXPECT_EQ(graph.node(2)->control_inputs(), (std::vector<NodeId>{0, 1}));
  graph.RemoveControlInput(2, 0);
  graph.RemoveControlInput(2, 0);
  EXPECT_EQ(graph.node(2)->control_inputs(), (std::vector<NodeId>{1}));
}

TEST(GraphTest, InferShapesRefinesAndRefusesContradictions) {
  Graph graph = ParseOrFail(kSmall);
  const NodeId y = graph.Find("y")->id();
  graph.SetOutputShape(*graph.FindPort("x"), PartialShape{4, 3});
  ASSERT_TRUE(graph.InferShapes(y).ok());
  EXPECT_EQ(graph.node(y)->output_shape(0).ToString(), "[4,5]");
  graph.SetOutputShape(*graph.FindPort("x"), PartialShape{6, 3});
  EXPECT_EQ(graph.InferShapes(y).message(),
            "MatMul 'y': output 0 has shape [4,5], but from its inputs follows [6,5]");
  EXPECT_EQ(graph.node(y)->output_shape(0).ToString(), "[4,5]");
}

TEST(GraphTest, CopiesAreDeep) {
  const Graph graph = ParseOrFail(kSmall);
  Graph copy(graph);
  copy.SetRequestedDevice(0, "/job:ps");
  copy.AddControlInput(3, 2);
  copy.RemoveNode(copy.Find("done")->id());
  EXPECT_EQ(GraphToText(graph), kSmall);
  EXPECT_EQ(copy.num_nodes(), 5);
  EXPECT_EQ(copy.Find("done"), nullptr);
}

TEST(GraphTest, RollbackTakesBackTheLastNodes) {
  Graph graph = ParseOrFail(kSmall);
  graph.Rollback(4);
  EXPECT_EQ(graph.num_ids(), 4);
  EXPECT_EQ(graph.num_nodes(), 4);
  EXPECT_EQ(graph.Find("h"), nullptr);
  EXPECT_EQ(*graph.AddNode(Spec("h", "NoOp", {})), 4);
}

TEST(GraphTest, ManyControlInputsOfOneNodeTakeNoTime) {
  const ProcessorTimeLimit limit;
  Graph graph = ParseOrFail(ChainText(100'000));
  NodeSpec spec = Spec("all", "NoOp", {});
  for (NodeId id = 0; id < graph.num_ids(); ++id) spec.control_inputs.push_back(id);
  ASSERT_TRUE(graph.AddNode(spec).ok());
  const NodeId late = *graph.AddNode(Spec("late", "NoOp", {}));
  for (NodeId id = 0; id < late; ++id) graph.AddControlInput(late, id);
  EXPECT_EQ(graph.node(late)->control_inputs().size(), 100'001u);
}

}  // namespace
}  // namespace millrace
