#include "absl/strings/str_join.h"
#include "core/graph/algorithms.h"
#include "core/graph/graph_text.h"
#include "core/graph/verify.h"
#include "gtest/gtest.h"
#include "tests/core/graph/test_ops.h"

namespace millrace {
namespace {

// The pruned graph, and what its feeds, fetches and targets have become.
std::string Pruned(absl::string_view text, const StepSignature& signature) {
  const Graph graph = ParseOrFail(text);
  const StatusOr<PrunedGraph> pruned = Prune(graph, signature);
  if (!pruned.ok()) return std::string(pruned.status().message());
  const Status verified = Verify(pruned->graph);
  EXPECT_TRUE(verified.ok()) << verified;
  const auto port = [&](std::string* out, const Port& p) {
    absl::StrAppend(out, pruned->graph.PortName(p));
  };
  const auto node = [&](std::string* out, NodeId id) {
    absl::StrAppend(out, pruned->graph.node(id)->name());
  };
  return StrCat(GraphToText(pruned->graph), absl::StrJoin(pruned->feeds, " ", port), " -> ",
                absl::StrJoin(pruned->fetches, " ", port), " | ",
                absl::StrJoin(pruned->targets, " ", node));
}

constexpr char kTraining[] = R"(x = Placeholder() {dtype=float, shape=[2]} @/job:worker
label = Placeholder() {dtype=float, shape=[2]}
h = Halves(x)
y = Add(h, h:1)
loss = Mul(y, label)
other = Neg(label)
init = NoOp()
train = NoOp(^loss, ^init)
)";

TEST(PruneTest, KeepsWhatIsNeeded) {
  EXPECT_EQ(Pruned(kTraining, {{"x"}, {"y"}, {}}),
            "x = Placeholder() {dtype=float, shape=[2]} @/job:worker\n"
            "h = Halves(x)\n"
            "y = Add(h, h:1)\n"
            "x -> y | ");
  EXPECT_EQ(Pruned(kTraining, {{}, {}, {"init"}}), "init = NoOp()\n ->  | init");
  EXPECT_EQ(Pruned(kTraining, {}), " ->  | ");
}

TEST(PruneTest, ControlInputsAreNeeded) {
  EXPECT_EQ(Pruned(kTraining, {{"y:0", "label"}, {}, {"train"}}),
            "label = Placeholder() {dtype=float, shape=[2]}\n"
            "y = Placeholder() {dtype=float}\n"
            "loss = Mul(y, label)\n"
            "init = NoOp()\n"
            "train = NoOp(^loss, ^init)\n"
            "y label ->  | train");
}

// What is fed may be fetched as well, in any order, and need not be used.
TEST(PruneTest, FeedsThatNothingUsesAreKept) {
  EXPECT_EQ(Pruned(kTraining, {{"label", "x"}, {"x", "label", "x:0"}, {}}),
            "x = Placeholder() {dtype=float, shape=[2]} @/job:worker\n"
            "label = Placeholder() {dtype=float, shape=[2]}\n"
            "label x -> x label x | ");
}

TEST(PruneTest, OneFedPortOfANodeLeavesItsOthers) {
  EXPECT_EQ(Pruned(kTraining, {{"h:1", "x"}, {"y"}, {}}),
            "x = Placeholder() {dtype=float, shape=[2]} @/job:worker\n"
            "h/feed_1 = Placeholder() {dtype=float}\n"
            "h = Halves(x)\n"
            "y = Add(h, h/feed_1)\n"
            "h/feed_1 x -> y | ");
  EXPECT_EQ(Pruned(kTraining, {{"h:1", "h:0"}, {"y"}, {}}),
            "h = Placeholder() {dtype=float}\n"
            "h/feed_1 = Placeholder() {dtype=float}\n"
            "y = Add(h, h/feed_1)\n"
            "h/feed_1 h -> y | ");
}

TEST(PruneTest, TheNewPlaceholdersNameIsFree) {
  EXPECT_EQ(Pruned("h/feed_0 = Placeholder() {dtype=float}\nh = Halves(h/feed_0)\n"
                   "y = Add(h, h:1)\n",
                   {{"h", "h/feed_0"}, {"y"}, {}}),
            "h/feed_0 = Placeholder() {dtype=float}\n"
            "h/feed_0_ = Placeholder() {dtype=float}\n"
            "h = Halves(h/feed_0)\n"
            "y = Add(h/feed_0_, h:1)\n"
            "h/feed_0_ h/feed_0 -> y | ");
}

// A control edge from what is replaced goes to what replaces it.
TEST(PruneTest, AFedNodeStandsForItsControlEdges) {
  EXPECT_EQ(Pruned("a = Const() {dtype=float, value=tensor(float[]: 1)}\nb = Neg(a)\n"
                   "c = NoOp(^b)\n",
                   {{"b"}, {}, {"c"}}),
            "b = Placeholder() {dtype=float, shape=[]}\nc = NoOp(^b)\nb ->  | c");
}

TEST(PruneTest, WhatOnlyOrdersIsNoReasonToRun) {
  constexpr char kText[] = R"(w = VarHandleOp() {dtype=float, shape=[2]}
v = Const() {dtype=float, value=tensor(float[2]: 1 2)}
init = AssignVariableOp(w, v)
read = ReadVariableOp(w, ^init) {_millrace_order_only=["init"], dtype=float}
both = NoOp(^init, ^read)
)";
  EXPECT_EQ(Pruned(kText, {{}, {"read"}, {}}),
            "w = VarHandleOp() {dtype=float, shape=[2]}\n"
            "read = ReadVariableOp(w) {_millrace_order_only=[\"init\"], dtype=float}\n"
            " -> read | ");
  EXPECT_EQ(Pruned(kText, {{}, {}, {"both"}}), StrCat(kText, " ->  | both"));
}

