#include "core/runtime/placer.h"

#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/runtime/test_program.h"

namespace millrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kCpu0[] = "/job:worker/task:0/device:CPU:0";

// Two parameter servers and a worker with an accelerator. ArgMax of double runs on processors
// only; there is no kernel for MatMul of double at all.
class PlacerTest : public ::testing::Test {
 protected:
  PlacerTest() {
    const auto none = [](const KernelConstruction&) -> StatusOr<std::unique_ptr<Kernel>> {
      return Internal("placed only");
    };
    for (const char* type : {"CPU", "CUDA"}) {
      for (const char* op : {"Const", "NoOp", "Neg", "Add", "Identity", "VarHandleOp",
                             "ReadVariableOp", "AssignVariableOp", "Draw"}) {
        kernels_.Add(op, type, none);
      }
      kernels_.Add(KernelDef{"MatMul", type, {{"T", {DType::kFloat}}}}, none);
    }
    kernels_.Add(KernelDef{"ArgMax", "CPU", {{"T", {DType::kDouble}}}}, none);
    kernels_.Add(KernelDef{"ArgMax", "CUDA", {{"T", {DType::kFloat}}}}, none);
    devices_ = Devices({"/job:ps/task:0/device:CPU:0", "/job:ps/task:1/device:CPU:0", kCpu0,
                        "/job:worker/task:0/device:CUDA:0"});
  }

  // A line a node: name, device without "/job:" and "/device:", reason; "not ..." for alternatives.
  std::string PlaceText(absl::string_view text) {
    graph_ = std::make_unique<Graph>(GraphOrFail(text));
    StatusOr<std::vector<PlacementDecision>> decisions =
        Place(*graph_, devices_, kernels_, RoundRobinPolicy(), options_);
    if (!decisions.ok()) return std::string(decisions.status().message());
    std::string result;
    for (const PlacementDecision& decision : *decisions) {
      EXPECT_EQ(graph_->Find(decision.node)->assigned_device().ToString(), decision.device);
      absl::StrAppend(&result, decision.node, " @", decision.device, ": ", decision.reason, "\n");
      for (const std::string& other : decision.alternatives) {
        absl::StrAppend(&result, "  not ", other, "\n");
      }
    }
    return result;
  }

  KernelRegistry kernels_;
  std::vector<DeviceInfo> devices_;
  PlacerOptions options_;
  std::unique_ptr<Graph> graph_;
};

TEST_F(PlacerTest, AHandleKeepsItsUsers) {
  EXPECT_EQ(PlaceText(R"(
w = VarHandleOp() {shape=[4]} @/job:ps/task:1
r = ReadVariableOp(w)
n = Neg(r) @/job:worker/device:CPU:0
a = AssignVariableOp(w, n)
)"),
            "w @/job:ps/task:1/device:CPU:0: requested '/job:ps/task:1' by the program\n"
            "r @/job:ps/task:1/device:CPU:0: colocated with variable 'w' through its handle\n"
            "n @/job:worker/task:0/device:CPU:0: requested '/job:worker/device:CPU:0' by the "
            "program\n"
            "a @/job:ps/task:1/device:CPU:0: colocated with variable 'w' through its handle\n");
}

TEST_F(PlacerTest, ARequestOfAUserHoldsForTheVariable) {
  EXPECT_EQ(PlaceText(R"(
w = VarHandleOp() {shape=[4]}
r = ReadVariableOp(w) @/job:ps/task:0
)"),
            "w @/job:ps/task:0/device:CPU:0: colocated with 'r'\n"
            "r @/job:ps/task:0/device:CPU:0: requested '/job:ps/task:0' by the program\n");
}

TEST_F(PlacerTest, ClassesAreColocatedWhetherTheirNodeIsThereOrNot) {
  EXPECT_EQ(PlaceText(R"(
a = Draw() {_class=["loc:@gone"]} @/job:ps/task:1
b = Draw() {_class=["loc:@gone"]}
c = Draw() {_class=["loc:@b"]}
)"),
            "a @/job:ps/task:1/device:CPU:0: requested '/job:ps/task:1' by the program\n"
            "b @/job:ps/task:1/device:CPU:0: colocated with 'a' (_class loc:@gone)\n"
            "c @/job:ps/task:1/device:CPU:0: colocated with 'b' (_class loc:@b)\n");
}

