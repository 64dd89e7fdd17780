#include "core/graph/graph_def.h"

#include "core/graph/graph_text.h"
#include "core/graph/verify.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/core/graph/test_ops.h"

namespace millrace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The graph, as our text, or the error.
std::string Imported(absl::string_view text) {
  const StatusOr<Graph> graph = ParseGraph(text, "model.pbtxt", TestOps());
  if (!graph.ok()) return std::string(graph.status().message());
  const Status verified = Verify(*graph);
  EXPECT_TRUE(verified.ok()) << verified;
  return GraphToText(*graph);
}

std::string Serialised(const Graph& graph) {
  GraphDef def;
  ExportGraphDef(graph, &def);
  return def.SerializeAsString();
}

constexpr char kPlaceholder[] = R"(
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
)";

TEST(ImportTest, NodesComeInAnyOrder) {
  EXPECT_EQ(Imported(R"(
node { name: "z" op: "Add" input: "h:1" input: "y:0" input: "^done" device: "/job:ps" }
node { name: "y" op: "Neg" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "done" op: "NoOp" input: "^y" }
node { name: "h" op: "Halves" input: "x" }
node { name: "x" op: "Placeholder"
       attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "shape" value { shape { dim { size: -1 } dim { size: 3 } } } } }
versions { producer: 2474 }
)"),
            "x = Placeholder() {dtype=float, shape=[?,3]}\n"
            "y = Neg(x)\n"
            "done = NoOp(^y)\n"
            "h = Halves(x)\n"
            "z = Add(h:1, y, ^done) @/job:ps\n");
}

TEST(ImportTest, DefaultsAreFilledInAndAnnotationsKept) {
  EXPECT_EQ(Imported(R"(
node { name: "k" op: "Kinds"
       attr { key: "_class" value { list { s: "loc:@w" } } }
       attr { key: "_has_manual_control_dependencies" value { b: true } }
       attr { key: "_output_shapes" value { list { shape { unknown_rank: true } } } }
       attr { key: "_odd" value { type: DT_FLOAT_REF } }
       attr { key: "lf" value { list { } } }
       attr { key: "i" value { i: 3 } } }
)"),
            "k = Kinds() {_class=[\"loc:@w\"], _has_manual_control_dependencies=true, i=3}\n");
}

TEST(ImportTest, AttributesThatAnOpLacksMayBeEmptyOnly) {
  EXPECT_EQ(Imported(R"(
node { name: "n" op: "NoOp"
       attr { key: "grad_a" value { b: false } }
       attr { key: "count" value { i: 0 } }
       attr { key: "note" value { s: "" } }
       attr { key: "devices" value { list { } } } }
)"),
            "n = NoOp()\n");
  EXPECT_EQ(Imported("node { name: 'n' op: 'NoOp' attr { key: 'grad_a' value { b: true } } }"),
            "model.pbtxt: NoOp 'n': has no attribute 'grad_a'");
}

TEST(ImportTest, EmptyListsOfTypes) {
  EXPECT_EQ(Imported(R"(
node { name: "c" op: "Call" attr { key: "Tin" value { list { } } }
       attr { key: "Tout" value { list { } } } attr { key: "f" value { func { name: "body" } } } }
)"),
            "c = Call() {Tout=[], f=body}\n");
}

