#include "core/runtime/planner.h"

#include "core/graph/graph_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/runtime/test_program.h"

namespace millrace::testing {
namespace {

using ::testing::HasSubstr;

constexpr char kModel[] = R"(
x = Placeholder() {dtype=float, shape=[?,4]} @/job:worker
w = VarHandleOp() {shape=[4]} @/job:ps
v = VarHandleOp() {shape=[4]} @/job:ps
rw = ReadVariableOp(w)
rv = ReadVariableOp(v)
y = Add(x, rw) @/job:worker
z = Add(y, rv) @/job:worker
)";

class PlannerTest : public ::testing::Test {
 protected:
  PlannerTest()
      : graph_(GraphOrFail(kModel)),
        devices_(Devices({"/job:ps/task:0/device:CPU:0", "/job:ps/task:1/device:CPU:0",
                          "/job:worker/task:0/device:CPU:0"})) {
    RegisterTestKernels(kernels_, hooks_);
  }
  StatusOr<PlannedStep> Plan(const StepSignature& signature) {
    return PlanStep(graph_, signature, devices_, kernels_, options_);
  }
  static std::string DeviceOf(const PlannedStep& step, absl::string_view node) {
    const Node* found = step.placed.Find(node);
    return found == nullptr ? "none" : found->assigned_device().ToString();
  }