TEST_F(PlacerTest, TwoHandlesOfOneVariableAreTogether) {
  const std::string text = PlaceText(R"(
w = VarHandleOp() {shape=[4]} @/job:ps/task:1
again = VarHandleOp() {shape=[4], shared_name="w"}
)");
  EXPECT_THAT(text, HasSubstr("again @/job:ps/task:1/device:CPU:0: the same variable as 'w'"));
}

TEST_F(PlacerTest, PartialRequestsOfAGroupAddUp) {
  EXPECT_THAT(PlaceText(R"(
w = VarHandleOp() {shape=[4]} @/job:worker
r = ReadVariableOp(w) @/device:CPU:0
)"),
              HasSubstr("w @/job:worker/task:0/device:CPU:0: requested "
                        "'/job:worker/device:CPU:0' by the program"));
}

struct ErrorCase {
  const char* name;
  const char* graph;
  const char* message;
};

class PlacerErrorTest : public PlacerTest, public ::testing::WithParamInterface<ErrorCase> {};

TEST_P(PlacerErrorTest, SaysWhichNodesAndDevices) {
  EXPECT_EQ(PlaceText(GetParam().graph), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    All, PlacerErrorTest,
    ::testing::Values(
        ErrorCase{"Contradiction", R"(
w = VarHandleOp() {shape=[4]} @/job:ps
r = ReadVariableOp(w)
a = AssignVariableOp(w, r) @/job:worker
)",
                  "nodes 'w' and 'a' must share a device, but request '/job:ps' and "
                  "'/job:worker'"},
        ErrorCase{"UnknownDevice", "x = Draw() @/job:ps/task:7",
                  "node 'x' (Draw) requests '/job:ps/task:7', which does not exist; devices: "
                  "/job:ps/task:0/device:CPU:0, /job:ps/task:1/device:CPU:0, "
                  "/job:worker/task:0/device:CPU:0, /job:worker/task:0/device:CUDA:0"},
        ErrorCase{"NoKernelThere", R"(
x = Placeholder() {dtype=double, shape=[4]}
i = ArgMax(x) @/device:CUDA:0
)",
                  "node 'i' requests '/device:CUDA:0', but op 'ArgMax' has no CUDA kernel for "
                  "T=double; there are CPU: T=double; CUDA: T=float; soft placement would choose "
                  "another device"},
        ErrorCase{"NoKernelAnywhere", R"(
x = Placeholder() {dtype=double, shape=[4,4]}
y = MatMul(x, x)
)",
                  "node 'y': op 'MatMul' has no CPU kernel for T=double; there are CPU: T=float; "
                  "CUDA: T=float; devices: /job:ps/task:0/device:CPU:0, "
                  "/job:ps/task:1/device:CPU:0, /job:worker/task:0/device:CPU:0, "
                  "/job:worker/task:0/device:CUDA:0"},
        ErrorCase{
            "NoCommonType", R"(
x = Placeholder() {dtype=double, shape=[4]}
y = Placeholder() {dtype=float, shape=[4]}
i = ArgMax(x)
j = ArgMax(y) {_class=["loc:@i"]}
)",
            "nodes that must share a device have kernels for no common one: 'j': op 'ArgMax' "
            "has no CPU kernel for T=float; there are CPU: T=double; CUDA: T=float; 'i': op "
            "'ArgMax' has no CUDA kernel for T=double; there are CPU: T=double; CUDA: T=float; "
            "devices: /job:ps/task:0/device:CPU:0, /job:ps/task:1/device:CPU:0, "
            "/job:worker/task:0/device:CPU:0, /job:worker/task:0/device:CUDA:0"}),
    [](const auto& info) { return info.param.name; });

TEST_F(PlacerTest, AMissingKernelDecides) {
  devices_ = Devices({kCpu0, "/job:worker/task:0/device:CUDA:0"});
  EXPECT_EQ(PlaceText(R"(
x = Placeholder() {dtype=double, shape=[4]}
i = ArgMax(x)
)"),
            "x @/job:worker/task:0/device:CPU:0: feeds arrive in host memory\n"
            "i @/job:worker/task:0/device:CPU:0: only /job:worker/task:0/device:CPU:0 has a kernel "
            "for ArgMax with T=double\n"
            "  not /job:worker/task:0/device:CUDA:0: no kernel for ArgMax with T=double\n");
}

