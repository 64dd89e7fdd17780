#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "core/graph/graph_text.h"
#include "core/graph/verify.h"
#include "gtest/gtest.h"
#include "tests/distributed/strategy/small_models.h"
#include "tests/testing/op_text.h"

namespace millrace::testing {
namespace {

// Of a graph in text form: its program for feeds of these shapes, after folding.
StatusOr<Program> RewriteText(const char* text, const StepSignature& signature,
                              const std::vector<Shape>& shapes,
                              DataParallelPsOptions options = TwoWorkers()) {
  static LocalMachine& machine = *new LocalMachine;
  MR_ASSIGN_OR_RETURN(const Graph graph, GraphFromText(text, AllOps()));
  MR_ASSIGN_OR_RETURN(PrunedGraph pruned, Prune(graph, signature));
  std::vector<std::pair<Port, PartialShape>> known;
  for (size_t i = 0; i < shapes.size(); ++i) known.emplace_back(pruned.feeds[i], shapes[i]);
  MR_RETURN_IF_ERROR(SpecializeShapes(pruned.graph, known));
  MR_RETURN_IF_ERROR(machine.Passes()(pruned));
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<Strategy> strategy,
                      NewDataParallelPs(std::move(options)));
  MR_ASSIGN_OR_RETURN(Program program, strategy->Rewrite(pruned, signature));
  MR_RETURN_IF_ERROR(Verify(program.graph));
  return program;
}

// The text without the reasons for devices, which would hide the rest.
std::string Shortened(const Program& program) {
  std::string text;
  for (absl::string_view line : absl::StrSplit(program.ToText(), '\n')) {
    const size_t reason = line.find("_millrace_request_reason=\"");
    if (reason == absl::string_view::npos) {
      absl::StrAppend(&text, line, line.empty() ? "" : "\n");
      continue;
    }
    const size_t end = line.find('"', line.find('"', reason) + 1) + 1;
    std::string kept = StrCat(line.substr(0, reason), line.substr(end));
    for (const char* rest : {" {}", ", }", "{, "}) {
      const size_t at = kept.find(rest);
      if (at == std::string::npos) continue;
      kept.replace(at, 3, rest[0] == ',' ? "}" : rest[0] == '{' ? "{" : "");
    }
    absl::StrAppend(&text, kept, "\n");
  }
  return text;
}

constexpr char kLinear[] =
    R"(x = Placeholder() {dtype=float, shape=[?,2]}
       v = VarHandleOp() {dtype=float, shape=[2,3], shared_name="v"}
       w = ReadVariableOp(v) {dtype=float}
       y = MatMul(x, w)
       two = Const() {dtype=float, value=tensor(float[]: 2)}
       z = Mul(y, two)
       axes = Const() {dtype=int32, value=tensor(int32[2]: 0 1)}
       loss = Mean(z, axes)
       g = MatMul(x, z) {transpose_a=true}
       rate = Const() {dtype=float, value=tensor(float[]: 0.5)}
       u = ResourceApplyGradientDescent(v, rate, g))";

constexpr char kLinearProgram[] = R"(# program of data_parallel_ps(2 replicas)
# loop 'step': feeds 2, fetches [loss/sum_over_replicas, y/join], targets [u]
# feed 'x' -> replica_0/x rows [0,2) -> replica_1/x rows [2,5)
# layout x: S(0)
# layout v: B @/job:ps
# layout y: S(0)
# layout z: S(0)
# layout loss: P
# layout g: P
replica_0/x = Placeholder() {dtype=float, shape=[2,2]} @/job:worker/task:0
replica_1/x = Placeholder() {dtype=float, shape=[3,2]} @/job:worker/task:1
v = VarHandleOp() {dtype=float, shape=[2,3], shared_name="v"} @/job:ps
w = ReadVariableOp(v) {dtype=float} @/job:ps
replica_0/y = MatMul(replica_0/x, w) @/job:worker/task:0
replica_1/y = MatMul(replica_1/x, w) @/job:worker/task:1
replica_0/two = Const() {dtype=float, value=tensor(float[]: 2)} @/job:worker/task:0
replica_0/z = Mul(replica_0/y, replica_0/two) @/job:worker/task:0
replica_1/two = Const() {dtype=float, value=tensor(float[]: 2)} @/job:worker/task:1
replica_1/z = Mul(replica_1/y, replica_1/two) @/job:worker/task:1
replica_0/axes = Const() {dtype=int32, value=tensor(int32[2]: 0 1)} @/job:worker/task:0
replica_0/loss = Mean(replica_0/z, replica_0/axes) @/job:worker/task:0
replica_0/loss/share = Const() {dtype=float, value=tensor(float[]: 0.4)} @/job:worker/task:0
replica_0/loss/weighted = Mul(replica_0/loss, replica_0/loss/share) @/job:worker/task:0
replica_1/axes = Const() {dtype=int32, value=tensor(int32[2]: 0 1)} @/job:worker/task:1
replica_1/loss = Mean(replica_1/z, replica_1/axes) @/job:worker/task:1
replica_1/loss/share = Const() {dtype=float, value=tensor(float[]: 0.6)} @/job:worker/task:1
replica_1/loss/weighted = Mul(replica_1/loss, replica_1/loss/share) @/job:worker/task:1
replica_0/g = MatMul(replica_0/x, replica_0/z) {transpose_a=true} @/job:worker/task:0
replica_1/g = MatMul(replica_1/x, replica_1/z) {transpose_a=true} @/job:worker/task:1
rate = Const() {dtype=float, value=tensor(float[]: 0.5)} @/job:ps
g/sum_over_replicas = AddN(replica_0/g, replica_1/g) {_class=["loc:@v"]} @/job:ps
u = ResourceApplyGradientDescent(v, rate, g/sum_over_replicas) @/job:ps
loss/sum_over_replicas = AddN(replica_0/loss/weighted, replica_1/loss/weighted) @/job:ps
y/join/axis = Const() {dtype=int32, value=tensor(int32[]: 0)} @/job:ps
y/join = ConcatV2(replica_0/y, replica_1/y, y/join/axis) @/job:ps
)";

