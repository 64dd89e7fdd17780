#include <gtest/gtest.h>

#include <cmath>

#include "ops/array_ops.h"
#include "tests/testing/array.h"
#include "tests/testing/graph_runner.h"
#include "tests/testing/op_text.h"

namespace millrace::testing {
namespace {

using Draw = Value (*)(Value, DType, uint64_t, SourceLocation);

struct Moments {
  double mean = 0, deviation = 0, low = 0, high = 0;
};

Moments MomentsOf(const Array& a) {
  Moments m{0, 0, a[0], a[0]};
  for (double v : a.values) {
    m.mean += v / static_cast<double>(a.size());
    m.low = std::min(m.low, v);
    m.high = std::max(m.high, v);
  }
  for (double v : a.values) {
    m.deviation += (v - m.mean) * (v - m.mean) / static_cast<double>(a.size());
  }
  m.deviation = std::sqrt(m.deviation);
  return m;
}

// One draw of 20,000 numbers, in a graph and on a device of its own.
Array DrawOnce(Draw draw, DType dtype, uint64_t seed, int which = 0) {
  GraphRunner runner;
  GraphBuilder b(AllOps());
  Value drawn;
  for (int i = 0; i <= which; ++i) {
    drawn = draw(IntVector(b, {100, 200}), dtype, seed, SourceLocation::Current());
  }
  const auto result = runner.Run(b.graph(), {}, {drawn.name()});
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return Zeros({1});
  return *ToArray((*result)[0]);
}

class RandomOpsTest : public ::testing::TestWithParam<DType> {};

TEST_P(RandomOpsTest, UniformMoments) {
  const Moments m = MomentsOf(DrawOnce(RandomUniform, GetParam(), 3));
  EXPECT_NEAR(m.mean, 0.5, 0.01);
  EXPECT_NEAR(m.deviation, 1 / std::sqrt(12), 0.01);
  EXPECT_GE(m.low, 0);
  EXPECT_LT(m.high, 1);
}

TEST_P(RandomOpsTest, NormalMoments) {
  const Moments m = MomentsOf(DrawOnce(RandomNormal, GetParam(), 3));
  EXPECT_NEAR(m.mean, 0, 0.03);
  EXPECT_NEAR(m.deviation, 1, 0.03);
  EXPECT_LT(m.low, -3);
  EXPECT_GT(m.high, 3);
}

TEST_P(RandomOpsTest, TruncatedNormalMoments) {
  const Moments m = MomentsOf(DrawOnce(TruncatedNormal, GetParam(), 3));
  EXPECT_NEAR(m.mean, 0, 0.03);
  EXPECT_NEAR(m.deviation, 0.8796, 0.03);  // of the normal distribution cut at two deviations
  EXPECT_GE(m.low, -2);
  EXPECT_LE(m.high, 2);
}

TEST_P(RandomOpsTest, SeedAndNodeTellWhatIsDrawn) {
  for (const Draw draw : {Draw(RandomUniform), Draw(RandomNormal), Draw(TruncatedNormal)}) {
    const Array a = DrawOnce(draw, GetParam(), 3);
    EXPECT_EQ(a.values, DrawOnce(draw, GetParam(), 3).values);
    EXPECT_NE(a.values, DrawOnce(draw, GetParam(), 4).values) << "another seed";
    EXPECT_NE(a.values, DrawOnce(draw, GetParam(), 3, 1).values) << "another node";
  }
}

// The same whatever the device has run before.
TEST_P(RandomOpsTest, StatelessDrawsFollowFromTheirSeed) {
  using StatelessDraw = Value (*)(Value, Value, DType, SourceLocation);
  const struct {
    StatelessDraw draw;
    double mean, deviation;
  } cases[] = {
      {StatelessRandomUniform, 0.5, 1 / std::sqrt(12)},
      {StatelessRandomNormal, 0, 1},
      {StatelessTruncatedNormal, 0, 0.8796},
  };
  for (const auto& c : cases) {
    GraphRunner runner;
    GraphBuilder b(AllOps());
    const Value shape = IntVector(b, {100, 200});
    std::vector<std::string> names;
    for (const std::pair<int64_t, int64_t>& seed :
         {std::pair<int64_t, int64_t>{7, 0}, {7, 0}, {8, 0}, {7, 1}}) {
      const Value at = Const(b, Tensor::Of<int64_t>({2}, {seed.first, seed.second}));
      names.push_back(c.draw(shape, at, GetParam(), SourceLocation::Current()).name());
    }
    names.push_back(RandomUniform(shape, GetParam(), 3).name());
    const auto first = runner.Run(b.graph(), {}, names);
    const auto second = runner.Run(b.graph(), {}, names);
    ASSERT_TRUE(first.ok()) << first.status();
    ASSERT_TRUE(second.ok()) << second.status();
    std::vector<std::vector<double>> drawn;
    for (size_t i = 0; i < names.size(); ++i) {
      drawn.push_back(ToArray((*first)[i])->values);
      const bool again = drawn[i] == ToArray((*second)[i])->values;
      EXPECT_EQ(again, i < 4) << names[i];
    }
    EXPECT_EQ(drawn[0], drawn[1]);
    EXPECT_NE(drawn[0], drawn[2]) << "another stream";
    EXPECT_NE(drawn[0], drawn[3]) << "another place in it";
    const Moments m = MomentsOf(*ToArray((*first)[0]));
    EXPECT_NEAR(m.mean, c.mean, 0.03);
    EXPECT_NEAR(m.deviation, c.deviation, 0.03);
  }
}

TEST(RandomStreamTest, IsThatOfSeedAndName) {
  EXPECT_EQ(RandomStream(1, "a"), RandomStream(1, "a"));
  EXPECT_NE(RandomStream(1, "a"), RandomStream(2, "a"));
  EXPECT_NE(RandomStream(1, "a"), RandomStream(1, "b"));
  EXPECT_GE(RandomStream(~0ull, ""), 0);
}

INSTANTIATE_TEST_SUITE_P(Types, RandomOpsTest, ::testing::Values(DType::kFloat, DType::kDouble),
                         [](const auto& info) { return std::string(Name(info.param)); });

}  // namespace
}  // namespace millrace::testing