TEST_F(PlacerTest, SoftPlacementFallsBackAndSaysSo) {
  options_.soft_placement = true;
  const std::string text = PlaceText(R"(
x = Placeholder() {dtype=double, shape=[4]} @/job:worker
i = ArgMax(x) @/job:worker/device:CUDA:0
d = Draw() @/job:ps/task:9
w = VarHandleOp() {shape=[4]} @/job:ps/task:1
r = ReadVariableOp(w) @/job:worker
)");
  EXPECT_THAT(text, HasSubstr("i @/job:worker/task:0/device:CPU:0: requested "
                              "'/job:worker/device:CUDA:0' by the program, where there is no "
                              "kernel for ArgMax with T=double; soft placement fell back"));
  EXPECT_THAT(text, HasSubstr("d @/job:ps/task:0/device:CPU:0: requested '/job:ps/task:9' by the "
                              "program, which does not exist; soft placement fell back"));
  EXPECT_THAT(text, HasSubstr("w @/job:ps/task:1/device:CPU:0: requested '/job:ps/task:1' by the "
                              "program; 'r' requested '/job:worker', which was dropped"));
}

TEST_F(PlacerTest, OneDeviceIsTheOnlyOne) {
  devices_ = Devices({kCpu0});
  EXPECT_EQ(PlaceText(R"(
w = VarHandleOp() {shape=[4]}
r = ReadVariableOp(w)
n = Neg(r) @/device:CPU:0
)"),
            "w @/job:worker/task:0/device:CPU:0: the only device\n"
            "r @/job:worker/task:0/device:CPU:0: the only device\n"
            "n @/job:worker/task:0/device:CPU:0: requested '/device:CPU:0' by the program\n");
}

TEST_F(PlacerTest, TheDefaultDeviceHoldsWhatNobodyRequested) {
  options_.default_device = Name("/job:worker/task:0");
  const std::string text = PlaceText(R"(
a = Draw()
w = VarHandleOp() {shape=[4]} @/job:ps
)");
  EXPECT_THAT(text, HasSubstr("a @/job:worker/task:0/device:CUDA:0: default device "
                              "'/job:worker/task:0'; round_robin: "));
  // It is for another job, so it does not choose the task.
  EXPECT_THAT(text, HasSubstr("w @/job:ps/task:0/device:CPU:0: requested '/job:ps' by the "
                              "program; round_robin: fewest bytes of variables so far: 0 B"));
}

TEST_F(PlacerTest, VariablesGoRoundByBytes) {
  EXPECT_EQ(PlaceText(R"(
a = VarHandleOp() {shape=[100]} @/job:ps
b = VarHandleOp() {shape=[10]} @/job:ps
c = VarHandleOp() {shape=[20]} @/job:ps
d = VarHandleOp() {shape=[1000]} @/job:ps
)"),
            "a @/job:ps/task:0/device:CPU:0: requested '/job:ps' by the program; round_robin: "
            "fewest bytes of variables so far: 0 B\n"
            "  not /job:ps/task:1/device:CPU:0: 0 B of variables\n"
            "b @/job:ps/task:1/device:CPU:0: requested '/job:ps' by the program; round_robin: "
            "fewest bytes of variables so far: 0 B\n"
            "  not /job:ps/task:0/device:CPU:0: 400 B of variables\n"
            "c @/job:ps/task:1/device:CPU:0: requested '/job:ps' by the program; round_robin: "
            "fewest bytes of variables so far: 40 B\n"
            "  not /job:ps/task:0/device:CPU:0: 400 B of variables\n"
            "d @/job:ps/task:1/device:CPU:0: requested '/job:ps' by the program; round_robin: "
            "fewest bytes of variables so far: 120 B\n"
            "  not /job:ps/task:0/device:CPU:0: 400 B of variables\n");
}