TEST(DataParallelProgramTest, TheWholeTextOfALinearModel) {
  const StatusOr<Program> program = RewriteText(kLinear, {{"x"}, {"loss", "y"}, {"u"}}, {{5, 2}});
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(Shortened(*program), kLinearProgram);
}

TEST(DataParallelProgramTest, EqualInputsGiveEqualPrograms) {
  const StepSignature signature = {{"x"}, {"loss"}, {"u"}};
  EXPECT_EQ(RewriteText(kLinear, signature, {{8, 2}})->ToText(),
            RewriteText(kLinear, signature, {{8, 2}})->ToText());
}

TEST(DataParallelProgramTest, NodesSayWhyTheyAreWhereTheyAre) {
  const StatusOr<Program> program = RewriteText(kLinear, {{"x"}, {"loss"}, {"u"}}, {{4, 2}});
  ASSERT_TRUE(program.ok()) << program.status();
  auto reason = [&](const char* node) {
    return program->graph.Find(node)->attrs().GetOr(kRequestReasonAttr, std::string());
  };
  EXPECT_EQ(reason("replica_0/x"), "replica 0 of 2: its rows of the batch");
  EXPECT_EQ(reason("replica_1/y"), "replica 1 of 2: reads its part (S(0)) of 'x'");
  EXPECT_EQ(reason("replica_0/two"), "replica 0's own copy of a constant: nothing to send");
  EXPECT_EQ(reason("v"), "variables live on the parameter server");
  EXPECT_EQ(reason("w"), "read where the variable lives");
  EXPECT_EQ(reason("u"), "updated where the variable lives");
  EXPECT_EQ(reason("g/sum_over_replicas"), "put together from 2 replicas, beside the variables");
}

TEST(DataParallelProgramTest, OneReplicaNeedsNeitherSumsNorJoins) {
  DataParallelPsOptions options = TwoWorkers();
  options.replica_devices.resize(1);
  const StatusOr<Program> program =
      RewriteText(kLinear, {{"x"}, {"loss", "y"}, {"u"}}, {{5, 2}}, options);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(program->ToText().find("AddN"), std::string::npos);
  EXPECT_EQ(program->ToText().find("ConcatV2"), std::string::npos);
}

// Lines that a program must hold, and one that it must not.
struct LineCase {
  const char* name;
  const char* graph;
  StepSignature step;
  std::vector<Shape> shapes;
  std::vector<std::string> lines;
  const char* absent;
};

void ExpectLines(const LineCase& c) {
  const StatusOr<Program> program = RewriteText(c.graph, c.step, c.shapes);
  ASSERT_TRUE(program.ok()) << c.name << ": " << program.status();
  const std::string text = Shortened(*program);
  for (const std::string& line : c.lines) {
    EXPECT_NE(text.find(line + "\n"), std::string::npos) << c.name << ": " << line << "\n" << text;
  }
  if (c.absent[0] == '\0') return;
  EXPECT_EQ(text.find(c.absent), std::string::npos) << c.name << ": " << c.absent << "\n" << text;
}

