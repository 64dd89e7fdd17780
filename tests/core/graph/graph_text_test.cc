#include "core/graph/graph_text.h"

#include <limits>

#include "core/graph/verify.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/graph/test_ops.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

TEST(GraphTextTest, ReadsBackAsItWas) {
  const char* cases[] = {
      "",
      "x = Placeholder() {dtype=float, shape=[?,784]}\n",
      "a = NoOp()\nb = NoOp(^a)\nc = NoOp(^a, ^b) @/job:worker/task:1/device:CPU:0\n",
      "w = VarHandleOp() {dtype=float, shape=[784,10], shared_name=\"w\"} @/job:ps/task:0\n",
      "x = Placeholder() {dtype=float}\nh = Halves(x)\ny = Add(h:1, h, ^x)\n",
      "scope/x-1.0_\\> = NoOp()\n",
      "library = \"\\nf\\x00\\\"\"\nx = NoOp()\n",
      // All kinds of attribute.
      "k = Kinds() {b=true, f=0.1, i=-7, lb=[true, false], lf=[1.0, -2.5e-10], "
      "li=[1, 2], ls=[\"a\", \"b,]\"], lshape=[[2,?], ?, []], lt=[int32, string], s=\"a\\n\\\"#\", "
      "shape=[2,?,3], t=double}\n",
      "k = Kinds() {f=inf}\nl = Kinds() {f=-inf}\n",
      "k = Kinds() {f=3.4028235e+38, shape=[]}\n",
      // Lists of types are inferred from the inputs, those of the outputs are not.
      "x = Placeholder() {dtype=float}\ni = Placeholder() {dtype=int64}\n"
      "c = Call(x, i) {Tout=[float, bool], f=body}\nn = Neg(c)\n",
      "c = Call() {Tout=[], f=body{again=func:more{deep=1.0, shape=shape:[2]}, n=3}}\n",
      "x = Placeholder() {dtype=int32}\ns = AddN(x, x, x)\n",
      // Annotations tell their kind.
      "n = NoOp() {_a=1, _b=1.0, _c=\"x\", _class=[\"loc:@y\"], _d=true, _e=float, "
      "_f=shape:[2,3], _g=[1, 2], _h=list(shape):[[2,3]], _i=[], _j=list(string):[], "
      "_k=func:float, _l=list(func):[f, g{a=1}], _m=list(type):[], _n=shape:?, "
      "_o=tensor(bool[]: true), _p=[tensor(float[0]:)]}\n",
      "n = NoOp() {\"_odd name\"=1}\n",
      // Tensors.
      "t = Tensors() {functions=[], more=[tensor(int8[2]: -128 127), tensor(uint8[]: 255), "
      "tensor(string[2]: \"a b\" \"\\xff\"), tensor(double[1,2]: 0.1 1e-300), tensor(bool[2]: true "
      "false), tensor(uint64[]: 18446744073709551615), tensor(int64[0,3]:)], "
      "one=tensor(float[3]: 0.1 inf -0)}\n",
  };
  for (const char* text : cases) {
    const StatusOr<Graph> graph = GraphFromText(text, TestOps());
    ASSERT_TRUE(graph.ok()) << graph.status() << "\n" << text;
    EXPECT_EQ(GraphToText(*graph), text);
    const Status verified = Verify(*graph);
    EXPECT_TRUE(verified.ok()) << verified;
  }
}

// What a person may write, and how it is printed.
TEST(GraphTextTest, Reads) {
  const struct {
    const char* text;
    const char* printed;
  } cases[] = {
      {"# a comment\n\n  x=NoOp( ) # another\r\n\t\n", "x = NoOp()\n"},
      {"x = NoOp() {}", "x = NoOp()\n"},
      {"x = Placeholder() { dtype = float , shape = ? }", "x = Placeholder() {dtype=float}\n"},
      {"x = Placeholder(){dtype=float}\ny = Neg(x:0){T=float}@/job:a",
       "x = Placeholder() {dtype=float}\ny = Neg(x) @/job:a\n"},
      {"k = Kinds() {f=2, lf=[1], shape=[ 2 , ? ], s=\"\\x41\"}",
       "k = Kinds() {f=2.0, lf=[1.0], s=\"A\", shape=[2,?]}\n"},
      {"k = Kinds() {s=\"default\"}", "k = Kinds()\n"},
      {"c = Const() {dtype=float, value=tensor( float [2] : 1.50 2 )}",
       "c = Const() {dtype=float, value=tensor(float[2]: 1.5 2)}\n"},
  };
  for (const auto& c : cases) {
    const StatusOr<Graph> graph = GraphFromText(c.text, TestOps());
    ASSERT_TRUE(graph.ok()) << graph.status() << "\n" << c.text;
    EXPECT_EQ(GraphToText(*graph), c.printed);
  }
}

