#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
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

}  // namespace
}  // namespace millrace::testing