  Hooks hooks_;
  KernelRegistry kernels_;
  Graph graph_;
  std::vector<DeviceInfo> devices_;
  PlannerOptions options_;
};

TEST_F(PlannerTest, PrunesPlacesAndCuts) {
  const StatusOr<PlannedStep> step = Plan({{"x"}, {"y"}, {}});
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(step->placed.Find("z"), nullptr);
  ASSERT_EQ(step->program.partitions.size(), 2);
  ASSERT_EQ(step->report.links.size(), 1);
  const PlacementReport::Link& link = step->report.links[0];
  EXPECT_EQ(link.source, "/job:ps/task:0/device:CPU:0");
  EXPECT_EQ(link.destination, "/job:worker/task:0/device:CPU:0");
  EXPECT_TRUE(link.crosses_tasks);
  EXPECT_EQ(link.predicted_bytes, 16);
  EXPECT_EQ(link.carried[0].name, "rw");
  EXPECT_EQ(step->report.policy, "round_robin");
}

TEST_F(PlannerTest, AStepFindsVariablesWhereOtherStepsHaveThem) {
  // v alone would go to the first parameter server.
  const StatusOr<PlannedStep> part = Plan({{}, {"rv"}, {}});
  const StatusOr<PlannedStep> all = Plan({{"x"}, {"z"}, {}});
  ASSERT_TRUE(part.ok() && all.ok());
  EXPECT_EQ(DeviceOf(*all, "v"), "/job:ps/task:1/device:CPU:0");
  EXPECT_EQ(DeviceOf(*part, "v"), "/job:ps/task:1/device:CPU:0");
  EXPECT_THAT(part->report.ToText(), HasSubstr("fewest bytes of variables so far: 0 B"));
}

TEST_F(PlannerTest, PinsHoldWhenTheGraphGrows) {
  const StatusOr<PlannedStep> before = Plan({{}, {"rv"}, {}});
  ASSERT_TRUE(before.ok());
  graph_ = GraphOrFail(StrCat("big = VarHandleOp() {shape=[1000]} @/job:ps\n",
                              "first = VarHandleOp() {shape=[1000]} @/job:ps\n", kModel));
  EXPECT_EQ(DeviceOf(*Plan({{}, {"rv"}, {}}), "v"), "/job:ps/task:1/device:CPU:0");
  options_.placer.pinned = PinsOf(before->placed, before->report.decisions);
  options_.placer.pinned["v"].device = "/job:ps/task:0/device:CPU:0";
  EXPECT_EQ(DeviceOf(*Plan({{}, {"rv"}, {}}), "v"), "/job:ps/task:0/device:CPU:0");
}

TEST_F(PlannerTest, TheTransformIsAppliedAndVerified) {
  options_.transform = [](PrunedGraph& pruned) {
    NodeSpec spec;
    spec.name = "negated";
    spec.op = "Neg";
    spec.inputs = {pruned.fetches[0]};
    MR_ASSIGN_OR_RETURN(const NodeId id, pruned.graph.AddNode(std::move(spec)));
    pruned.fetches[0] = Port{id, 0};
    return absl::OkStatus();
  };
  const StatusOr<PlannedStep> step = Plan({{"x"}, {"y"}, {}});
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_NE(step->placed.Find("negated"), nullptr);
  options_.transform = [](PrunedGraph& pruned) {
    const NodeId y = pruned.graph.Find("y")->id();
    pruned.graph.AddControlInput(y, y);
    return absl::OkStatus();
  };
  EXPECT_THAT(Plan({{"x"}, {"y"}, {}}).status().message(),
              HasSubstr("after the graph's transform: "));
  options_.transform = [](PrunedGraph&) { return Unimplemented("not today"); };
  EXPECT_EQ(Plan({{"x"}, {"y"}, {}}).status(), Unimplemented("not today"));
}

TEST_F(PlannerTest, FetchesOfAnAcceleratorComeToHostMemory) {
  KernelRegistry kernels;
  RegisterTestKernels(kernels, hooks_);
  kernels.Add("Neg", "CUDA", [](const KernelConstruction&) -> StatusOr<std::unique_ptr<Kernel>> {
    return Internal("placed only");
  });
  const Graph graph =
      GraphOrFail("x = Placeholder() {dtype=float, shape=[2]}\ny = Neg(x) @/device:CUDA:0\n");
  const StatusOr<PlannedStep> step = PlanStep(
      graph, {{"x"}, {"y", "y"}, {}},
      Devices({"/job:l/task:0/device:CPU:0", "/job:l/task:0/device:CUDA:0"}), kernels, options_);
  ASSERT_TRUE(step.ok()) << step.status();
  const Partition& cpu = step->program.partitions[0];
  ASSERT_EQ(cpu.fetches.size(), 2);
  EXPECT_EQ(cpu.graph.PortName(cpu.fetches[0].port), "y/_fetch_0");
  EXPECT_TRUE(step->program.partitions[1].fetches.empty());
  EXPECT_THAT(step->report.ToText(), HasSubstr("the client fetches 'y' from host memory"));
}

// ---- the report ----

PlacementReport SampleReport() {
  PlacementReport report;
  report.policy = "round_robin";
  report.devices = Devices({"/job:ps/task:0/device:CPU:0", "/job:w/task:0/device:CPU:0"});
  report.devices[0].description = "2 threads";
  report.devices[0].memory_limit = 1 << 30;
  report.devices[0].incarnation = 0xffffffffffffffff;
  report.absent_tasks = {"/job:w/task:1"};
  report.decisions = {
      {"w", "VarHandleOp", "/job:ps/task:0/device:CPU:0", "requested '/job:ps' by the program", {}},
      {"dense/y",
       "Add",
       "/job:w/task:0/device:CPU:0",
       "round_robin: beside 'x'",
       {"/job:ps/task:0/device:CPU:0: 16 B of inputs"}}};
  PlacementReport::Link link;
  link.source = "/job:ps/task:0/device:CPU:0";
  link.destination = "/job:w/task:0/device:CPU:0";
  link.crosses_tasks = true;
  link.tensors = 2;
  link.predicted_bytes = 2048;
  link.measured_steps = 10;
  link.measured_payload_bytes = 20480;
  link.measured_wire_bytes = 21480;
  link.carried = {{0, "w/read", "float", "[512]", 2048}, {1, "x", "float", "[?]", -1}};
  report.links = {link};
  return report;
}

TEST(PlacementReportTest, ReadsWell) {
  EXPECT_EQ(SampleReport().ToText(), R"(policy round_robin

devices
  /job:ps/task:0/device:CPU:0  1 node  2 threads, 1.0 GB memory
  /job:w/task:0/device:CPU:0   1 node  
  absent: /job:w/task:1

nodes
  w        VarHandleOp  /job:ps/task:0/device:CPU:0  requested '/job:ps' by the program
  dense/y  Add          /job:w/task:0/device:CPU:0   round_robin: beside 'x'
                                                       not /job:ps/task:0/device:CPU:0: 16 B of inputs

links
  /job:ps/task:0/device:CPU:0 -> /job:w/task:0/device:CPU:0  2 tensors, at least 2.0 KB a step predicted; measured 2.0 KB a step (2.1 KB on the wire) over 10 steps
    w/read  float[512]  2.0 KB
    x       float[?]    ?
)");
}

TEST(PlacementReportTest, SurvivesJson) {
  const PlacementReport report = SampleReport();
  const StatusOr<PlacementReport> read = PlacementReportFromJson(report.ToJson());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->ToText(), report.ToText());
  EXPECT_EQ(read->ToJson(), report.ToJson());
  EXPECT_EQ(read->devices[0].incarnation, 0xffffffffffffffff);
}

TEST(PlacementReportTest, SaysWhatIsWrongWithAText) {
  const auto error = [](absl::string_view text) {
    return std::string(PlacementReportFromJson(text).status().message());
  };
  EXPECT_EQ(error("{"), "placement report: not JSON");
  EXPECT_EQ(error("[]"), "placement report: the text is not an object");
  EXPECT_EQ(error("{}"), "placement report: policy is missing");
  EXPECT_EQ(error(R"({"policy": 3})"), "placement report: policy is not a string");
  EXPECT_EQ(error(R"({"policy": "p", "absent_tasks": [1]})"),
            "placement report: absent_tasks[0] is not a string");
  EXPECT_EQ(error(R"({"policy": "p", "absent_tasks": [], "devices": [7]})"),
            "placement report: devices[0] is not an object");
  EXPECT_EQ(error(R"({"policy": "p", "absent_tasks": [], "devices": [{"name": "/job:"}]})"),
            "placement report: devices[0].memory_limit is missing");
}

}  // namespace
}  // namespace millrace::testing