TEST(GraphTextTest, ErrorsSayWhere) {
  const struct {
    const char* text;
    const char* message;
  } cases[] = {
      {"x = NoOp()\n= NoOp()", "line 2, column 1: expected the name of a node"},
      {"x NoOp()", "line 1, column 3: expected '='"},
      {"x = ()", "line 1, column 5: expected the name of an op"},
      {"x = NoOp", "line 1, column 9: expected '('"},
      {"x = NoOp(", "line 1, column 10: expected an input"},
      {"x = NoOp(^y)", "line 1, column 11: there is no node 'y' above"},
      {"x = Neg(y)", "line 1, column 9: there is no node 'y' above"},
      {"x = NoOp()\ny = Neg(x)", "line 2, column 9: NoOp 'x' has no outputs"},
      {"a = NoOp()\nx = NoOp(^a ^a)", "line 2, column 13: expected ',' or ')'"},
      {"x = NoOp() y", "line 1, column 12: expected the end of the line"},
      {"x = Nop()", "line 1, column 5: unknown op 'Nop' of node 'x'; did you mean 'NoOp'?"},
      {"x = NoOp()\nx = NoOp()", "line 2, column 5: NoOp 'x': another node has that name"},
      {"x = NoOp() @/jobb:a", "line 1, column 5: NoOp 'x': "},
      {"x = NoOp() {", "line 1, column 13: expected a name"},
      {"x = NoOp() {_a}", "line 1, column 15: expected '='"},
      {"x = NoOp() {_a=}", "line 1, column 16: expected a value"},
      {"x = NoOp() {_a=1 _b=2}", "line 1, column 18: expected ',' or '}'"},
      {"x = NoOp() {_a=1, _a=2}", "line 1, column 19: attribute '_a' is there twice"},
      {"x = NoOp() {_a=[1, \"a\"]}", "expected an integer"},
      {"x = NoOp() {_a=[[1]]}", "expected a value"},
      {"x = Kinds() {i=1.5}", "line 1, column 16: expected an integer"},
      {"x = Kinds() {i=99999999999999999999}", "line 1, column 16: expected an integer"},
      {"x = Kinds() {b=1}", "line 1, column 16: expected true or false"},
      {"x = Kinds() {t=flot}", "line 1, column 16: "},
      {"x = Kinds() {s=a}", "line 1, column 16: expected a string in double quotes"},
      {"x = Kinds() {s=\"a}", "line 1, column 16: the string has no end"},
      {"x = Kinds() {s=\"\\q\"}", "line 1, column 16: "},
      {"x = Kinds() {li=1}", "line 1, column 17: expected '['"},
      {"x = Kinds() {li=[1}", "line 1, column 19: expected ',' or ']'"},
      {"x = Kinds() {shape=[a]}", "line 1, column 20: "},
      {"x = Kinds() {shape=[2}", "line 1, column 20: "},
      {"x = Kinds() {shape=[1,1,1,1,1,1,1,1,1]}", "more than the 8 dimensions"},
      {"x = Const() {value=1}", "line 1, column 20: expected a tensor"},
      {"x = Const() {value=tensor(float[2]: 1)}", "expected 2 values, but there are 1"},
      {"x = Const() {value=tensor(float[1]: 1 2)}", "expected ')' after 1 values"},
      {"x = Const() {value=tensor(float[?]: 1)}", "is not fully known"},
      {"x = Const() {value=tensor(float[9999999999]:)}", "expected 9999999999 values"},
      {"x = Const() {value=tensor(int8[]: 128)}", "expected a value of the tensor"},
      {"x = Const() {value=tensor(half[]: 1)}", "values of a half tensor are written as bytes"},
      {"x = Const() {value=tensor(float[]: base64 AAA=)}", "bytes are not a tensor float[]"},
      {"x = Const() {value=tensor(float[]: base64 !)}", "this is not base64"},
      {"x = Const() {value=tensor(float[]: 1}", "expected ')' after 1 values"},
      {"x = Const() {value=tensor(string[]: a)}", "expected a value of the tensor"},
      {"x = Const() {value=tensor(resource[]: a)}", "values of a resource tensor"},
      {"library = \"a\" b", "line 1, column 15: expected the end of the line"},
  };
  for (const auto& c : cases) {
    const Status status = GraphFromText(c.text, TestOps()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message)) << c.text;
  }
}

