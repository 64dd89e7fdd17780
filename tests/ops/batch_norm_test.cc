#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/match.h"
#include "core/graph/gradients.h"
#include "ops/array_ops.h"
#include "ops/math_ops.h"
#include "ops/nn_ops.h"
#include "tests/testing/array.h"
#include "tests/testing/graph_runner.h"
#include "tests/testing/op_text.h"

// FusedBatchNormV3 against the same function composed of other ops, whose gradients have been
// checked: values, statistics and gradients, in training and in use, in both formats.
namespace millrace::testing {
namespace {

struct Case {
  Shape shape;
  bool training;
  bool channels_first;
  float factor;
};

class BatchNormTest : public ::testing::TestWithParam<Case> {
 protected:
  Value Random(const Shape& shape, uint64_t seed) {
    return RandomUniform(Const(b_, ShapeTensor(shape)), DType::kDouble, seed);
  }
  static Tensor ShapeTensor(const Shape& shape) {
    std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
    return Tensor::Of<int64_t>(Shape{shape.rank()}, absl::MakeConstSpan(dims));
  }
  Array Result(const std::vector<Tensor>& tensors, size_t i) { return *ToArray(tensors[i]); }
  GraphBuilder b_{AllOps()};
};

TEST_P(BatchNormTest, IsWhatItIsComposedOf) {
  const Case& p = GetParam();
  const int axis = p.channels_first ? 1 : 3;
  const int64_t channels = p.shape[axis];
  const double n = static_cast<double>(p.shape.num_elements()) / static_cast<double>(channels);
  const double epsilon = 0.125;
  const Value x = Random(p.shape, 1), dy = Random(p.shape, 2);
  const Value scale = Random(Shape{channels}, 3), offset = Random(Shape{channels}, 4);
  const Value mean = Random(Shape{channels}, 5), variance = Random(Shape{channels}, 6);
  const std::vector<Value> fused =
      b_.AddMany("FusedBatchNormV3", {x, scale, offset, mean, variance},
                 {{"epsilon", 0.125f},
                  {"exponential_avg_factor", p.factor},
                  {"is_training", p.training},
                  {"data_format", p.channels_first ? "NCHW" : "NHWC"}},
                 6, SourceLocation::Current());
  // The same by hand.
  std::vector<int64_t> rest, broadcast(4, 1);
  for (int i = 0; i < 4; ++i) {
    if (i != axis) rest.push_back(i);
  }
  broadcast[axis] = channels;
  const auto wide = [&](Value v) { return Reshape(v, broadcast); };
  const Value own_mean = p.training ? ReduceMean(x, rest) : mean;
  const Value own_variance = p.training ? ReduceMean(Square(x - wide(own_mean)), rest) : variance;
  const Value y =
      (x - wide(own_mean)) * Rsqrt(wide(own_variance) + epsilon) * wide(scale) + wide(offset);
  const double bessel = p.training ? n / (n - 1) : 1;
  const double f = p.training ? p.factor : 1;
  const Value new_mean = own_mean * f + mean * (1 - f);
  const Value new_variance = own_variance * (f * bessel) + variance * (1 - f);

  std::vector<std::string> fetches = {fused[0].name(), fused[1].name(), fused[2].name(),
                                      y.name(),        new_mean.name(), new_variance.name()};
  for (const Value& result : {fused[0], y}) {
    const auto dx = Gradients({result}, {x, scale, offset}, {dy});
    ASSERT_TRUE(dx.ok()) << dx.status();
    for (const Value& d : *dx) fetches.push_back(d.name());
  }
  ASSERT_TRUE(b_.status().ok()) << b_.status();
  const auto got = GraphRunner().Run(b_.graph(), {}, fetches);
  ASSERT_TRUE(got.ok()) << got.status();
  const std::pair<int, int> pairs[] = {{0, 3}, {1, 4}, {2, 5}, {6, 9}, {7, 10}, {8, 11}};
  for (const auto& [i, j] : pairs) {
    const Array one = Result(*got, i), other = Result(*got, j);
    ASSERT_EQ(one.shape, other.shape) << i;
    for (int64_t k = 0; k < one.size(); ++k) {
      EXPECT_NEAR(one[k], other[k], 1e-9 * std::max(1.0, std::abs(other[k]))) << i << " at " << k;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, BatchNormTest,
                         ::testing::Values(Case{Shape{2, 3, 4, 5}, true, false, 1.0f},
                                           Case{Shape{2, 3, 4, 5}, true, true, 1.0f},
                                           Case{Shape{2, 3, 4, 5}, false, false, 1.0f},
                                           Case{Shape{2, 3, 4, 5}, false, true, 1.0f},
                                           Case{Shape{3, 1, 2, 4}, true, false, 0.25f},
                                           Case{Shape{40, 9, 9, 33}, true, false, 1.0f},
                                           Case{Shape{40, 33, 9, 9}, true, true, 0.5f}));

TEST(BatchNorm, HasNoSecondDerivative) {
  GraphBuilder b(AllOps());
  const Value x = Placeholder(b, DType::kFloat, {1, 2, 2, 3});
  const Value v = Placeholder(b, DType::kFloat, {3});
  const Value y = FusedBatchNorm(x, v, v, v, v).y;
  const auto dx = Gradients({y}, {x});
  ASSERT_TRUE(dx.ok()) << dx.status();
  const auto second = Gradients({(*dx)[0]}, {x});
  ASSERT_FALSE(second.ok());
  EXPECT_TRUE(absl::StrContains(second.status().message(), "FusedBatchNormGradV3"));
}

}  // namespace
}  // namespace millrace::testing
