// One program, three ways to run it: the losses agree.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/cluster/cluster_harness.h"

namespace millrace {
namespace {

constexpr int kSteps = 20;
constexpr absl::Duration kTimeout = absl::Minutes(3);

std::map<int, double> Losses(std::vector<std::string> flags) {
  flags.push_back("--steps");
  flags.push_back(StrCat(kSteps));
  const std::unique_ptr<ExampleProcess> example = ExampleProcess::Start(NewFolder(), flags);
  if (example == nullptr) return {};
  EXPECT_EQ(example->Wait(kTimeout), 0) << example->output();
  const std::map<int, double> losses = example->losses();
  EXPECT_EQ(losses.size(), kSteps) << example->output();
  return losses;
}

void ExpectEqual(const std::map<int, double>& losses, const std::map<int, double>& expected) {
  ASSERT_EQ(losses.size(), expected.size());
  for (const auto& [step, loss] : expected) {
    EXPECT_LE(std::abs(losses.at(step) - loss), 1e-5 * std::abs(loss)) << "step " << step;
  }
}

TEST(LossesTest, AreEqualInOneProcessAndOnClusters) {
  const std::map<int, double> local = Losses({"--cluster=local"});
  // It learns: else the comparison says little.
  ASSERT_EQ(local.size(), kSteps);
  EXPECT_LT(local.rbegin()->second, 0.9 * local.begin()->second);

  ExpectEqual(Losses({"--cluster=start"}), local);

  // Any task can be the master, and what servers ran before makes no difference.
  const auto cluster = HandStartedCluster::Start({{"ps", 1}, {"worker", 2}});
  ASSERT_NE(cluster, nullptr);
  for (const std::string job : {"worker", "ps"}) {
    ExpectEqual(Losses({"--cluster", cluster->spec(), "--target", cluster->target(job, 0)}), local);
  }
}

}  // namespace
}  // namespace millrace
