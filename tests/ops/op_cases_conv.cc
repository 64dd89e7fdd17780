#include <algorithm>
#include <limits>

#include "tests/ops/op_cases.h"

namespace millrace::testing {
namespace {

using Index = std::vector<int64_t>;

// Windows along one axis.
struct Axis {
  int64_t stride = 1;
  int64_t dilation = 1;
  bool same = false;
  int64_t before = 0, after = 0;  // explicit padding

  int64_t Reach(int64_t window) const { return (window - 1) * dilation + 1; }
  int64_t Count(int64_t extent, int64_t window) const {
    return same ? (extent + stride - 1) / stride
                : (extent + before + after - Reach(window)) / stride + 1;
  }
  // Where window `at` begins; of uneven padding, the larger part is after.
  int64_t Begin(int64_t at, int64_t extent, int64_t window) const {
    const int64_t padding =
        std::max<int64_t>(0, (Count(extent, window) - 1) * stride + Reach(window) - extent);
    return at * stride - (same ? padding / 2 : before);
  }
};

struct Windows {
  Axis rows, columns;
  std::string Attrs() const {
    const std::string strides =
        StrCat("strides=[1,", rows.stride, ",", columns.stride, ",1], padding=\"");
    if (rows.before + rows.after + columns.before + columns.after == 0) {
      return StrCat(strides, rows.same ? "SAME" : "VALID", "\"");
    }
    return StrCat(strides, "EXPLICIT\", explicit_paddings=[0,0,", rows.before, ",", rows.after, ",",
                  columns.before, ",", columns.after, ",0,0]");
  }
};

// Calls visit(output index, image index, window row, window column) for all that meet.
template <typename Visit>
void ForEachPair(const Windows& w, const Index& image, int64_t height, int64_t width, Visit visit) {
  const int64_t out_height = w.rows.Count(image[1], height);
  const int64_t out_width = w.columns.Count(image[2], width);
  for (int64_t n = 0; n < image[0]; ++n) {
    for (int64_t i = 0; i < out_height * out_width; ++i) {
      for (int64_t k = 0; k < height * width; ++k) {
        const int64_t y = i / out_width, x = i % out_width;
        const int64_t row = w.rows.Begin(y, image[1], height) + k / width * w.rows.dilation;
        const int64_t column = w.columns.Begin(x, image[2], width) + k % width * w.columns.dilation;
        if (row < 0 || row >= image[1] || column < 0 || column >= image[2]) continue;
        visit(Index{n, y, x}, Index{n, row, column}, k / width, k % width);
      }
    }
  }
}

Index With(Index index, int64_t last) {
  index.push_back(last);
  return index;
}

Index OutputShape(const Windows& w, const Index& image, int64_t height, int64_t width,
                  int64_t channels) {
  return {image[0], w.rows.Count(image[1], height), w.columns.Count(image[2], width), channels};
}

// The trilinear form that the three convolutions share: calls visit(image, filter, output offset).
template <typename Visit>
void ForEachProduct(const Windows& w, const Index& image, const Index& filter, Visit visit) {
  const Array x = {image, {}}, f = {filter, {}};
  const Array y = {OutputShape(w, image, filter[0], filter[1], filter[3]), {}};
  ForEachPair(w, image, filter[0], filter[1],
              [&](const Index& out, const Index& in, int64_t row, int64_t column) {
                for (int64_t c = 0; c < filter[2]; ++c) {
                  for (int64_t k = 0; k < filter[3]; ++k) {
                    visit(x.At(With(in, c)), f.At({row, column, c, k}), y.At(With(out, k)));
                  }
                }
              });
}

Index Ints(const Array& a) { return Index(a.values.begin(), a.values.end()); }

Reference Conv2D(Windows w) {
  return [w](const std::vector<Array>& in) {
    const Array &x = in[0], &f = in[1];
    Array y = Zeros(OutputShape(w, x.shape, f.shape[0], f.shape[1], f.shape[3]));
    ForEachProduct(w, x.shape, f.shape,
                   [&](int64_t i, int64_t j, int64_t k) { y[k] += x[i] * f[j]; });
    return std::vector<Array>{y};
  };
}

Reference BackpropInput(Windows w) {
  return [w](const std::vector<Array>& in) {
    Array x = Zeros(Ints(in[0]));
    ForEachProduct(w, x.shape, in[1].shape,
                   [&](int64_t i, int64_t j, int64_t k) { x[i] += in[1][j] * in[2][k]; });
    return std::vector<Array>{x};
  };
}

Reference BackpropFilter(Windows w) {
  return [w](const std::vector<Array>& in) {
    Array f = Zeros(Ints(in[1]));
    ForEachProduct(w, in[0].shape, f.shape,
                   [&](int64_t i, int64_t j, int64_t k) { f[j] += in[0][i] * in[2][k]; });
    return std::vector<Array>{f};
  };
}

// As ForEachProduct, of depthwise convolutions: channel c of the image meets filters (c, m) and
// gives channel c * multiplier + m.
template <typename Visit>
void ForEachDepthwise(const Windows& w, const Index& image, const Index& filter, Visit visit) {
  const Array x = {image, {}}, f = {filter, {}};
  const Array y = {OutputShape(w, image, filter[0], filter[1], filter[2] * filter[3]), {}};
  ForEachPair(
      w, image, filter[0], filter[1],
      [&](const Index& out, const Index& in, int64_t row, int64_t column) {
        for (int64_t c = 0; c < filter[2]; ++c) {
          for (int64_t m = 0; m < filter[3]; ++m) {
            visit(x.At(With(in, c)), f.At({row, column, c, m}), y.At(With(out, c * filter[3] + m)));
          }
        }
      });
}

Reference Depthwise(Windows w) {
  return [w](const std::vector<Array>& in) {
    const Array &x = in[0], &f = in[1];
    Array y = Zeros(OutputShape(w, x.shape, f.shape[0], f.shape[1], f.shape[2] * f.shape[3]));
    ForEachDepthwise(w, x.shape, f.shape,
                     [&](int64_t i, int64_t j, int64_t k) { y[k] += x[i] * f[j]; });
    return std::vector<Array>{y};
  };
}

Reference DepthwiseBackpropInput(Windows w) {
  return [w](const std::vector<Array>& in) {
    Array x = Zeros(Ints(in[0]));
    ForEachDepthwise(w, x.shape, in[1].shape,
                     [&](int64_t i, int64_t j, int64_t k) { x[i] += in[1][j] * in[2][k]; });
    return std::vector<Array>{x};
  };
}

Reference DepthwiseBackpropFilter(Windows w) {
  return [w](const std::vector<Array>& in) {
    Array f = Zeros(Ints(in[1]));
    ForEachDepthwise(w, in[0].shape, f.shape,
                     [&](int64_t i, int64_t j, int64_t k) { f[j] += in[0][i] * in[2][k]; });
    return std::vector<Array>{f};
  };
}

// Calls visit(output offset, image offset) for all that meet in a channel.
template <typename Visit>
void ForEachPooled(const Windows& w, int64_t window, const Index& image, Visit visit) {
  const Array x = {image, {}}, y = {OutputShape(w, image, window, window, image[3]), {}};
  ForEachPair(w, image, window, window, [&](const Index& out, const Index& in, int64_t, int64_t) {
    for (int64_t c = 0; c < image[3]; ++c) visit(y.At(With(out, c)), x.At(With(in, c)));
  });
}

Reference MaxPool(Windows w, int64_t window) {
  return [=](const std::vector<Array>& in) {
    Array y = Zeros(OutputShape(w, in[0].shape, window, window, in[0].shape[3]));
    for (double& v : y.values) v = -std::numeric_limits<double>::infinity();
    ForEachPooled(w, window, in[0].shape,
                  [&](int64_t k, int64_t i) { y[k] = std::max(y[k], in[0][i]); });
    return std::vector<Array>{y};
  };
}

Array PoolCounts(const Windows& w, int64_t window, const Index& image) {
  Array counts = Zeros(OutputShape(w, image, window, window, image[3]));
  ForEachPooled(w, window, image, [&](int64_t k, int64_t) { counts[k] += 1; });
  return counts;
}

Reference AvgPool(Windows w, int64_t window) {
  return [=](const std::vector<Array>& in) {
    const Array counts = PoolCounts(w, window, in[0].shape);
    Array y = Zeros(counts.shape);
    ForEachPooled(w, window, in[0].shape,
                  [&](int64_t k, int64_t i) { y[k] += in[0][i] / counts[k]; });
    return std::vector<Array>{y};
  };
}

Reference AvgPoolGrad(Windows w, int64_t window) {
  return [=](const std::vector<Array>& in) {
    Array x = Zeros(Ints(in[0]));
    const Array counts = PoolCounts(w, window, x.shape);
    ForEachPooled(w, window, x.shape, [&](int64_t k, int64_t i) { x[i] += in[1][k] / counts[k]; });
    return std::vector<Array>{x};
  };
}

// Input 1, the forward result, must be that of input 0.
std::vector<Array> MaxPoolGrad(const Windows& w, int64_t window, const std::vector<Array>& in) {
  Array x = Zeros(in[0].shape);
  ForEachPooled(w, window, x.shape, [&](int64_t k, int64_t i) {
    if (in[0][i] == in[1][k]) x[i] += in[2][k];
  });
  return {x};
}

std::string PoolAttrs(const Windows& w, int64_t window) {
  return StrCat("ksize=[1,", window, ",", window, ",1], ", w.Attrs());
}

}  // namespace

std::vector<OpCase> ConvCases() {
  const Windows valid;
  const Windows same{{1, 1, true}, {1, 1, true}};
  const Windows strided{{2, 1, true}, {3, 1, true}};
  const Windows by_two{{2, 1, false}, {2, 1, false}};
  const Windows dilated{{1, 2, false}, {1, 1, false}};
  const Windows padded{{1, 1, false, 1, 0}, {2, 1, false, 1, 1}};
  const std::string dilations = ", dilations=[1,2,1,1]";
  constexpr double kTolerance = 1e-4;
  const std::vector<double> image = {1, 5, 2, 4, 8, 3, 7, 6, 9, 0, 11, 10, 15, 14, 13, 12};
  return {
      {"Conv2D", valid.Attrs(), "[2,4,3,2];[2,2,2,3]", Conv2D(valid), -2, 2, kTolerance},
      {"Conv2D", same.Attrs(), "[1,4,3,1];[3,3,1,2]", Conv2D(same), -2, 2, kTolerance},
      {"Conv2D", strided.Attrs(), "[1,5,4,2];[3,2,2,2]", Conv2D(strided), -2, 2, kTolerance},
      {"Conv2D", valid.Attrs(), "[1,1,1,1];[1,1,1,1]", Conv2D(valid), -2, 2, kTolerance},
      {"Conv2D", valid.Attrs(), "[0,3,3,1];[2,2,1,1]", Conv2D(valid), -2, 2, kTolerance},
      {"Conv2D", dilated.Attrs() + dilations, "[1,5,3,1];[2,2,1,2]", Conv2D(dilated), -2, 2,
       kTolerance},
      {"Conv2DBackpropInput", same.Attrs(), "(1,4,3,1);[3,3,1,2];[1,4,3,2]", BackpropInput(same),
       -2, 2, kTolerance},
      {"Conv2DBackpropInput", by_two.Attrs(), "(2,5,4,1);[2,2,1,2];[2,2,2,2]",
       BackpropInput(by_two), -2, 2, kTolerance},
      {"Conv2DBackpropFilter", strided.Attrs(), "[1,5,4,2];(3,2,2,2);[1,3,2,2]",
       BackpropFilter(strided), -2, 2, kTolerance},
      {"Conv2DBackpropFilter", valid.Attrs(), "[0,3,3,1];(2,2,1,2);[0,2,2,2]",
       BackpropFilter(valid), -2, 2, kTolerance},
      {"Conv2DBackpropFilter", dilated.Attrs() + dilations, "[1,5,3,1];(2,2,1,2);[1,3,2,2]",
       BackpropFilter(dilated), -2, 2, kTolerance},

      {"Conv2D", padded.Attrs(), "[1,3,4,2];[2,3,2,2]", Conv2D(padded), -2, 2, kTolerance},
      {"Conv2DBackpropInput", padded.Attrs(), "(1,3,4,1);[2,2,1,2];[1,3,3,2]",
       BackpropInput(padded), -2, 2, kTolerance},
      {"Conv2DBackpropFilter", padded.Attrs(), "[1,3,4,1];(2,2,1,2);[1,3,3,2]",
       BackpropFilter(padded), -2, 2, kTolerance},

      {"DepthwiseConv2dNative", valid.Attrs(), "[2,4,3,2];[2,2,2,3]", Depthwise(valid), -2, 2,
       kTolerance},
      {"DepthwiseConv2dNative", strided.Attrs(), "[1,5,4,3];[3,2,3,1]", Depthwise(strided), -2, 2,
       kTolerance},
      {"DepthwiseConv2dNative", dilated.Attrs() + dilations, "[1,5,3,1];[2,2,1,2]",
       Depthwise(dilated), -2, 2, kTolerance},
      {"DepthwiseConv2dNative", padded.Attrs(), "[1,3,4,2];[2,3,2,2]", Depthwise(padded), -2, 2,
       kTolerance},
      {"DepthwiseConv2dNative", valid.Attrs(), "[0,3,3,1];[2,2,1,1]", Depthwise(valid), -2, 2,
       kTolerance},
      {"DepthwiseConv2dNativeBackpropInput", same.Attrs(), "(2,4,3,2);[3,3,2,2];[2,4,3,4]",
       DepthwiseBackpropInput(same), -2, 2, kTolerance},
      {"DepthwiseConv2dNativeBackpropInput", by_two.Attrs(), "(2,5,4,1);[2,2,1,2];[2,2,2,2]",
       DepthwiseBackpropInput(by_two), -2, 2, kTolerance},
      {"DepthwiseConv2dNativeBackpropFilter", strided.Attrs(), "[2,5,4,2];(3,2,2,2);[2,3,2,4]",
       DepthwiseBackpropFilter(strided), -2, 2, kTolerance},
      {"DepthwiseConv2dNativeBackpropFilter", dilated.Attrs() + dilations,
       "[1,5,3,1];(2,2,1,2);[1,3,2,2]", DepthwiseBackpropFilter(dilated), -2, 2, kTolerance},

      {"MaxPool", PoolAttrs(padded, 2), "[1,3,4,2]", MaxPool(padded, 2)},
      {"MaxPool", PoolAttrs(by_two, 2), "[2,4,5,2]", MaxPool(by_two, 2)},
      {"MaxPool", PoolAttrs(same, 3), "[1,3,3,1]", MaxPool(same, 3)},
      {"MaxPool", PoolAttrs(strided, 2), "[1,3,4,2]", MaxPool(strided, 2), -5, -1},
      {"MaxPool", PoolAttrs(by_two, 2), "[0,4,4,2]", MaxPool(by_two, 2)},
      {"MaxPoolGrad",
       PoolAttrs(by_two, 2),
       "[1,4,4,1];[1,2,2,1];[1,2,2,1]",
       [by_two](const std::vector<Array>& in) { return MaxPoolGrad(by_two, 2, in); },
       -2,
       2,
       1e-5,
       {image, {8, 7, 15, 13}}},
      {"AvgPool", PoolAttrs(by_two, 2), "[2,4,5,2]", AvgPool(by_two, 2)},
      {"AvgPool", PoolAttrs(same, 3), "[1,3,3,2]", AvgPool(same, 3)},
      {"AvgPool", PoolAttrs(strided, 3), "[1,4,5,1]", AvgPool(strided, 3)},
      {"AvgPoolGrad", PoolAttrs(same, 3), "(1,3,3,2);[1,3,3,2]", AvgPoolGrad(same, 3)},
      {"AvgPoolGrad", PoolAttrs(by_two, 2), "(0,4,4,1);[0,2,2,1]", AvgPoolGrad(by_two, 2)},
  };
}

}  // namespace millrace::testing