TEST(ImportTest, Errors) {
  const struct {
    const char* text;
    const char* message;
  } cases[] = {
      {"node { name: 'a' op: 'Foo' } node { name: 'b' op: 'Bar' } node { name: 'c' op: 'Foo' }",
       "the graph has ops that this build does not know: Bar (1 node, as 'b'), Foo (2 nodes, as "
       "'a')"},
      {"node { name: 'a' op: 'NoOp' } node { name: 'a' op: 'NoOp' }",
       "NoOp 'a': another node has that name"},
      {"node { name: 'y' op: 'Neg' input: 'xs' } node { name: 'x' op: 'NoOp' }",
       "Neg 'y': input 0 (xs) does not exist; did you mean 'x'?"},
      {"node { name: 'y' op: 'Neg' input: '' }", "Neg 'y': input 0 () does not exist"},
      {"node { name: 'y' op: 'Neg' input: '^' }", "Neg 'y': input 0 (^) does not exist"},
      {"node { name: 'a' op: 'Neg' input: 'b' } node { name: 'b' op: 'Neg' input: 'a' }",
       "the graph has a cycle: a -> b -> a"},
      {"node { name: 'a' op: 'NoOp' input: '^a' }", "the graph has a cycle: a -> a"},
      {"node { name: 'n' op: 'NoOp' } node { name: 'a' op: 'Neg' input: 'n' }",
       "Neg 'a': input 'n' does not exist: NoOp 'n' has 0 outputs"},
      {"node { name: 'v' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT_REF } } }",
       "Placeholder 'v': attribute 'dtype': type DT_FLOAT_REF is not supported: rebuild the graph"},
      {"node { name: 'v' op: 'Placeholder' }",
       "Placeholder 'v': attribute 'dtype' (type) is missing"},
      {"node { name: 'a b' op: 'NoOp' }", "NoOp 'a b': not a name for a node"},
      {"node { name: 'a' op: 'NoOp' device: '/job:' }", "NoOp 'a': "},
      {"node { name: 'c' op: 'Const' attr { key: 'dtype' value { type: DT_INT32 } } "
       "attr { key: 'value' value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 3 } } "
       "tensor_content: 'abc' } } } }",
       "Const 'c': attribute 'value': tensor int32[3] takes 12 bytes, but the proto has 3"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(Imported(c.text), AllOf(HasSubstr("model.pbtxt: "), HasSubstr(c.message)));
  }
}

// Nodes of a later GraphDef may name earlier ones; if one does not fit, none is added.
TEST(ImportTest, ExtendsAGraphAllOrNothing) {
  Graph graph = ParseOrFail("x = Placeholder() {dtype=float}\n");
  const std::string before = GraphToText(graph);
  GraphDef def;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "node { name: 'y' op: 'Neg' input: 'x' } node { name: 'z' op: 'Neg' input: 'y:1' } "
      "library { function { signature { name: 'f' } } }",
      &def));
  EXPECT_EQ(ImportGraphDef(def, graph).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(GraphToText(graph), before);
  EXPECT_EQ(graph.num_ids(), 1);
  def.mutable_node(1)->set_input(0, "y");
  ASSERT_TRUE(ImportGraphDef(def, graph).ok());
  EXPECT_EQ(graph.num_nodes(), 3);
  EXPECT_EQ(ImportGraphDef(def, graph).message(), "Neg 'y': another node has that name");
}

TEST(ImportTest, FunctionsJoinTheLibrary) {
  Graph graph(TestOps());
  for (const char* name : {"f", "g", "f"}) {
    GraphDef def;
    def.mutable_library()->add_function()->mutable_signature()->set_name(name);
    def.mutable_library()->add_gradient()->set_function_name(name);
    ASSERT_TRUE(ImportGraphDef(def, graph).ok());
  }
  GraphDef def;
  ExportGraphDef(graph, &def);
  ASSERT_EQ(def.library().function_size(), 2);
  EXPECT_EQ(def.library().function(1).signature().name(), "g");
  EXPECT_EQ(def.library().gradient_size(), 2);
}

TEST(ExportTest, ReadsBackAsItWas) {
  const char* texts[] = {
      "",
      "x = Placeholder() {dtype=float, shape=[?,3]}\ny = Neg(x)\nz = NoOp(^x, ^y)\n",
      "x = Placeholder() {dtype=float}\nc = Call(x) {Tout=[bool], _class=[\"loc:@x\"], "
      "f=body{n=3}} @/job:worker/task:1\n",
      "c = Const() {dtype=string, value=tensor(string[2]: \"a\" \"\\xff\")}\n",
      "k = Kinds() {b=true, f=0.1, i=-7, lb=[true], lf=[1.0], li=[1, 2], ls=[\"a\"], "
      "lshape=[[2,?], ?], lt=[int32], s=\"a\", shape=[2,?], t=double}\n",
  };
  for (const char* text : texts) {
    const Graph graph = ParseOrFail(text);
    const StatusOr<Graph> read = ParseGraph(Serialised(graph), "a graph", TestOps());
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(GraphToText(*read), text);
  }
}

// What viewers look for.
TEST(ExportTest, ShapesDevicesAndVersions) {
  Graph graph = ParseOrFail("h = Placeholder() {dtype=float, shape=[?,3]}\ndone = NoOp(^h)\n");
  graph.SetAssignedDevice(0, *DeviceName::Parse("/job:ps/task:1/device:CPU:0"));
  GraphDef def;
  ExportGraphDef(graph, &def);
  EXPECT_GT(def.versions().producer(), 0);
  EXPECT_EQ(def.node(0).device(), "/job:ps/task:1/device:CPU:0");
  const auto& shapes = def.node(0).attr().at("_output_shapes").list();
  ASSERT_EQ(shapes.shape_size(), 1);
  EXPECT_EQ(shapes.shape(0).dim(0).size(), -1);
  EXPECT_EQ(shapes.shape(0).dim(1).size(), 3);
  EXPECT_EQ(def.node(1).attr().count("_output_shapes"), 0u);
  EXPECT_EQ(def.node(1).input(0), "^h");
}