TEST_F(PlacerTest, OthersGoBesideTheirLargestInputsAndSourcesBesideTheirUsers) {
  devices_ = Devices({"/job:ps/task:0/device:CPU:0", "/job:ps/task:1/device:CPU:0"});
  EXPECT_EQ(PlaceText(R"(
w = VarHandleOp() {shape=[1000]} @/job:ps/task:1
r = ReadVariableOp(w)
v = VarHandleOp() {shape=[1]} @/job:ps/task:0
s = ReadVariableOp(v)
c = Const() {dtype=float, value=tensor(float[]: 1)}
y = Add(r, s)
z = Add(y, c)
)"),
            "w @/job:ps/task:1/device:CPU:0: requested '/job:ps/task:1' by the program\n"
            "r @/job:ps/task:1/device:CPU:0: colocated with variable 'w' through its handle\n"
            "v @/job:ps/task:0/device:CPU:0: requested '/job:ps/task:0' by the program\n"
            "s @/job:ps/task:0/device:CPU:0: colocated with variable 'v' through its handle\n"
            "c @/job:ps/task:1/device:CPU:0: round_robin: beside its users, of which 1 are there\n"
            "  not /job:ps/task:0/device:CPU:0: 0 users\n"
            "y @/job:ps/task:1/device:CPU:0: round_robin: beside 'r', as 3.9 KB of inputs are "
            "there\n"
            "  not /job:ps/task:0/device:CPU:0: 4 B of inputs\n"
            "z @/job:ps/task:1/device:CPU:0: round_robin: beside 'y', as 3.9 KB of inputs are "
            "there\n"
            "  not /job:ps/task:0/device:CPU:0: 0 B of inputs\n");
}

TEST_F(PlacerTest, AnAcceleratorIsPreferred) {
  devices_ = Devices({kCpu0, "/job:worker/task:0/device:CUDA:0"});
  EXPECT_THAT(PlaceText("w = VarHandleOp() {shape=[4]}"),
              HasSubstr("w @/job:worker/task:0/device:CUDA:0"));
}

TEST_F(PlacerTest, AVariableThatDoesNotFitGoesElsewhereOrNowhere) {
  devices_[0].memory_limit = 1 << 20;
  EXPECT_THAT(PlaceText("w = VarHandleOp() {shape=[1000000]} @/job:ps"),
              HasSubstr("w @/job:ps/task:1/device:CPU:0: requested '/job:ps' by the program; has "
                        "the memory for 3.8 MB\n"
                        "  not /job:ps/task:0/device:CPU:0: 1.0 MB of memory for a variable of "
                        "3.8 MB"));
  devices_[1].memory_limit = 1 << 20;
  EXPECT_THAT(PlaceText("w = VarHandleOp() {shape=[1000000]} @/job:ps"),
              HasSubstr("variable 'w' takes 3.8 MB, more than any device it may be on has"));
}

TEST_F(PlacerTest, PinnedVariablesStay) {
  PlacementDecision pin;
  pin.device = "/job:ps/task:1/device:CPU:0";
  pin.reason = "it was there";
  options_.pinned["w"] = pin;
  EXPECT_THAT(PlaceText("w = VarHandleOp() {shape=[4]} @/job:ps"),
              HasSubstr("w @/job:ps/task:1/device:CPU:0: it was there"));
  EXPECT_THAT(PlaceText("w = VarHandleOp() {shape=[4]} @/job:worker/device:CPU:0"),
              HasSubstr("w @/job:worker/task:0/device:CPU:0: requested"));
}

TEST_F(PlacerTest, IsDeterministicAndIgnoresTheLengthOfChains) {
  std::string text = "x0 = Draw()\n";
  for (int i = 1; i < 20000; ++i) absl::StrAppend(&text, "x", i, " = Neg(x", i - 1, ")\n");
  const std::string first = PlaceText(text);
  EXPECT_EQ(first, PlaceText(text));
}

class WrongPolicy final : public PlacementPolicy {
 public:
  std::string name() const override { return "wrong"; }
  StatusOr<std::vector<PlacementChoice>> Choose(const PlacementProblem& problem) const override {
    return std::vector<PlacementChoice>(problem.groups.size());
  }
};

TEST_F(PlacerTest, APolicyThatChoosesNoCandidateIsRefused) {
  Graph graph = GraphOrFail("a = Draw()");
  EXPECT_EQ(Place(graph, devices_, kernels_, WrongPolicy(), options_).status().message(),
            "placement policy 'wrong' chose device -1 for 'a', which is not among its candidates");
}

}  // namespace
}  // namespace millrace::testing
