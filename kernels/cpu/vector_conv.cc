#include "kernels/cpu/vector_conv.h"

#include <algorithm>

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/vector_conv.cc"
#include "hwy/foreach_target.h"  // compiles this file again for each target
//
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace millrace::vector {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
constexpr int64_t kLanes = hn::MaxLanes(hn::ScalableTag<T>());

// Output pixels (or taps, of a gradient) in one register tile, at most: 14 rows of 2 vectors fill
// 32 registers, and 14 divides the usual extents of images; 6 rows fill 16.
constexpr int kMostRows = HWY_TARGET == HWY_AVX3 ? 14 : 6;

// What a tile sums over: three nested loops, the steps of both operands in each.
struct Nest {
  int64_t count[3];
  int64_t step_a[3];
  int64_t step_b[3];
};

// c[g][r][columns] (+)= the sum over the nest of a[g * group_step + r * row_step] * b[columns].
template <int kGroups, int kRows, int kVectors, typename T>
HWY_INLINE void Tile(const Nest& nest, const T* a, int64_t group_step, int64_t row_step, const T* b,
                     bool accumulate, int64_t width, T* c, int64_t c_group_step,
                     int64_t c_row_step) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  V sum[kGroups][kRows][kVectors];
  for (int g = 0; g < kGroups; ++g) {
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kVectors; ++v) sum[g][r][v] = hn::Zero(d);
    }
  }
  // Three rows to a base pointer: x86 reaches 0, 1 and 2 steps from it without arithmetic.
  constexpr int kBases = (kRows + 2) / 3;
  for (int64_t i0 = 0; i0 < nest.count[0]; ++i0) {
    for (int64_t i1 = 0; i1 < nest.count[1]; ++i1) {
      const T* start = a + i0 * nest.step_a[0] + i1 * nest.step_a[1];
      const T* base[kGroups][kBases];
      for (int g = 0; g < kGroups; ++g) {
        for (int k = 0; k < kBases; ++k) base[g][k] = start + g * group_step + 3 * k * row_step;
      }
      const T* from_b = b + i0 * nest.step_b[0] + i1 * nest.step_b[1];
      const int64_t step_a = nest.step_a[2];
      const int64_t step_b = nest.step_b[2];
      for (int64_t i2 = nest.count[2]; i2 > 0; --i2) {
        V row[kVectors];
        for (int v = 0; v < kVectors; ++v) row[v] = hn::LoadU(d, from_b + v * kLanes<T>);
        for (int g = 0; g < kGroups; ++g) {
          for (int r = 0; r < kRows; ++r) {
            const V factor = hn::Set(d, base[g][r / 3][(r % 3) * row_step]);
            for (int v = 0; v < kVectors; ++v) {
              sum[g][r][v] = hn::MulAdd(factor, row[v], sum[g][r][v]);
            }
          }
        }
        for (int g = 0; g < kGroups; ++g) {
          for (int k = 0; k < kBases; ++k) base[g][k] += step_a;
        }
        from_b += step_b;
      }
    }
  }
  for (int g = 0; g < kGroups; ++g) {
    for (int r = 0; r < kRows; ++r) {
      T* to = c + g * c_group_step + r * c_row_step;
      if (width == kVectors * kLanes<T>) {
        for (int v = 0; v < kVectors; ++v) {
          T* at = to + v * kLanes<T>;
          hn::StoreU(accumulate ? hn::Add(hn::LoadU(d, at), sum[g][r][v]) : sum[g][r][v], d, at);
        }
      } else {
        HWY_ALIGN T lanes[kVectors * kLanes<T>];
        for (int v = 0; v < kVectors; ++v) hn::Store(sum[g][r][v], d, lanes + v * kLanes<T>);
        for (int64_t j = 0; j < width; ++j) to[j] = accumulate ? to[j] + lanes[j] : lanes[j];
      }
    }
  }
}

// The height of the next tile, of `rest` rows to do: as equal as can be, of those that there are.
inline int NextRows(int64_t rest) {
  const int64_t tiles = (rest + kMostRows - 1) / kMostRows;
  const int64_t rows = (rest + tiles - 1) / tiles;
  if (rows <= 8 || rows % 2 == 0) return static_cast<int>(rows);
  return static_cast<int>(rows < rest ? rows + 1 : (rows + 1) / 2);
}