TEST(DataParallelProgramTest, SingleLines) {
  const LineCase cases[] = {
      {"shape operands are localised",
       R"(x = Placeholder() {dtype=float, shape=[?,2,3]}
          s = Const() {dtype=int32, value=tensor(int32[2]: 5 6)}
          y = Reshape(x, s))",
       {{"x"}, {"y"}, {}},
       {{5, 2, 3}},
       {"replica_0/y/local_1 = Const() {dtype=int32, value=tensor(int32[2]: 2 6)} "
        "@/job:worker/task:0",
        "replica_1/y/local_1 = Const() {dtype=int32, value=tensor(int32[2]: 3 6)} "
        "@/job:worker/task:1"},
       ""},
      {"rows of a constant are cut from each replica's copy",
       R"(x = Placeholder() {dtype=float, shape=[?]}
          c = Const() {dtype=float, value=tensor(float[4]: 1 2 3 4)}
          y = Mul(x, c))",
       {{"x"}, {"y"}, {}},
       {{4}},
       {"replica_1/c/rows/begin = Const() {dtype=int64, value=tensor(int64[1]: 2)} "
        "@/job:worker/task:1",
        "replica_1/c/rows = Slice(replica_1/c, replica_1/c/rows/begin, replica_1/c/rows/size) "
        "@/job:worker/task:1"},
       "\nc = Const"},
      {"rows of a drawn mask are cut where it is drawn",
       R"(x = Placeholder() {dtype=float, shape=[?]}
          s = Shape(x)
          m = RandomUniform(s) {dtype=float}
          y = Mul(x, m))",
       {{"x"}, {"y"}, {}},
       {{4}},
       {"m = RandomUniform(s/folded) {dtype=float} @/job:ps",
        "replica_1/m/rows = Slice(m, replica_1/m/rows/begin, replica_1/m/rows/size) @/job:ps"},
       ""},
      {"what every replica has is not sent to and fro",
       R"(x = Placeholder() {dtype=float, shape=[?]}
          a = Const() {dtype=int32, value=tensor(int32[1]: 0)}
          loss = Sum(x, a)
          one = OnesLike(loss)
          two = Const() {dtype=float, value=tensor(float[]: 2)}
          half = RealDiv(one, two)
          y = Mul(x, half))",
       {{"x"}, {"y"}, {}},
       {{4}},
       {"replica_1/half = RealDiv(replica_1/one, replica_1/two) @/job:worker/task:1"},
       "\nhalf = "},
      {"scalars are not split",
       R"(x = Placeholder() {dtype=float, shape=[?]}
          k = Placeholder() {dtype=float, shape=[]}
          y = Mul(x, k))",
       {{"x", "k"}, {"y"}, {}},
       {{4}, {}},
       {"# feed 'k' -> k", "replica_0/y = Mul(replica_0/x, k) @/job:worker/task:0"},
       ""},
      {"a whole value keeps the device that it asks for, and updates follow their variable",
       R"(g = Placeholder() {dtype=float, shape=[]}
          v = VarHandleOp() {dtype=float, shape=[], shared_name="v"} @/job:ps/task:1
          u = AssignAddVariableOp(v, g))",
       {{"g"}, {}, {"u"}},
       {{}},
       {"u = AssignAddVariableOp(v, g) @/job:ps/task:1", "# layout v: B @/job:ps/task:1"},
       ""},
      {"colocations are kept among copies of one kind",
       R"(x = Placeholder() {dtype=float, shape=[?]}
          y = Neg(x)
          z = Tanh(x) {_class=["loc:@y"]})",
       {{"x"}, {"z", "y"}, {}},
       {{4}},
       {"replica_1/z = Tanh(replica_1/x) {_class=[\"loc:@replica_1/y\"]} @/job:worker/task:1"},
       ""},
      {"control inputs are of the same replica, or of all",
       R"(x = Placeholder() {dtype=float, shape=[?]}
          y = Neg(x)
          z = Tanh(x, ^y)
          n = NoOp(^z))",
       {{"x"}, {}, {"n"}},
       {{4}},
       {"replica_1/z = Tanh(replica_1/x, ^replica_1/y) @/job:worker/task:1",
        "n = NoOp(^replica_0/z, ^replica_1/z) @/job:ps"},
       ""},
  };
  for (const LineCase& c : cases) ExpectLines(c);
}

struct ErrorCase {
  const char* graph;
  StepSignature step;
  std::vector<Shape> shapes;  // fewer than the feeds: the others are not specialised
  const char* message;
};

