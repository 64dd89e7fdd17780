#include "core/runtime/memory_plan.h"

#include <algorithm>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using Edges = std::vector<std::vector<int32_t>>;

TEST(MemoryPlanTest, AChainNeedsTwoPlaces) {
  const Edges chain = {{}, {0}, {1}, {2}, {3}};
  const MemoryPlan plan = PlanMemory(
      chain, std::vector<PlannedValue>{
                 {100, 0, {1}, {}}, {100, 1, {2}, {}}, {100, 2, {3}, {}}, {100, 3, {4}, {}}});
  EXPECT_THAT(plan.offsets, ElementsAre(0, 128, 0, 128));
  EXPECT_EQ(plan.bytes, 256);
}

TEST(MemoryPlanTest, AChainInPlaceNeedsOne) {
  const Edges chain = {{}, {0}, {1}, {2}};
  const MemoryPlan plan = PlanMemory(
      chain, std::vector<PlannedValue>{{100, 0, {1}, {}}, {100, 1, {2}, {0}}, {100, 2, {3}, {1}}});
  EXPECT_THAT(plan.offsets, ElementsAre(0, 0, 0));
  EXPECT_THAT(plan.takes_over, ElementsAre(-1, 0, 1));
  EXPECT_EQ(plan.bytes, 128);
}

TEST(MemoryPlanTest, BranchesThatMayRunAtOnceShareNothing) {
  // 1 and 2 both follow 0; a runtime that happens to run 2 after 3 must not be relied on.
  const Edges branches = {{}, {0}, {0}, {1}, {2}, {3, 4}};
  const MemoryPlan plan = PlanMemory(
      branches, std::vector<PlannedValue>{
                    {64, 1, {3}, {}}, {64, 2, {4}, {}}, {64, 3, {5}, {}}, {64, 4, {5}, {}}});
  std::vector<int64_t> offsets = plan.offsets;
  std::sort(offsets.begin(), offsets.end());
  EXPECT_THAT(offsets, ElementsAre(0, 64, 128, 192));
}

TEST(MemoryPlanTest, NothingIsTakenOverWhileAnotherReaderMayRun) {
  // Node 2 reads value 0 as well, and may run after node 1.
  const std::vector<PlannedValue> values = {{64, 0, {1, 2}, {}}, {64, 1, {3}, {0}}};
  EXPECT_THAT(PlanMemory(Edges{{}, {0}, {0}, {1, 2}}, values).takes_over, ElementsAre(-1, -1));
  // Here it has ended by then.
  const std::vector<PlannedValue> later = {{64, 0, {1, 2}, {}}, {64, 2, {3}, {0}}};
  EXPECT_THAT(PlanMemory(Edges{{}, {0}, {1}, {2}}, later).takes_over, ElementsAre(-1, 0));
}

TEST(MemoryPlanTest, OnlyOneTakesAMemoryOver) {
  const std::vector<PlannedValue> values = {{64, 0, {1}, {}}, {64, 1, {2}, {0}}, {64, 1, {2}, {0}}};
  EXPECT_THAT(PlanMemory(Edges{{}, {0}, {1}}, values).takes_over, ElementsAre(-1, 0, -1));
}

TEST(MemoryPlanTest, AValueThatNobodyReadsStillHasAPlaceOfItsOwn) {
  const Edges edges = {{}, {}};
  const MemoryPlan plan =
      PlanMemory(edges, std::vector<PlannedValue>{{64, 0, {}, {}}, {64, 1, {}, {}}});
  EXPECT_NE(plan.offsets[0], plan.offsets[1]);
}

TEST(MemoryPlanTest, SmallValuesFillThePlaceOfALargeOne) {
  const Edges chain = {{}, {0}, {1}, {2}};
  const MemoryPlan plan = PlanMemory(
      chain, std::vector<PlannedValue>{
                 {1000, 0, {1}, {}}, {64, 2, {3}, {}}, {64, 2, {3}, {}}, {64, 2, {3}, {}}});
  EXPECT_EQ(plan.bytes, 1024);
}

// By brute force: whether every path of execution ends `first` before `second` starts.
bool Precedes(const Edges& edges, int32_t first, int32_t second) {
  if (first >= second) return false;
  const auto& before = edges[second];
  return std::any_of(before.begin(), before.end(),
                     [&](int32_t node) { return node == first || Precedes(edges, first, node); });
}

TEST(MemoryPlanTest, NoTwoLivingValuesOverlapInRandomGraphs) {
  std::mt19937 random(7);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  int64_t shared = 0;
  for (int round = 0; round < 300; ++round) {
    const int nodes = 2 + below(16);
    Edges edges(nodes);
    std::vector<PlannedValue> values;
    std::vector<std::vector<int32_t>> read(nodes);  // by node: values
    for (int i = 0; i < nodes; ++i) {
      for (int k = below(3); k > 0 && !values.empty(); --k) {
        const int32_t value = below(static_cast<int>(values.size()));
        values[value].readers.push_back(i);
        edges[i].push_back(values[value].producer);
        read[i].push_back(value);
      }
      if (i > 0 && below(4) == 0) edges[i].push_back(below(i));
      const int64_t bytes = 1 + below(3) * 100;
      PlannedValue made{bytes, i, {}, {}};
      for (int32_t value : read[i]) {
        if (values[value].bytes == bytes) made.in_place_of.push_back(value);
      }
      values.push_back(made);
    }
    const MemoryPlan plan = PlanMemory(edges, values);
    int64_t sum = 0;
    for (size_t a = 0; a < values.size(); ++a) {
      sum += (values[a].bytes + 63) / 64 * 64;
      EXPECT_EQ(plan.offsets[a] % 64, 0);
      EXPECT_LE(plan.offsets[a] + values[a].bytes, plan.bytes);
      for (size_t b = a + 1; b < values.size(); ++b) {
        if (plan.offsets[a] >= plan.offsets[b] + values[b].bytes ||
            plan.offsets[b] >= plan.offsets[a] + values[a].bytes) {
          continue;
        }
        std::vector<int32_t> users = values[a].readers;
        users.push_back(values[a].producer);
        const bool takes_over = plan.offsets[a] == plan.offsets[b] &&
                                values[a].bytes == values[b].bytes && plan.takes_over[b] >= 0;
        for (int32_t user : users) {
          EXPECT_TRUE(Precedes(edges, user, values[b].producer) ||
                      (takes_over && user == values[b].producer))
              << "round " << round << ": values " << a << " and " << b;
        }
      }
    }
    shared += sum - plan.bytes;
  }
  EXPECT_GT(shared, 0);
}

}  // namespace
}  // namespace millrace
