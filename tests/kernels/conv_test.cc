#include <algorithm>

#include "gtest/gtest.h"
#include "tests/kernels/kernel_harness.h"

namespace millrace {
namespace {

struct Case {
  int64_t n, h, w, c, fh, fw, k;
  std::vector<int64_t> strides = {1, 1};
  std::vector<int64_t> dilations = {1, 1};
  std::string padding = "SAME";
  std::vector<int64_t> paddings = {};  // top, bottom, left, right
};

struct Axis {
  int64_t out, before;
};
Axis AxisOf(const Case& c, int i) {
  const int64_t in = i == 0 ? c.h : c.w;
  const int64_t taps = i == 0 ? c.fh : c.fw;
  const int64_t span = (taps - 1) * c.dilations[i] + 1;
  const int64_t s = c.strides[i];
  if (c.padding == "SAME") {
    const int64_t out = (in + s - 1) / s;
    return {out, std::max<int64_t>(0, (out - 1) * s + span - in) / 2};
  }
  const int64_t before = c.padding == "VALID" ? 0 : c.paddings[2 * i];
  const int64_t after = c.padding == "VALID" ? 0 : c.paddings[2 * i + 1];
  return {(in + before + after - span) / s + 1, before};
}

AttrMap Attrs(const Case& c, DType dtype) {
  std::vector<int64_t> explicit_paddings;
  if (c.padding == "EXPLICIT") {
    explicit_paddings = {0, 0, c.paddings[0], c.paddings[1], c.paddings[2], c.paddings[3], 0, 0};
  }
  return {{"T", dtype},
          {"strides", std::vector<int64_t>{1, c.strides[0], c.strides[1], 1}},
          {"dilations", std::vector<int64_t>{1, c.dilations[0], c.dilations[1], 1}},
          {"padding", c.padding},
          {"explicit_paddings", explicit_paddings}};
}

const Case kCases[] = {
    {1, 1, 1, 1, 1, 1, 1},
    {2, 5, 4, 3, 3, 3, 2},
    {2, 6, 7, 3, 3, 2, 5, {1, 1}, {1, 1}, "VALID"},
    {2, 7, 6, 2, 3, 3, 4, {2, 2}},
    {2, 8, 9, 2, 3, 4, 4, {2, 3}, {1, 1}, "VALID"},
    {1, 9, 9, 3, 3, 3, 17, {1, 1}, {2, 2}},
    {1, 9, 11, 2, 2, 3, 3, {1, 1}, {3, 2}, "VALID"},
    {1, 9, 11, 2, 2, 3, 3, {2, 1}, {1, 2}},
    {2, 5, 5, 3, 3, 3, 4, {1, 1}, {1, 1}, "EXPLICIT", {2, 1, 0, 3}},
    {2, 5, 6, 1, 3, 3, 4, {2, 2}, {1, 1}, "EXPLICIT", {4, 4, 5, 3}},
    {3, 6, 6, 4, 1, 1, 8},
    {3, 7, 7, 4, 1, 1, 8, {2, 2}},
    {2, 4, 4, 3, 5, 5, 2},      // taller than the image
    {2, 28, 28, 1, 5, 5, 16},   // LeNet's first
    {3, 14, 14, 16, 5, 5, 32},  // and second
    {1, 13, 17, 1, 3, 3, 6},    // the square of 9 taps
    {1, 15, 15, 3, 7, 7, 33, {2, 2}},
    {2, 12, 12, 20, 3, 3, 50},
    {1, 40, 40, 32, 3, 3, 64},      // several tasks an image
    {2, 3, 5, 3, 2, 2, 4, {3, 3}},  // strides beyond the filter
    {0, 4, 4, 2, 3, 3, 2},
    {2, 0, 4, 2, 3, 3, 2},
    {2, 4, 4, 0, 3, 3, 2},
    {2, 4, 4, 2, 3, 3, 0},
    {2, 2, 2, 2, 3, 3, 2, {1, 1}, {1, 1}, "EXPLICIT", {0, 1, 0, 1}},
};

TEST(ConvTest, ForwardAndBothGradientsAgainstSixLoops) {
  KernelHarness h;
  for (const Case& c : kCases) {
    const Axis y_axis = AxisOf(c, 0), x_axis = AxisOf(c, 1);
    const Shape image_shape({c.n, c.h, c.w, c.c});
    const Shape filter_shape({c.fh, c.fw, c.c, c.k});
    const Shape out_shape({c.n, y_axis.out, x_axis.out, c.k});
    SCOPED_TRACE(testing::Message()
                 << image_shape.ToString() << filter_shape.ToString() << out_shape.ToString());
    for (const DType dtype : {DType::kFloat, DType::kDouble}) {
      const Tensor image = RandomTensor(dtype, image_shape, 1);
      const Tensor filter = RandomTensor(dtype, filter_shape, 2);
      const Tensor d_out = RandomTensor(dtype, out_shape, 3);
      const std::vector<double> x = Doubles(image), f = Doubles(filter), dy = Doubles(d_out);
      std::vector<double> y(dy.size()), dx(x.size()), df(f.size());
      for (int64_t n = 0; n < c.n; ++n) {
        for (int64_t oy = 0; oy < y_axis.out; ++oy) {
          for (int64_t ox = 0; ox < x_axis.out; ++ox) {
            for (int64_t ty = 0; ty < c.fh; ++ty) {
              for (int64_t tx = 0; tx < c.fw; ++tx) {
                const int64_t iy = oy * c.strides[0] - y_axis.before + ty * c.dilations[0];
                const int64_t ix = ox * c.strides[1] - x_axis.before + tx * c.dilations[1];
                if (iy < 0 || iy >= c.h || ix < 0 || ix >= c.w) continue;
                for (int64_t i = 0; i < c.c; ++i) {
                  for (int64_t k = 0; k < c.k; ++k) {
                    const int64_t at_x = ((n * c.h + iy) * c.w + ix) * c.c + i;
                    const int64_t at_f = ((ty * c.fw + tx) * c.c + i) * c.k + k;
                    const int64_t at_y = ((n * y_axis.out + oy) * x_axis.out + ox) * c.k + k;
                    y[at_y] += x[at_x] * f[at_f];
                    dx[at_x] += dy[at_y] * f[at_f];
                    df[at_f] += dy[at_y] * x[at_x];
                  }
                }
              }
            }
          }
        }
      }
      const double tolerance = dtype == DType::kFloat ? 1e-5 : 1e-13;
      const AttrMap attrs = Attrs(c, dtype);
      ExpectNear(h.RunOne("Conv2D", attrs, {image, filter}, dtype, out_shape), y, tolerance);
      const auto dims = [](const Shape& s) {
        return Ints({static_cast<int32_t>(s[0]), static_cast<int32_t>(s[1]),
                     static_cast<int32_t>(s[2]), static_cast<int32_t>(s[3])});
      };
      ExpectNear(h.RunOne("Conv2DBackpropInput", attrs, {dims(image_shape), filter, d_out}, dtype,
                          image_shape),
                 dx, tolerance);
      ExpectNear(h.RunOne("Conv2DBackpropFilter", attrs, {image, dims(filter_shape), d_out}, dtype,
                          filter_shape),
                 df, tolerance);
    }
  }
}

TEST(ConvTest, RefusesWhatDoesNotFit) {
  KernelHarness h;
  const Case same = {1, 4, 4, 2, 3, 3, 2};
  const Tensor image = Tensor::Zeros(DType::kFloat, Shape({1, 4, 4, 2}));
  const Tensor filter = Tensor::Zeros(DType::kFloat, Shape({3, 3, 2, 2}));
  const auto run = [&](AttrMap attrs, const Tensor& f, const Shape& out) {
    return h.Run("Conv2D", std::move(attrs), {image, f}, {{DType::kFloat, out}}).status().code();
  };
  const auto invalid = absl::StatusCode::kInvalidArgument;
  const AttrMap attrs = Attrs(same, DType::kFloat);
  EXPECT_EQ(run(attrs, filter, Shape({1, 4, 4, 2})), absl::StatusCode::kOk);
  EXPECT_EQ(run(attrs, filter, Shape({1, 4, 5, 2})), invalid);
  EXPECT_EQ(run(attrs, filter, Shape({4, 4, 2})), invalid);
  EXPECT_EQ(run(attrs, Tensor::Zeros(DType::kFloat, Shape({3, 3, 3, 2})), Shape({1, 4, 4, 2})),
            invalid);
  AttrMap wrong = attrs;
  wrong.Set("strides", std::vector<int64_t>{1, 0, 1, 1});
  EXPECT_EQ(run(wrong, filter, Shape({1, 4, 4, 2})), invalid);
  wrong = attrs;
  wrong.Set("strides", std::vector<int64_t>{2, 1, 1, 1});
  EXPECT_EQ(run(wrong, filter, Shape({1, 4, 4, 2})), invalid);
  wrong = attrs;
  wrong.Set("padding", "MAYBE");
  EXPECT_EQ(run(wrong, filter, Shape({1, 4, 4, 2})), invalid);
  wrong = attrs;
  wrong.Set("data_format", "NCHW");
  EXPECT_EQ(run(wrong, filter, Shape({1, 4, 4, 2})), absl::StatusCode::kUnimplemented);
  wrong = attrs;
  wrong.Set("padding", "EXPLICIT");
  wrong.Set("explicit_paddings", std::vector<int64_t>{0, 0, -1, 0, 0, 0, 0, 0});
  EXPECT_EQ(run(wrong, filter, Shape({1, 4, 4, 2})), invalid);
}

}  // namespace
}  // namespace millrace
