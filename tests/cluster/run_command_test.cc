// millrace run as a user calls it: arrays in, steps here or on servers, arrays out.
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "core/base/file.h"
#include "core/framework/graph.pb.h"
#include "core/graph/graph_def.h"
#include "core/io/npy.h"
#include "python_free_api/millrace.h"
#include "tests/cluster/cluster_harness.h"

namespace millrace {
namespace {

class RunCommandTest : public ::testing::Test {
 protected:
  RunCommandTest() : folder_(NewFolder()) {}

  std::string Path(const std::string& name) const { return JoinPath(folder_, name); }
  void WriteArray(const std::string& name, const Tensor& tensor) {
    ASSERT_TRUE(WriteFile(Files(), Path(name), *WriteNpy(tensor)).ok());
  }
  std::string Array(const std::string& name) const {
    const auto tensor = ReadNpy(Files(), Path(name));
    return tensor.ok() ? tensor->ToString(20) : tensor.status().ToString();
  }

  // w starts as [1, 2]; a step fetches sum(w * x) and then takes 0.5 x off w. `w_device`,
  // `x_device`: where they are asked to be.
  void WriteTrainingGraph(const std::string& w_device = "", const std::string& x_device = "") {
    const auto runtime = Runtime::Create();
    ASSERT_TRUE(runtime.ok());
    GraphBuilder b((*runtime)->ops());
    Value w, read;
    {
      auto device = b.DeviceScope(w_device);
      w = VariableHandle(b, "w", DType::kFloat, {2});
      auto scope = b.NameScope("init");
      Assign(w, Const(b, Tensor::Of<float>(Shape({2}), {1, 2})));
    }
    Value x;
    {
      auto device = b.DeviceScope(x_device);
      x = Placeholder(b, DType::kFloat, {2}, "x");
      auto scope = b.NameScope("net");
      b.AddOne("Sum", {Mul(ReadVariable(w), x), IntVector(b, {0})}, {}, SourceLocation::Current(),
               "loss");
    }
    {
      auto scope = b.NameScope("train");
      ApplyGradientDescent(w, Scalar(b, 0.5), x);
    }
    ASSERT_TRUE(b.status().ok()) << b.status();
    GraphDef def;
    ExportGraphDef(b.graph(), &def);
    ASSERT_TRUE(WriteFile(Files(), Path("graph.pb"), def.SerializeAsString()).ok());
  }

  // The exit code; what it printed is in output_.
  int Run(std::vector<std::string> arguments) {
    ChildProcess::Options options;
    options.arguments = {MillraceProgram(), "run"};
    options.arguments.insert(options.arguments.end(), arguments.begin(), arguments.end());
    options.output_file = Path("output.txt");
    (void)Files().Remove(options.output_file);  // of an earlier run
    const auto process = ChildProcess::Start(options);
    EXPECT_TRUE(process.ok()) << process.status();
    const auto code = (*process)->Wait(kLong);
    output_ = Contents(options.output_file);
    return code.ok() ? *code : -1;
  }
  std::vector<std::string> TrainingFlags() const {
    return {Path("graph.pb"),
            "--feed",
            StrCat("x=", Path("x.npy")),
            "--fetch",
            "net/loss",
            "--init",
            "init/AssignVariableOp",
            "--target",
            "train/ResourceApplyGradientDescent",
            "--steps",
            "4",
            "-o",
            Path("out")};
  }

