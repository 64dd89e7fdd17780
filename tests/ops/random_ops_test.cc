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

INSTANTIATE_TEST_SUITE_P(Types, RandomOpsTest, ::testing::Values(DType::kFloat, DType::kDouble),
                         [](const auto& info) { return std::string(Name(info.param)); });

}  // namespace
}  // namespace millrace::testing