TEST(ImportTest, AGraphFromTheFutureIsRefused) {
  GraphDef def;
  ExportGraphDef(ParseOrFail("done = NoOp()\n"), &def);
  Graph graph(TestOps());
  def.mutable_versions()->set_min_consumer(kGraphVersion);
  EXPECT_TRUE(ImportGraphDef(def, graph).ok());
  for (const bool bad : {false, true}) {
    Graph other(TestOps());
    def.mutable_versions()->set_min_consumer(bad ? 0 : kGraphVersion + 1);
    if (bad) def.mutable_versions()->add_bad_consumers(kGraphVersion);
    const Status status = ImportGraphDef(def, other);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("wants to be read by version"), absl::string_view::npos);
    EXPECT_EQ(other.num_nodes(), 0);
  }
}

TEST(ExportTest, AHandleIsAScalarToReaders) {
  GraphDef def;
  ExportGraphDef(ParseOrFail("w = VarHandleOp() {dtype=float, shape=[2,3]}\n"), &def);
  const auto& shapes = def.node(0).attr().at("_output_shapes").list();
  ASSERT_EQ(shapes.shape_size(), 1);
  EXPECT_FALSE(shapes.shape(0).unknown_rank());
  EXPECT_EQ(shapes.shape(0).dim_size(), 0);
}

TEST(ExportTest, AGraphIsReplaced) {
  GraphDef def;
  def.add_node()->set_name("old");
  ExportGraphDef(Graph(TestOps()), &def);
  EXPECT_EQ(def.node_size(), 0);
}

TEST(ParseGraphTest, TellsBinaryFromText) {
  const std::string binary = Serialised(ParseOrFail("x = Placeholder() {dtype=float}\n"));
  EXPECT_EQ(Imported(binary), "x = Placeholder() {dtype=float}\n");
  EXPECT_EQ(Imported(kPlaceholder), "x = Placeholder() {dtype=float}\n");
  EXPECT_EQ(Imported(""), "");
  EXPECT_EQ(Imported("  \n# nothing\n"), "");
}

TEST(ParseGraphTest, GarbageIsDataLossAndPrintsNothing) {
  const std::string binary = Serialised(ParseOrFail("x = Placeholder() {dtype=float}\n"));
  std::string not_utf8 = binary;
  not_utf8[not_utf8.find("Placeholder")] = '\xff';
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "func { attr { key: 'a' value { ";
  const std::string texts[] = {
      "garbage",
      "node { name: 'x' op }",
      "node { nom: 'x' }",
      "node { name: '\\377' op: 'NoOp' }",
      binary.substr(0, binary.size() - 1),
      std::string(100, '\0'),
      std::string("\x0a\xff\xff\xff\xff\x0f", 6),
      not_utf8,
      "node { name: 'x' op: 'NoOp' attr { key: 'a' value { " + deep,
  };
  testing::internal::CaptureStderr();
  for (const std::string& text : texts) {
    const Status status = ParseGraph(text, "saved.pb", TestOps()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << text.substr(0, 50);
    EXPECT_THAT(std::string(status.message()), HasSubstr("saved.pb is not a graph"));
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(Imported("node {\n  name: 'x' op }"),
            "model.pbtxt is not a graph (text GraphDef): line 2, column 16: Expected \":\", found "
            "\"}\".");
}

TEST(GraphDefTest, AHundredThousandNodesTakeNoTime) {
  const ProcessorTimeLimit limit;
  const Graph graph = ParseOrFail(ChainText(100'000));
  GraphDef def;
  ExportGraphDef(graph, &def);
  // Against the edges: the last node comes first.
  for (int i = 0; i < def.node_size() / 2; ++i) {
    def.mutable_node()->SwapElements(i, def.node_size() - 1 - i);
  }
  Graph read(graph.shared_ops());
  ASSERT_TRUE(ImportGraphDef(def, read).ok());
  EXPECT_EQ(read.num_nodes(), 100'000);
  for (int i = 0; i < def.node_size(); ++i) {
    if (def.node(i).name() == "x") {
      def.mutable_node(i)->set_op("Neg");
      def.mutable_node(i)->clear_attr();
      def.mutable_node(i)->add_input("n99998");
    }
  }
  Graph cyclic(graph.shared_ops());
  const Status status = ImportGraphDef(def, cyclic);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the graph has a cycle: n99998 -> x -> n0"));
  EXPECT_EQ(cyclic.num_ids(), 0);
}

}  // namespace
}  // namespace millrace