// Neither the read nor the update between two that run is needed; these keep their order.
TEST(PruneTest, WhatOrdersIsPassedOnByWhatIsLeftOut) {
  constexpr char kText[] = R"(w = VarHandleOp() {dtype=float, shape=[2]}
v = Const() {dtype=float, value=tensor(float[2]: 1 2)}
init = AssignVariableOp(w, v)
read = ReadVariableOp(w, ^init) {_millrace_order_only=["init"], dtype=float}
train = AssignVariableOp(w, v, ^read) {_millrace_order_only=["read"]}
after = ReadVariableOp(w, ^train) {_millrace_order_only=["train"], dtype=float}
)";
  EXPECT_EQ(Pruned(kText, {{}, {"after"}, {"init"}}),
            "w = VarHandleOp() {dtype=float, shape=[2]}\n"
            "v = Const() {dtype=float, value=tensor(float[2]: 1 2)}\n"
            "init = AssignVariableOp(w, v)\n"
            "after = ReadVariableOp(w, ^init) {_millrace_order_only=[\"train\"], dtype=float}\n"
            " -> after | init");
  EXPECT_EQ(Pruned(kText, {{}, {}, {"train"}}),
            "w = VarHandleOp() {dtype=float, shape=[2]}\n"
            "v = Const() {dtype=float, value=tensor(float[2]: 1 2)}\n"
            "train = AssignVariableOp(w, v) {_millrace_order_only=[\"read\"]}\n"
            " ->  | train");
}

TEST(PruneTest, Errors) {
  const struct {
    StepSignature signature;
    const char* message;
  } cases[] = {
      {{{"z"}, {}, {}}, "cannot feed: there is no 'z' in the graph"},
      {{{"labels"}, {}, {}},
       "cannot feed: there is no 'labels' in the graph; did you mean 'label'?"},
      {{{}, {"lost"}, {}}, "cannot fetch: there is no 'lost' in the graph; did you mean 'loss'?"},
      {{{}, {"x:1"}, {}},
       "cannot fetch: there is no 'x:1' in the graph: Placeholder 'x' has 1 output"},
      {{{}, {}, {"tarin"}}, "cannot run: there is no 'tarin' in the graph; did you mean 'train'?"},
      {{{}, {}, {"y:0"}}, "cannot run 'y:0': it names an output; the operation is 'y'"},
      {{{"x", "x:0"}, {}, {}}, "'x' is fed twice"},
      {{{}, {"train"}, {}}, "cannot fetch NoOp 'train': it has no outputs; use it as a target"},
      {{{"train"}, {}, {}}, "cannot feed: NoOp 'train' has no outputs"},
      {{{}, {"y"}, {}},
       "placeholder 'x' (float [2]) must be fed: what is fetched or run depends on it"},
      {{{}, {"loss"}, {}},
       "placeholders 'x' (float [2]), 'label' (float [2]) must be fed: what is fetched or run "
       "depends on them"},
  };
  for (const auto& c : cases) EXPECT_EQ(Pruned(kTraining, c.signature), c.message);
  EXPECT_EQ(Pruned("w = VarHandleOp() {dtype=float, shape=[2]}\n", {{"w"}, {}, {}}),
            "cannot feed 'w': it is the handle of a resource");
}

TEST(PruneTest, ErrorCodes) {
  const Graph graph = ParseOrFail(kTraining);
  EXPECT_EQ(Prune(graph, {{"z"}, {}, {}}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Prune(graph, {{}, {"z"}, {}}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Prune(graph, {{}, {}, {"z"}}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Prune(graph, {{}, {"train"}, {}}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Prune(graph, {{}, {"y"}, {}}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(PruneTest, ShapesAndDevicesAreKept) {
  Graph graph = ParseOrFail(kTraining);
  graph.SetOutputShape(*graph.FindPort("x"), PartialShape{2});
  graph.SetAssignedDevice(graph.Find("x")->id(),
                          *DeviceName::Parse("/job:worker/task:0/device:CPU:0"));
  graph.SetOutputShape(*graph.FindPort("h"), PartialShape{1});
  graph.set_library("functions");
  const StatusOr<PrunedGraph> pruned = Prune(graph, {{"x"}, {"h"}, {}});
  ASSERT_TRUE(pruned.ok()) << pruned.status();
  EXPECT_EQ(pruned->graph.Find("h")->output_shape(0).ToString(), "[1]");
  EXPECT_TRUE(pruned->graph.Find("x")->assigned_device().IsFull());
  EXPECT_EQ(pruned->graph.library(), "functions");
}

TEST(PruneTest, AHundredThousandNodesTakeNoTime) {
  const ProcessorTimeLimit limit;
  const Graph graph = ParseOrFail(ChainText(100'000));
  const StatusOr<PrunedGraph> pruned = Prune(graph, {{"x"}, {"n99998"}, {}});
  ASSERT_TRUE(pruned.ok()) << pruned.status();
  EXPECT_EQ(pruned->graph.num_nodes(), 100'000);
}

}  // namespace
}  // namespace millrace
