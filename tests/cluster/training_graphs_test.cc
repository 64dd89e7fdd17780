// Training graphs that TensorFlow built, differentiated and saved (tests/golden/training), run by
// `millrace run` in one process and on three servers: the losses are TensorFlow's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/base/file.h"
#include "core/framework/graph.pb.h"
#include "core/io/npy.h"
#include "tests/cluster/cluster_harness.h"

namespace millrace {
namespace {

constexpr char kData[] = "tests/golden/training/";
constexpr int kSteps = 30;
constexpr double kTolerance = 2e-4;  // of the largest loss

std::vector<float> Losses(const std::string& path) {
  const auto tensor = ReadNpy(Files(), path);
  EXPECT_TRUE(tensor.ok()) << tensor.status();
  if (!tensor.ok() || tensor->dtype() != DType::kFloat) return {};
  const auto span = tensor->span<float>();
  return {span.begin(), span.end()};
}

// Trains `graph`, the case `model`-`optimizer`, and compares.
void ExpectTensorflowsLosses(const std::string& graph, const std::string& model,
                             const std::string& optimizer, std::vector<std::string> flags) {
  SCOPED_TRACE(StrCat(model, "-", optimizer));
  const std::string folder = NewFolder(), log = JoinPath(folder, "output.txt");
  const std::string data = StrCat(kData, model);
  ChildProcess::Options run;
  run.arguments = {MillraceProgram(),
                   "run",
                   graph,
                   "--feed",
                   StrCat("x=", data, ".x.npy,labels=", data, ".labels.npy"),
                   "--fetch",
                   "loss",
                   "--init",
                   "init",
                   "--target",
                   "train",
                   "--steps",
                   StrCat(kSteps),
                   "-o",
                   folder};
  run.arguments.insert(run.arguments.end(), flags.begin(), flags.end());
  run.output_file = log;
  const auto process = ChildProcess::Start(run);
  ASSERT_TRUE(process.ok()) << process.status();
  const auto code = (*process)->Wait(kLong);
  ASSERT_TRUE(code.ok() && *code == 0) << Contents(log);
  const std::vector<float> ours = Losses(JoinPath(folder, "loss.npy"));
  const std::vector<float> wanted = Losses(StrCat(data, "-", optimizer, ".losses.npy"));
  ASSERT_EQ(ours.size(), static_cast<size_t>(kSteps));
  ASSERT_EQ(wanted.size(), ours.size());
  const float largest = *std::max_element(wanted.begin(), wanted.end());
  // Of the same batch.
  EXPECT_LT(wanted[25], wanted[0]) << "nothing was learnt: the case says little";
  for (int i = 0; i < kSteps; ++i) {
    EXPECT_NEAR(ours[i], wanted[i], kTolerance * largest) << "step " << i;
  }
}

class TrainingGraphsTest : public ::testing::TestWithParam<const char*> {
 protected:
  std::string Graph(const char* optimizer) const {
    return StrCat(kData, GetParam(), "-", optimizer, ".pb");
  }
};

constexpr const char* kOptimizers[] = {"sgd", "nesterov", "adam", "rmsprop"};

TEST_P(TrainingGraphsTest, InOneProcess) {
  for (const char* optimizer : kOptimizers) {
    ExpectTensorflowsLosses(Graph(optimizer), GetParam(), optimizer, {});
  }
}

// The variables, and what is colocated with them, on the ps; products and convolutions on either
// worker.
TEST_P(TrainingGraphsTest, OnThreeServers) {
  const auto cluster = HandStartedCluster::Start({{"ps", 1}, {"worker", 2}});
  ASSERT_NE(cluster, nullptr);
  for (const char* optimizer : kOptimizers) {
    GraphDef def;
    ASSERT_TRUE(def.ParseFromString(Contents(Graph(optimizer))));
    int product = 0;
    for (NodeDef& node : *def.mutable_node()) {
      if (node.op() == "VarHandleOp") node.set_device("/job:ps/task:0");
      if (node.op() == "MatMul" || node.op() == "Conv2D") {
        node.set_device(StrCat("/job:worker/task:", product++ % 2));
      }
      // Of another case on the same servers.
      if (node.op() == "VarHandleOp") {
        (*node.mutable_attr())["container"].set_s(StrCat(GetParam(), optimizer));
      }
    }
    ASSERT_GE(product, 3);
    const std::string graph = JoinPath(NewFolder(), "placed.pb");
    ASSERT_TRUE(WriteFile(Files(), graph, def.SerializeAsString()).ok());
    ExpectTensorflowsLosses(graph, GetParam(), optimizer, {"--cluster", cluster->spec()});
  }
}

INSTANTIATE_TEST_SUITE_P(Models, TrainingGraphsTest, ::testing::Values("mlp", "lenet", "batchnorm"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace millrace