TEST(GraphTextTest, NestingIsLimited) {
  std::string text = "c = Call() {Tin=[], Tout=[], f=f";
  std::string end;
  for (int i = 0; i < 100'000; ++i) text += "{a=func:f";
  EXPECT_THAT(GraphFromText(text, TestOps()).status().message(),
              HasSubstr("functions are nested too deeply"));
  // As deep as the wire form has them, and no deeper: else they could not be written out.
  for (const int depth : {15, 16}) {
    text = "c = Call() {Tin=[], Tout=[], f=f";
    for (int i = 0; i < depth; ++i) text += "{a=func:f";
    EXPECT_EQ(GraphFromText(text + std::string(depth, '}') + "}", TestOps()).ok(), depth < 16);
  }
  text = "c = NoOp() {_a=" + std::string(100'000, '[');
  EXPECT_FALSE(GraphFromText(text, TestOps()).ok());
}

// Bit for bit, in values or as bytes.
TEST(GraphTextTest, TensorsAreExact) {
  std::vector<float> many(1000);
  for (size_t i = 0; i < many.size(); ++i) many[i] = 1.0f / static_cast<float>(i + 3);
  uint32_t signalling = 0x7f812345;
  float odd;
  std::memcpy(&odd, &signalling, sizeof(odd));
  const Tensor tensors[] = {
      Tensor::Of<float>({10, 100}, many),
      Tensor::Of<float>({2}, {odd, 1}),
      Tensor::Of<float>(
          {2}, {std::numeric_limits<float>::denorm_min(), std::numeric_limits<float>::lowest()}),
      Tensor::Of<double>({2}, {1.0 / 3, -0.0}),
      Tensor::Zeros(DType::kHalf, {2, 2}),
      Tensor::Zeros(DType::kBfloat16, {0, 2}),
      Tensor::Zeros(DType::kBool, {100}),
      Tensor::Of<int64_t>({2}, {std::numeric_limits<int64_t>::min(), 1}),
      Tensor::Strings({2}, {"", std::string("\0\xff\n1", 4)}),
      Tensor(),
  };
  for (const Tensor& tensor : tensors) {
    Graph graph(TestOps());
    NodeSpec spec;
    spec.name = "n";
    spec.op = "NoOp";
    spec.attrs.Set("_t", tensor);
    ASSERT_TRUE(graph.AddNode(spec).ok());
    const std::string text = GraphToText(graph);
    const StatusOr<Graph> read = GraphFromText(text, graph.shared_ops());
    ASSERT_TRUE(read.ok()) << read.status() << text;
    EXPECT_TRUE(read->node(0)->attrs() == graph.node(0)->attrs()) << text;
    EXPECT_EQ(GraphToText(*read), text);
  }
}

// Any other byte in a bool is undefined behaviour to look at.
TEST(GraphTextTest, BoolsAreZeroOrOne) {
  const Graph graph = ParseOrFail("n = NoOp() {_t=tensor(bool[3]: base64 AAL/)}", TestOps());
  const Tensor tensor = graph.Find("n")->attrs().Get<Tensor>("_t").value();
  const auto* values = static_cast<const uint8_t*>(tensor.raw_data());
  EXPECT_EQ(std::vector<int>(values, values + 3), (std::vector<int>{0, 1, 1}));
}

TEST(GraphTextTest, LinesComeInTopologicalOrder) {
  Graph graph = ParseOrFail("a = NoOp()\nb = NoOp()\nc = NoOp(^a)\n");
  graph.AddControlInput(0, 1);
  EXPECT_EQ(GraphToText(graph), "b = NoOp()\na = NoOp(^b)\nc = NoOp(^a)\n");
  graph.AddControlInput(2, 1);
  const std::string text = GraphToText(graph);
  EXPECT_EQ(text, "b = NoOp()\na = NoOp(^b)\nc = NoOp(^b, ^a)\n");
  EXPECT_EQ(GraphToText(ParseOrFail(text)), text);
}

TEST(GraphTextTest, ABrokenGraphIsPrintedAllTheSame) {
  Graph graph = ParseOrFail("x = Placeholder() {dtype=float}\na = Neg(x)\nb = Neg(a)\n");
  ASSERT_TRUE(graph.ReplaceInput(1, 0, Port{2, 0}).ok());
  graph.RemoveNode(0);
  graph.AddControlInput(2, 0);
  EXPECT_EQ(GraphToText(graph), "# the graph has a cycle: a -> b -> a\na = Neg(b)\nb = Neg(a)\n");
}

TEST(GraphTextTest, TheAssignedDeviceIsShownIfThereIsOne) {
  Graph graph = ParseOrFail("a = NoOp() @/job:ps\n");
  graph.SetAssignedDevice(0, *DeviceName::Parse("/job:ps/task:0/device:CPU:0"));
  EXPECT_EQ(GraphToText(graph), "a = NoOp() @/job:ps/task:0/device:CPU:0\n");
  const Graph read = ParseOrFail(GraphToText(graph));
  EXPECT_EQ(read.node(0)->requested_device(), "/job:ps/task:0/device:CPU:0");
  EXPECT_FALSE(read.node(0)->assigned_device().IsFull());
}

TEST(GraphTextTest, AHundredThousandLinesTakeNoTime) {
  const ProcessorTimeLimit limit;
  const std::string text = ChainText(100'000);
  EXPECT_EQ(GraphToText(ParseOrFail(text)), text);
}

}  // namespace
}  // namespace millrace
