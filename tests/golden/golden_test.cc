// Every case that TensorFlow computed (tests/golden/data), one test a family.

#include <gtest/gtest.h>

#include "tests/golden/golden_case.h"
#include "tests/golden/golden_compare.h"

namespace millrace::golden {
namespace {

class GoldenFamily : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenFamily, MeansWhatTensorFlowMeans) {
  const StatusOr<Family> family = ReadFamily(GetParam());
  ASSERT_TRUE(family.ok()) << family.status();
  const auto differences = Differences();
  ASSERT_TRUE(differences.ok()) << differences.status();
  for (const Case& c : family->cases()) {
    const Status status = RunCase(c);
    const auto listed = differences->find(c.name());
    if (listed == differences->end()) {
      EXPECT_TRUE(status.ok()) << c.name() << ": " << status;
    } else {
      EXPECT_FALSE(status.ok()) << c.name() << " does not differ any more: take it off "
                                << "differences.txt, which says: " << listed->second;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenFamily, ::testing::ValuesIn(FamilyNames()),
                         [](const ::testing::TestParamInfo<std::string>& info) {
                           return info.param;
                         });

TEST(GoldenData, ListsAgreeWithIt) {
  std::map<std::string, Counts> counts;
  std::set<std::string> names;
  int total = 0;
  for (const std::string& name : FamilyNames()) {
    const StatusOr<Family> family = ReadFamily(name);
    ASSERT_TRUE(family.ok()) << family.status();
    for (const Case& c : family->cases()) {
      EXPECT_TRUE(names.insert(c.name()).second) << c.name() << " is there twice";
      EXPECT_GT(c.runs_size(), 0) << c.name();
      bool gradients = false;
      for (const Step& run : c.runs()) gradients |= run.dxs_size() > 0;
      ++counts[c.op()].cases;
      counts[c.op()].gradients += gradients;
      ++total;
    }
  }
  EXPECT_GE(total, 600);
  const auto listed = ListedOps();
  ASSERT_TRUE(listed.ok()) << listed.status();
  for (const auto& [op, count] : counts) {
    EXPECT_GE(count.cases, 4) << op;
    const auto line = listed->find(op);
    ASSERT_NE(line, listed->end()) << op << " is not in ops.txt";
    EXPECT_EQ(line->second.cases, count.cases) << op;
    EXPECT_EQ(line->second.gradients, count.gradients) << op;
  }
  EXPECT_EQ(listed->size(), counts.size());
  const auto differences = Differences();
  ASSERT_TRUE(differences.ok()) << differences.status();
  for (const auto& [name, reason] : *differences) {
    EXPECT_EQ(names.count(name), 1u) << name << " of differences.txt is no case";
  }
}

// The comparison itself: what is wrong must be noticed, and named.
std::string Difference(const Tensor& got, const Tensor& want, Tolerance tolerance) {
  return std::string(Compare(got, want, tolerance).message());
}

TEST(GoldenCompare, NoticesWhatDiffers) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor want = Tensor::Of<float>({2, 2}, {1, nan, 0, 100});
  EXPECT_EQ(Difference(want, want, {0, true}), "");
  EXPECT_EQ(Difference(Tensor::Of<float>({2, 2}, {1.0009F, nan, 0, 100}), want, {1e-5, true}), "");
  EXPECT_EQ(Difference(Tensor::Of<float>({2, 2}, {1.25F, nan, 0, 100}), want, {1e-5, true}),
            "element [0,0] is 1.25, TensorFlow has 1");
  EXPECT_EQ(Difference(Tensor::Of<float>({2, 2}, {1, 0, 0, 100}), want, {1e-5, true}),
            "element [0,1] is 0, TensorFlow has nan");
  EXPECT_EQ(Difference(Tensor::Of<float>({2, 2}, {1, nan, -0.0F, 100}), want, {1e-5, true}),
            "element [1,0] is -0, TensorFlow has 0");
  EXPECT_EQ(Difference(Tensor::Of<float>({2, 2}, {1, nan, -0.0F, 100}), want, {1e-5, false}), "");
  EXPECT_EQ(Difference(Tensor::Of<float>({4}, {1, nan, 0, 100}), want, {0, true}),
            "it is float [4], TensorFlow has float [2,2]");
  EXPECT_EQ(Difference(Tensor::Of<int32_t>({2}, {1, 2}), Tensor::Of<int32_t>({2}, {1, 3}), {}),
            "element [1] is 2, TensorFlow has 3");
  EXPECT_EQ(Difference(Tensor::Strings({1}, {"a"}), Tensor::Strings({1}, {"b"}), {}),
            "element [0] is 'a', TensorFlow has 'b'");
}

}  // namespace
}  // namespace millrace::golden
