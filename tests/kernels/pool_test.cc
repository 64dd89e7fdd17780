#include <algorithm>
#include <limits>

#include "gtest/gtest.h"
#include "tests/kernels/kernel_harness.h"

namespace millrace {
namespace {

struct Case {
  int64_t n, h, w, c;
  int64_t window[2];
  int64_t stride[2];
  bool same;
};

const Case kCases[] = {
    {2, 4, 4, 3, {2, 2}, {2, 2}, false},   {2, 5, 7, 3, {2, 2}, {2, 2}, false},
    {2, 5, 7, 3, {2, 2}, {2, 2}, true},    {1, 5, 5, 16, {3, 3}, {1, 1}, true},
    {1, 6, 9, 2, {3, 2}, {2, 3}, true},    {1, 6, 9, 2, {3, 2}, {2, 3}, false},
    {3, 3, 3, 1, {3, 3}, {1, 1}, false},   {1, 1, 1, 1, {1, 1}, {1, 1}, false},
    {0, 4, 4, 2, {2, 2}, {2, 2}, false},   {1, 2, 2, 2, {5, 5}, {1, 1}, true},
    {5, 28, 28, 6, {2, 2}, {2, 2}, false},
};

TEST(PoolTest, MaxAndMeanWithGradientsAgainstLoops) {
  KernelHarness h;
  for (const Case& c : kCases) {
    int64_t out[2], before[2];
    const int64_t in[2] = {c.h, c.w};
    for (int i = 0; i < 2; ++i) {
      out[i] = c.same ? (in[i] + c.stride[i] - 1) / c.stride[i]
                      : (in[i] - c.window[i]) / c.stride[i] + 1;
      before[i] =
          c.same ? std::max<int64_t>(0, (out[i] - 1) * c.stride[i] + c.window[i] - in[i]) / 2 : 0;
    }
    const Shape image_shape({c.n, c.h, c.w, c.c}), out_shape({c.n, out[0], out[1], c.c});
    SCOPED_TRACE(testing::Message() << image_shape.ToString() << out_shape.ToString());
    for (const DType dtype : {DType::kFloat, DType::kDouble}) {
      Tensor image = RandomTensor(dtype, image_shape, 4, 3);
      // Ties, so that the first must win.
      std::vector<double> x = Doubles(image);
      for (double& v : x) v = std::round(v);
      image = FromDoubles(dtype, image_shape, x);
      const Tensor d_out = RandomTensor(dtype, out_shape, 5);
      const std::vector<double> dy = Doubles(d_out);
      std::vector<double> max(dy.size()), mean(dy.size()), d_max(x.size()), d_mean(x.size());
      for (int64_t n = 0; n < c.n; ++n) {
        for (int64_t oy = 0; oy < out[0]; ++oy) {
          for (int64_t ox = 0; ox < out[1]; ++ox) {
            for (int64_t k = 0; k < c.c; ++k) {
              const int64_t at = ((n * out[0] + oy) * out[1] + ox) * c.c + k;
              std::vector<int64_t> covered;
              for (int64_t ty = 0; ty < c.window[0]; ++ty) {
                for (int64_t tx = 0; tx < c.window[1]; ++tx) {
                  const int64_t iy = oy * c.stride[0] - before[0] + ty;
                  const int64_t ix = ox * c.stride[1] - before[1] + tx;
                  if (iy < 0 || iy >= c.h || ix < 0 || ix >= c.w) continue;
                  covered.push_back(((n * c.h + iy) * c.w + ix) * c.c + k);
                }
              }
              int64_t best = covered[0];
              for (int64_t i : covered) {
                if (x[i] > x[best]) best = i;
                mean[at] += x[i] / static_cast<double>(covered.size());
                d_mean[i] += dy[at] / static_cast<double>(covered.size());
              }
              max[at] = x[best];
              d_max[best] += dy[at];
            }
          }
        }
      }
      const AttrMap attrs = {{"T", dtype},
                             {"ksize", std::vector<int64_t>{1, c.window[0], c.window[1], 1}},
                             {"strides", std::vector<int64_t>{1, c.stride[0], c.stride[1], 1}},
                             {"padding", c.same ? "SAME" : "VALID"}};
      const double tolerance = dtype == DType::kFloat ? 1e-6 : 1e-14;
      const Tensor y = h.RunOne("MaxPool", attrs, {image}, dtype, out_shape);
      ExpectNear(y, max, 0);
      ExpectNear(h.RunOne("MaxPoolGrad", attrs, {image, y, d_out}, dtype, image_shape), d_max,
                 tolerance);
      ExpectNear(h.RunOne("AvgPool", attrs, {image}, dtype, out_shape), mean, tolerance);
      const Tensor shape = Ints({static_cast<int32_t>(c.n), static_cast<int32_t>(c.h),
                                 static_cast<int32_t>(c.w), static_cast<int32_t>(c.c)});
      ExpectNear(h.RunOne("AvgPoolGrad", attrs, {shape, d_out}, dtype, image_shape), d_mean,
                 tolerance);
    }
  }
}

TEST(PoolTest, MaxKeepsNan) {
  KernelHarness h;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = Tensor::Of<float>(Shape({1, 2, 2, 1}), {1, nan, 3, 2});
  const AttrMap attrs = {{"T", DType::kFloat},
                         {"ksize", std::vector<int64_t>{1, 2, 2, 1}},
                         {"strides", std::vector<int64_t>{1, 2, 2, 1}},
                         {"padding", "VALID"}};
  const Tensor y = h.RunOne("MaxPool", attrs, {x}, DType::kFloat, Shape({1, 1, 1, 1}));
  EXPECT_TRUE(std::isnan(y.data<float>()[0]));
  const Tensor one = Tensor::Of<float>(Shape({1, 1, 1, 1}), {1});
  ExpectNear(h.RunOne("MaxPoolGrad", attrs, {x, y, one}, DType::kFloat, x.shape()), {0, 1, 0, 0},
             0);
}

TEST(PoolTest, RefusesOtherShapes) {
  KernelHarness h;
  const Tensor x = Tensor::Zeros(DType::kFloat, Shape({1, 4, 4, 1}));
  const AttrMap attrs = {{"T", DType::kFloat},
                         {"ksize", std::vector<int64_t>{1, 2, 2, 1}},
                         {"strides", std::vector<int64_t>{1, 2, 2, 1}},
                         {"padding", "VALID"}};
  EXPECT_FALSE(h.Run("MaxPool", attrs, {x}, {{DType::kFloat, Shape({1, 3, 2, 1})}}).ok());
  EXPECT_FALSE(h.Run("MaxPool", attrs, {x}, {{DType::kFloat, Shape({4})}}).ok());
  AttrMap wrong = attrs;
  wrong.Set("ksize", std::vector<int64_t>{1, 2, 2, 2});
  EXPECT_FALSE(h.Run("MaxPool", wrong, {x}, {{DType::kFloat, Shape({1, 2, 2, 1})}}).ok());
}

}  // namespace
}  // namespace millrace