TEST(DataParallelProgramTest, WhatCannotBeSplitIsRefusedByName) {
  constexpr char kTwo[] =
      R"(k = Placeholder() {dtype=float, shape=[]}
         x = Placeholder() {dtype=float, shape=[?]}
         z = Placeholder() {dtype=float, shape=[?]}
         a = Neg(x)
         b = Neg(z))";
  const ErrorCase cases[] = {
      {kTwo, {{"x"}, {"a"}, {}}, {}, "feed 'x' has shape [?]: its leading extent must be known"},
      // The scalar that is fed first is not what the others are compared with.
      {kTwo,
       {{"k", "x", "z"}, {"a", "b"}, {}},
       {{}, {4}, {3}},
       "feed 'z' has 3 rows, but feed 'x' has 4"},
      {kTwo, {{"x"}, {"a"}, {}}, {{1}}, "feed 'x' has 1 rows, fewer than the 2 replicas"},
      {R"(x = Placeholder() {dtype=int32, shape=[?]}
          a = Const() {dtype=int32, value=tensor(int32[1]: 0)}
          y = Mean(x, a))",
       {{"x"}, {"y"}, {}},
       {{4}},
       "splitting Mean 'y': a mean of dtype int32 cannot be split"},
  };
  for (const ErrorCase& c : cases) {
    const Status status = RewriteText(c.graph, c.step, c.shapes).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.message;
    EXPECT_NE(status.message().find(c.message), std::string::npos) << status;
  }
}

// Folding is what settles shapes; without it a Shape is left.
TEST(DataParallelProgramTest, AShapeLeftAlongTheSplitDimensionIsRefusedByName) {
  StatusOr<Graph> graph = GraphFromText(
      R"(x = Placeholder() {dtype=float, shape=[4]}
         s = Shape(x))",
      AllOps());
  ASSERT_TRUE(graph.ok()) << graph.status();
  const StepSignature signature = {{"x"}, {"s"}, {}};
  const StatusOr<PrunedGraph> pruned = Prune(*graph, signature);
  const Status status =
      NewDataParallelPs(TwoWorkers()).value()->Rewrite(*pruned, signature).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("Shape 's': shape unresolved along a split dimension"),
            std::string::npos)
      << status;
}

TEST(DataParallelProgramTest, OnlyTheNamedFeedsAreSplit) {
  DataParallelPsOptions options = TwoWorkers();
  options.split_feeds = {"x:0"};
  const StatusOr<Program> program = RewriteText(
      R"(x = Placeholder() {dtype=float, shape=[?,3]}
         k = Placeholder() {dtype=float, shape=[3]}
         y = Mul(x, k))",
      {{"x", "k"}, {"y"}, {}}, {{4, 3}, {3}}, options);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(program->feeds[0].pieces.size(), 2u);
  EXPECT_EQ(program->feeds[1].dim, -1);
  EXPECT_EQ(program->feeds[1].pieces.size(), 1u);
}

TEST(DataParallelOptionsTest, DevicesAreChecked) {
  DataParallelPsOptions options;
  EXPECT_EQ(NewDataParallelPs(options).status().code(), absl::StatusCode::kInvalidArgument);
  options = TwoWorkers();
  options.replica_devices[1] = "/jub:worker";
  EXPECT_EQ(NewDataParallelPs(options).status().code(), absl::StatusCode::kInvalidArgument);
  options = TwoWorkers();
  options.variable_device = "ps";
  EXPECT_EQ(NewDataParallelPs(options).status().code(), absl::StatusCode::kInvalidArgument);
}

// Of the processor, so that other programs on the machine do not count.
TEST(DataParallelLargeTest, TenThousandNodesTakeLessThanASecond) {
  std::string text = "x0 = Placeholder() {dtype=float, shape=[8,4]}\n";
  for (int i = 0; i < 10'000; ++i) absl::StrAppend(&text, "x", i + 1, " = Neg(x", i, ")\n");
  StatusOr<Graph> graph = GraphFromText(text, AllOps());
  ASSERT_TRUE(graph.ok()) << graph.status();
  const StepSignature signature = {{"x0"}, {"x10000"}, {}};
  const StatusOr<PrunedGraph> pruned = Prune(*graph, signature);
  ASSERT_TRUE(pruned.ok()) << pruned.status();
  const std::unique_ptr<Strategy> strategy = NewDataParallelPs(TwoWorkers()).value();
  const std::clock_t start = std::clock();
  const StatusOr<Program> program = strategy->Rewrite(*pruned, signature);
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 1);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(program->graph.num_nodes(), 2 * 10'001 + 2);
}

}  // namespace
}  // namespace millrace::testing
