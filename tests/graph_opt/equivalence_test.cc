#include <cstring>

#include "gtest/gtest.h"
#include "tests/graph_opt/random_graph.h"
#include "tests/testing/local_machine.h"

namespace millrace::testing {
namespace {

constexpr uint64_t kSeeds = 200;
constexpr int kSteps = 2;

// The values of some steps, or the first error.
StatusOr<std::vector<Tensor>> RunSteps(const RandomGraph& graph, bool with_passes) {
  LocalMachine machine;
  MR_ASSIGN_OR_RETURN(
      const std::unique_ptr<Session> session,
      machine.Open(graph.builder->graph(), with_passes ? machine.Passes() : GraphTransform()));
  MR_RETURN_IF_ERROR(RunStep(*session, {}, {}, {graph.initialize}).status());
  std::vector<Tensor> all;
  for (int i = 0; i < kSteps; ++i) {
    MR_ASSIGN_OR_RETURN(const std::vector<Tensor> values,
                        RunStep(*session, graph.feeds, graph.fetches, graph.targets));
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

bool SameBits(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         (a.byte_size() == 0 || std::memcmp(a.raw_data(), b.raw_data(), a.byte_size()) == 0);
}

TEST(EquivalenceTest, RandomGraphsGiveEqualValuesWithAndWithoutThePasses) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const RandomGraph graph = MakeRandomGraph(seed);
    ASSERT_TRUE(graph.builder->status().ok()) << "seed " << seed << ": " << graph.builder->status();
    const StatusOr<std::vector<Tensor>> plain = RunSteps(graph, /*with_passes=*/false);
    const StatusOr<std::vector<Tensor>> optimised = RunSteps(graph, /*with_passes=*/true);
    ASSERT_TRUE(plain.ok()) << "seed " << seed << ": " << plain.status();
    ASSERT_TRUE(optimised.ok()) << "seed " << seed << ": " << optimised.status();
    ASSERT_EQ(plain->size(), optimised->size());
    for (size_t i = 0; i < plain->size(); ++i) {
      ASSERT_TRUE(SameBits((*plain)[i], (*optimised)[i]))
          << "seed " << seed << ", step " << i / graph.fetches.size() << ", fetch '"
          << graph.fetches[i % graph.fetches.size()] << "': " << (*plain)[i].ToString()
          << " without passes, " << (*optimised)[i].ToString() << " with them";
    }
  }
}

// Else the test above would test nothing.
TEST(EquivalenceTest, ThePassesFindWorkInThoseGraphs) {
  LocalMachine machine;
  int folded = 0;
  int merged = 0;
  int pruned = 0;
  PipelineOptions options;
  options.dump = [&](const std::string& pass, const Graph&, const Graph&) {
    folded += pass == "constant_folding";
    merged += pass == "common_subexpression";
    pruned += pass == "prune";
  };
  const GraphTransform passes = machine.Passes(options);
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const RandomGraph graph = MakeRandomGraph(seed);
    StepSignature signature;
    for (const auto& [name, value] : graph.feeds) signature.feeds.push_back(name);
    signature.fetches = graph.fetches;
    signature.targets = graph.targets;
    StatusOr<PrunedGraph> step = Prune(graph.builder->graph(), signature);
    ASSERT_TRUE(step.ok()) << step.status();
    ASSERT_TRUE(passes(*step).ok());
  }
  EXPECT_GT(folded, 50);
  EXPECT_GT(merged, 50);
  EXPECT_GT(pruned, 50);
}

}  // namespace
}  // namespace millrace::testing
