#include "core/runtime/partitioner.h"

#include "core/graph/graph_text.h"
#include "core/graph/verify.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/runtime/test_program.h"

namespace millrace::testing {
namespace {

using ::testing::HasSubstr;

constexpr char kA[] = "/job:a/task:0/device:CPU:0";
constexpr char kB[] = "/job:b/task:0/device:CPU:0";

// Each node gets the device that it requests: "a" or "b" as its job.
PrunedGraph Placed(absl::string_view text, const StepSignature& signature = {}) {
  Graph graph = GraphOrFail(text);
  for (NodeId id = 0; id < graph.num_ids(); ++id) {
    if (graph.node(id)->requested_device().empty()) continue;
    graph.SetAssignedDevice(id, Name(graph.node(id)->requested_device()));
    graph.SetRequestedDevice(id, "");
  }
  PrunedGraph pruned{std::move(graph), {}, {}, {}};
  for (const std::string& name : signature.feeds) {
    pruned.feeds.push_back(*pruned.graph.FindPort(name));
  }
  for (const std::string& name : signature.fetches) {
    pruned.fetches.push_back(*pruned.graph.FindPort(name));
  }
  for (const std::string& name : signature.targets) {
    pruned.targets.push_back(pruned.graph.Find(name)->id());
  }
  return pruned;
}

// The pieces in text form, one after the other, devices left out.
std::string CutText(const PrunedGraph& pruned) {
  StatusOr<PartitionedProgram> program = PartitionGraph(pruned);
  if (!program.ok()) return std::string(program.status().message());
  std::string result;
  for (Partition& partition : program->partitions) {
    EXPECT_TRUE(Verify(partition.graph).ok()) << Verify(partition.graph);
    absl::StrAppend(&result, "[", *partition.device.job, "]\n");
    for (NodeId id = 0; id < partition.graph.num_ids(); ++id) {
      EXPECT_EQ(partition.graph.node(id)->assigned_device().ToString(),
                partition.device.ToString());
      partition.graph.SetAssignedDevice(id, DeviceName());
      for (const char* attr : {"send_device", "recv_device"}) {
        if (partition.graph.node(id)->attrs().Has(attr)) {
          partition.graph.SetAttr(id, attr, std::string());
        }
      }
    }
    absl::StrAppend(&result, GraphToText(partition.graph));
  }
  return result;
}

std::string At(const char* device) { return StrCat(" @", device, "\n"); }

TEST(PartitionerTest, OneTransferHoweverManyConsumers) {
  EXPECT_EQ(CutText(Placed(StrCat("x = Draw()", At(kA), "n = Neg(x)", At(kA), "p = Neg(x)", At(kB),
                                  "q = Add(x, p)", At(kB)))),
            R"([a]
x = Draw()
n = Neg(x)
x/_send_0 = _Send(x) {channel=0, recv_device="", send_device="", tensor_name="x"}
[b]
x/_recv_0 = _Recv() {channel=0, recv_device="", send_device="", shape=[], tensor_name="x", tensor_type=float}
p = Neg(x/_recv_0)
q = Add(x/_recv_0, p)
)");
}

TEST(PartitionerTest, BothWaysAndSpecialisedShapesAreKept) {
  PrunedGraph pruned = Placed(StrCat("x = Placeholder() {dtype=float, shape=[?]}", At(kA),
                                     "y = Neg(x)", At(kB), "z = Neg(y)", At(kA)));
  for (NodeId id = 0; id < 3; ++id) pruned.graph.SetOutputShape(Port{id, 0}, Shape({8}));
  const StatusOr<PartitionedProgram> program = PartitionGraph(pruned);
  ASSERT_TRUE(program.ok()) << program.status();
  ASSERT_EQ(program->channels.size(), 2);
  EXPECT_EQ(program->channels[0].tensor, "x");
  EXPECT_EQ(program->channels[0].source.ToString(), kA);
  EXPECT_EQ(program->channels[0].destination.ToString(), kB);
  EXPECT_EQ(program->channels[0].PredictedBytes(), 32);
  EXPECT_EQ(program->channels[1].tensor, "y");
  EXPECT_EQ(program->channels[1].id, 1);
  for (const Partition& partition : program->partitions) {
    EXPECT_TRUE(Verify(partition.graph).ok());
    for (NodeId id = 0; id < partition.graph.num_ids(); ++id) {
      const Node& node = *partition.graph.node(id);
      if (node.num_outputs() == 0) continue;
      EXPECT_EQ(node.output_shape(0).ToString(), "[8]") << node.name();
    }
  }
}

TEST(PartitionerTest, PredictedBytesAreUnknownWithTheShape) {
  Channel channel;
  channel.dtype = DType::kFloat;
  channel.shape = PartialShape{PartialShape::kUnknown, 3};
  EXPECT_EQ(channel.PredictedBytes(), -1);
  channel.shape = Shape({2, 3});
  EXPECT_EQ(channel.PredictedBytes(), 24);
  channel.dtype = DType::kString;
  EXPECT_EQ(channel.PredictedBytes(), -1);
}

TEST(PartitionerTest, AControlEdgeIsAnEmptyMessage) {
  EXPECT_EQ(CutText(Placed(StrCat("s = NoOp()", At(kA), "t = NoOp()", At(kA), "u = NoOp(^s, ^t)",
                                  At(kB), "v = NoOp(^s)", At(kB)))),
            R"([a]
s = NoOp()
t = NoOp()
control_message = Const() {dtype=uint8, value=tensor(uint8[0]:)}
s/_send_0 = _Send(control_message, ^s) {channel=0, recv_device="", send_device="", tensor_name="^s"}
t/_send_1 = _Send(control_message, ^t) {channel=1, recv_device="", send_device="", tensor_name="^t"}
[b]
s/_recv_0 = _Recv() {channel=0, recv_device="", send_device="", shape=[0], tensor_name="^s", tensor_type=uint8}
t/_recv_1 = _Recv() {channel=1, recv_device="", send_device="", shape=[0], tensor_name="^t", tensor_type=uint8}
u = NoOp(^s/_recv_0, ^t/_recv_1)
v = NoOp(^s/_recv_0)
)");
}

TEST(PartitionerTest, AControlEdgeRidesWithATensorThatTravelsAnyway) {
  const std::string text =
      CutText(Placed(StrCat("x = Draw()", At(kA), "u = NoOp(^x)", At(kB), "y = Neg(x)", At(kB))));
  EXPECT_THAT(text, HasSubstr("u = NoOp(^x/_recv_0)\n"));
  EXPECT_THAT(text, HasSubstr("y = Neg(x/_recv_0)\n"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("control_message")));
}

TEST(PartitionerTest, NamesThatAreTakenAreAvoided) {
  const std::string text = CutText(
      Placed(StrCat("x = Draw()", At(kA), "x/_recv_0 = Draw()", At(kB), "y = Neg(x)", At(kB))));
  EXPECT_THAT(text, HasSubstr("y = Neg(x/_recv_0_1)"));
}

TEST(PartitionerTest, FeedsFetchesAndTargetsKeepTheirPositions) {
  const PrunedGraph pruned =
      Placed(StrCat("x = Placeholder() {dtype=float}", At(kB), "y = Placeholder() {dtype=float}",
                    At(kA), "p = Neg(x)", At(kA), "q = Neg(y)", At(kB), "n = NoOp()", At(kB)),
             {{"x", "y"}, {"q", "p", "q"}, {"n"}});
  const StatusOr<PartitionedProgram> program = PartitionGraph(pruned);
  ASSERT_TRUE(program.ok()) << program.status();
  const Partition& a = program->partitions[0];
  const Partition& b = program->partitions[1];
  ASSERT_EQ(a.feeds.size(), 1);
  EXPECT_EQ(a.feeds[0].index, 1);
  EXPECT_EQ(a.graph.PortName(a.feeds[0].port), "y");
  ASSERT_EQ(b.feeds.size(), 1);
  EXPECT_EQ(b.feeds[0].index, 0);
  ASSERT_EQ(a.fetches.size(), 1);
  EXPECT_EQ(a.fetches[0].index, 1);
  ASSERT_EQ(b.fetches.size(), 2);
  EXPECT_EQ(b.fetches[1].index, 2);
  EXPECT_EQ(b.graph.PortName(b.fetches[1].port), "q");
  ASSERT_EQ(b.targets.size(), 1);
  EXPECT_EQ(b.graph.node(b.targets[0])->name(), "n");
}

TEST(PartitionerTest, WhatIsNotPlacedOrCannotTravelIsRefused) {
  EXPECT_EQ(CutText(Placed("x = Draw()")),
            "node 'x' has no device: the graph must be placed before it is cut");
  EXPECT_EQ(CutText(Placed(
                StrCat("w = VarHandleOp() {shape=[]}", At(kA), "r = ReadVariableOp(w)", At(kB)))),
            StrCat("node 'r' on ", kB, " uses the handle 'w', whose resource is on ", kA));
}

// ---- the barrier before updates ----

std::string ControlInputs(const Partition& partition, absl::string_view node) {
  const Node* found = partition.graph.Find(node);
  if (found == nullptr) return "none";
  std::string names;
  for (NodeId id : found->control_inputs()) {
    absl::StrAppend(&names, names.empty() ? "" : " ", partition.graph.node(id)->name());
  }
  return names;
}

constexpr char kTwoVariables[] = R"(
w = VarHandleOp() {shape=[]} @/job:a/task:0/device:CPU:0
v = VarHandleOp() {shape=[]} @/job:a/task:0/device:CPU:0
rate = Const() {dtype=float, value=tensor(float[]: 1)} @/job:a/task:0/device:CPU:0
g = Draw() @/job:a/task:0/device:CPU:0
h = Draw() @/job:b/task:0/device:CPU:0
uw = ResourceApplyGradientDescent(w, rate, g) @/job:a/task:0/device:CPU:0
uv = ResourceApplyGradientDescent(v, rate, h) @/job:a/task:0/device:CPU:0
)";

TEST(UpdateBarrierTest, UpdatesOfADeviceWaitForTheGradientsOfAll) {
  const StatusOr<PartitionedProgram> program = PartitionGraph(Placed(kTwoVariables));
  ASSERT_TRUE(program.ok()) << program.status();
  const Partition& a = program->partitions[0];
  EXPECT_TRUE(Verify(a.graph).ok()) << Verify(a.graph);
  EXPECT_EQ(ControlInputs(a, "update_barrier"), "rate g h/_recv_0");
  EXPECT_EQ(ControlInputs(a, "uw"), "update_barrier");
  EXPECT_EQ(ControlInputs(a, "uv"), "update_barrier");
}

TEST(UpdateBarrierTest, AnUpdateThatNeedsAnotherIsOfALaterLevel) {
  // uv's value depends on uw, through the other device; a second one of that level is beside it.
  const PrunedGraph pruned = Placed(StrCat(kTwoVariables, R"(
seen = ReadVariableOp(w, ^uw) @/job:a/task:0/device:CPU:0
far = Neg(seen) @/job:b/task:0/device:CPU:0
late = AssignAddVariableOp(w, far) @/job:a/task:0/device:CPU:0
later = AssignAddVariableOp(v, seen) @/job:a/task:0/device:CPU:0
)"));
  const StatusOr<PartitionedProgram> program = PartitionGraph(pruned);
  ASSERT_TRUE(program.ok()) << program.status();
  const Partition& a = program->partitions[0];
  for (const Partition& partition : program->partitions) {
    EXPECT_TRUE(Verify(partition.graph).ok()) << Verify(partition.graph);
  }
  EXPECT_EQ(ControlInputs(a, "update_barrier"), "rate g h/_recv_0");
  EXPECT_EQ(ControlInputs(a, "update_barrier_1"), "seen far/_recv_2");
  EXPECT_EQ(ControlInputs(a, "uw"), "update_barrier");
  EXPECT_EQ(ControlInputs(a, "late"), "update_barrier_1");
  EXPECT_EQ(ControlInputs(a, "later"), "update_barrier_1");
}

TEST(UpdateBarrierTest, OneUpdateNeedsNone) {
  const std::string text = CutText(Placed(R"(
w = VarHandleOp() {shape=[]} @/job:a/task:0/device:CPU:0
g = Draw() @/job:a/task:0/device:CPU:0
u = AssignAddVariableOp(w, g) @/job:a/task:0/device:CPU:0
)"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("update_barrier")));
}

}  // namespace
}  // namespace millrace::testing