template <int kVectors, typename T>
HWY_NOINLINE void TileRows(int rows, const Nest& nest, const T* a, int64_t row_step, const T* b,
                           bool accumulate, int64_t width, T* c, int64_t c_row_step) {
  const auto run = [&]<int kRows>() {
    Tile<1, kRows, kVectors>(nest, a, 0, row_step, b, accumulate, width, c, 0, c_row_step);
  };
  switch (rows) {
    case 1:
      return run.template operator()<1>();
    case 2:
      return run.template operator()<2>();
    case 3:
      return run.template operator()<3>();
    case 4:
      return run.template operator()<4>();
    case 5:
      return run.template operator()<5>();
    case 6:
      return run.template operator()<6>();
    default:
      break;
  }
  if constexpr (kMostRows > 6) {
    switch (rows) {
      case 7:
        return run.template operator()<7>();
      case 8:
        return run.template operator()<8>();
      case 10:
        return run.template operator()<10>();
      case 12:
        return run.template operator()<12>();
      default:
        return run.template operator()<14>();
    }
  }
}

// Output channels are taken two vectors at a time, then one if no more are left.
template <typename T>
int64_t PanelWidth(int64_t rest) {
  return rest > kLanes<T> ? 2 * kLanes<T> : kLanes<T>;
}

// The filter as panels of PanelWidth output channels, padded with zeros.
template <typename T>
void PackFilterLoop(const DirectConv& c, const FilterLayout<T>& filter, T* packed) {
  const int64_t taps = c.taps_height * c.taps_width;
  for (int64_t k = 0; k < c.out_channels;) {
    const int64_t width = PanelWidth<T>(c.out_channels - k);
    const int64_t filled = std::min(width, c.out_channels - k);
    for (int64_t t = 0; t < taps; ++t) {
      for (int64_t i = 0; i < c.channels; ++i) {
        const T* from =
            filter.first + t * filter.tap_step + i * filter.channel_step + k * filter.out_step;
        if (filter.out_step == 1) {
          std::copy_n(from, filled, packed);
        } else {
          for (int64_t j = 0; j < filled; ++j) packed[j] = from[j * filter.out_step];
        }
        std::fill_n(packed + filled, width - filled, T(0));
        packed += width;
      }
    }
    k += width;
  }
}

template <typename T>
void ForwardLoop(const DirectConv& c, const T* image, const T* packed, T* out) {
  const int64_t taps = c.taps_height * c.taps_width * c.channels;
  const bool merged = c.tap_step == c.channels;  // the taps of a row are contiguous
  // A panel of the filter stays in the cache while all images pass by.
  for (int64_t k = 0; k < c.out_channels;) {
    const int64_t panel = PanelWidth<T>(c.out_channels - k);
    const int64_t width = std::min(panel, c.out_channels - k);
    const Nest nest = {
        {c.taps_height, merged ? 1 : c.taps_width, merged ? c.taps_width * c.channels : c.channels},
        {c.tap_row_step, c.tap_step, 1},
        {c.taps_width * c.channels * panel, c.channels * panel, panel}};
    for (int64_t row = 0; row < c.images * c.out_height; ++row) {
      const T* from_row =
          image + row / c.out_height * c.image_step + row % c.out_height * c.row_step;
      T* to_row = out + row * c.out_width * c.out_step + k;
      for (int64_t x = 0; x < c.out_width;) {
        const int rows = NextRows(c.out_width - x);
        const T* from = from_row + x * c.pixel_step;
        T* to = to_row + x * c.out_step;
        if (panel > kLanes<T>) {
          TileRows<2>(rows, nest, from, c.pixel_step, packed, false, width, to, c.out_step);
        } else {
          TileRows<1>(rows, nest, from, c.pixel_step, packed, false, width, to, c.out_step);
        }
        x += rows;
      }
    }
    packed += taps * panel;
    k += panel;
  }
}