  const std::string folder_;
  std::string output_;
};

// The steps that the rows of x.npy make, by hand: rows (1,0) and (0,2) in turn.
constexpr char kLosses[] = "float[4] = 1 4 0.5 2";

TEST_F(RunCommandTest, AStepHere) {
  WriteTrainingGraph();
  WriteArray("x.npy", Tensor::Of<float>(Shape({2}), {3, 4}));
  EXPECT_EQ(Run({Path("graph.pb"), "--feed", StrCat("x=", Path("x.npy")), "--fetch", "net/loss:0,x",
                 "--init", "init/AssignVariableOp", "-o", Path("out")}),
            0)
      << output_;
  EXPECT_EQ(Array("out/net/loss.npy"), "float[] = 11");
  EXPECT_EQ(Array("out/x.npy"), "float[2] = 3 4");
}

TEST_F(RunCommandTest, StepsTakeSlicesInTurnAndStackWhatTheyFetch) {
  WriteTrainingGraph();
  WriteArray("x.npy", Tensor::Of<float>(Shape({2, 2}), {1, 0, 0, 2}));
  EXPECT_EQ(Run(TrainingFlags()), 0) << output_;
  EXPECT_EQ(Array("out/net/loss.npy"), kLosses);
}

TEST_F(RunCommandTest, OnThreeServers) {
  const auto cluster = HandStartedCluster::Start({{"ps", 1}, {"worker", 2}});
  ASSERT_NE(cluster, nullptr);
  WriteTrainingGraph("/job:ps/task:0", "/job:worker/task:1");
  WriteArray("x.npy", Tensor::Of<float>(Shape({2, 2}), {1, 0, 0, 2}));
  std::vector<std::string> flags = TrainingFlags();
  flags.insert(flags.end(), {"--cluster", cluster->spec()});
  EXPECT_EQ(Run(flags), 0) << output_;
  EXPECT_EQ(Array("out/net/loss.npy"), kLosses);
}

TEST_F(RunCommandTest, MistakesAreNamed) {
  WriteTrainingGraph();
  WriteArray("x.npy", Tensor::Of<float>(Shape({2}), {3, 4}));
  WriteArray("three.npy", Tensor::Of<float>(Shape({3}), {3, 4, 5}));
  ASSERT_TRUE(WriteFile(Files(), Path("bad.npy"), "no array").ok());
  const std::string graph = Path("graph.pb"), x = StrCat("x=", Path("x.npy"));
  const struct {
    std::vector<std::string> flags;
    const char* message;
  } cases[] = {
      {{graph}, "--fetch or --target is needed"},
      {{Path("none.pb"), "--fetch", "y"}, "none.pb"},
      {{graph, "--fetch", "net/los"}, "net/los"},
      {{graph, "--fetch", "net/loss", "--feed", "x"}, "'x' is not NAME=FILE.npy"},
      {{graph, "--fetch", "net/loss", "--feed", StrCat("y=", Path("x.npy"))}, "'y'"},
      {{graph, "--fetch", "net/loss", "--feed", StrCat("x=", Path("bad.npy"))}, "not an npy file"},
      {{graph, "--fetch", "net/loss", "--feed", StrCat("x=", Path("three.npy")), "--init",
        "init/AssignVariableOp"},
       "x"},
      {{graph, "--fetch", "net/loss", "--feed", x}, "w"},
      {{graph, "--fetch", "../up", "--feed", x}, "makes no name of a file"},
      {{graph, "--fetch", "net/loss", "--feed", x, "--steps", "-1"}, "--steps cannot be -1"},
  };
  for (const auto& c : cases) {
    EXPECT_NE(Run(c.flags), 0) << c.message;
    EXPECT_TRUE(absl::StrContains(output_, "millrace run: ")) << output_;
    EXPECT_TRUE(absl::StrContains(output_, c.message)) << c.message << ": " << output_;
  }
  EXPECT_FALSE(Files().Exists(Path("out")));
}

TEST_F(RunCommandTest, UnknownOpsAreListedAtOnce) {
  ASSERT_TRUE(WriteFile(Files(), Path("graph.pb"),
                        "node { name: 'a' op: 'Mystery' } node { name: 'b' op: 'Mystery' }\n"
                        "node { name: 'c' op: 'Riddle' } node { name: 'd' op: 'NoOp' }\n")
                  .ok());
  EXPECT_EQ(Run({Path("graph.pb"), "--target", "d"}), 1);
  EXPECT_TRUE(absl::StrContains(output_, "Mystery (2 nodes, as 'a'), Riddle (1 node, as 'c')"))
      << output_;
}

}  // namespace
}  // namespace millrace