template <typename T>
void FilterGradientLoop(const DirectConv& c, const T* image, const T* d_out, T* d_filter,
                        T* workspace) {
  const int64_t pixels = c.images * c.out_height * c.out_width;
  const bool merged = c.tap_step == c.channels;
  const int64_t runs = merged ? 1 : c.taps_width;
  const int64_t run = merged ? c.taps_width * c.channels : c.channels;
  for (int64_t k = 0; k < c.out_channels;) {
    const int64_t panel = PanelWidth<T>(c.out_channels - k);
    const int64_t width = std::min(panel, c.out_channels - k);
    // A vector may not read beyond the last pixel, so channels that fill no vectors are copied.
    const bool packed = width < panel;
    if (packed) {
      for (int64_t i = 0; i < pixels; ++i) {
        std::copy_n(d_out + i * c.out_step + k, width, workspace + i * panel);
        std::fill_n(workspace + i * panel + width, panel - width, T(0));
      }
    }
    const T* b = packed ? workspace : d_out + k;
    const int64_t step = packed ? panel : c.out_step;
    const Nest nest = {{c.images, c.out_height, c.out_width},
                       {c.image_step, c.row_step, c.pixel_step},
                       {c.out_height * c.out_width * step, c.out_width * step, step}};
    const auto to_row = [&](int64_t y) {
      return d_filter + y * c.taps_width * c.channels * c.out_step + k;
    };
    // One input channel: a row of taps is too short to fill the registers, a square of them does.
    if (panel == kLanes<T> && merged && run == 5 && c.taps_height == 5 && kMostRows > 6) {
      Tile<5, 5, 1>(nest, image, c.tap_row_step, 1, b, true, width, to_row(0), 5 * c.out_step,
                    c.out_step);
    } else if (panel == kLanes<T> && merged && run == 3 && c.taps_height == 3) {
      Tile<3, 3, 1>(nest, image, c.tap_row_step, 1, b, true, width, to_row(0), 3 * c.out_step,
                    c.out_step);
    } else {
      for (int64_t y = 0; y < c.taps_height; ++y) {
        for (int64_t x = 0; x < runs; ++x) {
          for (int64_t r = 0; r < run;) {
            const int rows = NextRows(run - r);
            const T* a = image + y * c.tap_row_step + x * c.tap_step + r;
            T* to = to_row(y) + (x * c.channels + r) * c.out_step;
            if (panel > kLanes<T>) {
              TileRows<2>(rows, nest, a, 1, b, true, width, to, c.out_step);
            } else {
              TileRows<1>(rows, nest, a, 1, b, true, width, to, c.out_step);
            }
            r += rows;
          }
        }
      }
    }
    k += panel;
  }
}

void PackFloat(const DirectConv& c, const FilterLayout<float>& filter, float* packed) {
  PackFilterLoop(c, filter, packed);
}
void PackDouble(const DirectConv& c, const FilterLayout<double>& filter, double* packed) {
  PackFilterLoop(c, filter, packed);
}
void ForwardFloat(const DirectConv& c, const float* image, const float* packed, float* out) {
  ForwardLoop(c, image, packed, out);
}
void ForwardDouble(const DirectConv& c, const double* image, const double* packed, double* out) {
  ForwardLoop(c, image, packed, out);
}
void GradientFloat(const DirectConv& c, const float* image, const float* d_out, float* d_filter,
                   float* workspace) {
  FilterGradientLoop(c, image, d_out, d_filter, workspace);
}
void GradientDouble(const DirectConv& c, const double* image, const double* d_out, double* d_filter,
                    double* workspace) {
  FilterGradientLoop(c, image, d_out, d_filter, workspace);
}

}  // namespace HWY_NAMESPACE
}  // namespace millrace::vector
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace::vector {

HWY_EXPORT(PackFloat);
HWY_EXPORT(PackDouble);
HWY_EXPORT(ForwardFloat);
HWY_EXPORT(ForwardDouble);
HWY_EXPORT(GradientFloat);
HWY_EXPORT(GradientDouble);

int64_t PackedFilterSize(int64_t taps, int64_t channels, int64_t out_channels) {
  return taps * channels * ((out_channels + kChannelBlock - 1) / kChannelBlock * kChannelBlock);
}
int64_t FilterGradientWorkspace(const DirectConv& c) {
  // One panel, of two vectors at most.
  return c.images * c.out_height * c.out_width * kChannelBlock;
}

void PackFilter(const DirectConv& c, const FilterLayout<float>& filter, float* packed) {
  HWY_DYNAMIC_DISPATCH(PackFloat)(c, filter, packed);
}
void PackFilter(const DirectConv& c, const FilterLayout<double>& filter, double* packed) {
  HWY_DYNAMIC_DISPATCH(PackDouble)(c, filter, packed);
}
void Forward(const DirectConv& c, const float* image, const float* packed, float* out) {
  HWY_DYNAMIC_DISPATCH(ForwardFloat)(c, image, packed, out);
}
void Forward(const DirectConv& c, const double* image, const double* packed, double* out) {
  HWY_DYNAMIC_DISPATCH(ForwardDouble)(c, image, packed, out);
}
void FilterGradient(const DirectConv& c, const float* image, const float* d_out, float* d_filter,
                    float* workspace) {
  HWY_DYNAMIC_DISPATCH(GradientFloat)(c, image, d_out, d_filter, workspace);
}
void FilterGradient(const DirectConv& c, const double* image, const double* d_out, double* d_filter,
                    double* workspace) {
  HWY_DYNAMIC_DISPATCH(GradientDouble)(c, image, d_out, d_filter, workspace);
}

}  // namespace millrace::vector
#endif  // HWY_ONCE
