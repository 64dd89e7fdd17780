#include "kernels/cpu/vector_gemm.h"

#include <algorithm>

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/vector_gemm.cc"
#include "hwy/foreach_target.h"  // compiles this file again for each target
//
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace millrace::vector {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Rows of the register tile: as many as leave registers for b. 32 registers hold 24 + 3, 16 hold
// 12 + 3.
constexpr int kTileRows = HWY_TARGET == HWY_AVX3 ? 12 : 6;

// a[rows, kc] as panels of kTileRows rows, column after column, the last one filled with zeros.
template <typename T>
void PackA(Matrix<T> a, int64_t rows, int64_t kc, T* packed) {
  for (int64_t i = 0; i < rows; i += kTileRows) {
    const int64_t height = std::min<int64_t>(kTileRows, rows - i);
    if (height == kTileRows && a.row_stride == 1) {
      for (int64_t p = 0; p < kc; ++p) {
        const T* column = &a.at(i, p);
        for (int r = 0; r < kTileRows; ++r) packed[p * kTileRows + r] = column[r];
      }
    } else {
      for (int64_t r = 0; r < height; ++r) {
        const T* row = &a.at(i + r, 0);
        for (int64_t p = 0; p < kc; ++p) packed[p * kTileRows + r] = row[p * a.column_stride];
      }
      for (int64_t r = height; r < kTileRows; ++r) {
        for (int64_t p = 0; p < kc; ++p) packed[p * kTileRows + r] = T(0);
      }
    }
    packed += kc * kTileRows;
  }
}

// b[kc, columns] as panels of `width` columns, row after row.
template <typename T>
void PackB(Matrix<T> b, int64_t kc, int64_t columns, int64_t width, T* packed) {
  for (int64_t j = 0; j < columns; j += width) {
    const int64_t filled = std::min(width, columns - j);
    if (b.column_stride == 1) {
      for (int64_t p = 0; p < kc; ++p) {
        std::copy_n(&b.at(p, j), filled, packed + p * width);
        std::fill(packed + p * width + filled, packed + (p + 1) * width, T(0));
      }
    } else {
      for (int64_t q = 0; q < filled; ++q) {
        const T* column = &b.at(0, j + q);
        for (int64_t p = 0; p < kc; ++p) packed[p * width + q] = column[p * b.row_stride];
      }
      for (int64_t q = filled; q < width; ++q) {
        for (int64_t p = 0; p < kc; ++p) packed[p * width + q] = T(0);
      }
    }
    packed += kc * width;
  }
}

// One register tile: c[kTileRows, kVectors * lanes] (+)= a panel * b panel; `height` and `width` of
// it are stored.
template <int kVectors, typename T>
HWY_INLINE void Tile(const T* a, const T* b, int64_t kc, bool accumulate, int64_t height,
                     int64_t width, T* c, int64_t ldc) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr int64_t kLanes = hn::MaxLanes(d);
  V sum[kTileRows][kVectors];
  for (int r = 0; r < kTileRows; ++r) {
    for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(d);
  }
  for (int64_t p = 0; p < kc; ++p) {
    V row[kVectors];
    for (int v = 0; v < kVectors; ++v) row[v] = hn::LoadU(d, b + v * kLanes);
    for (int r = 0; r < kTileRows; ++r) {
      const V factor = hn::Set(d, a[r]);
      for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::MulAdd(factor, row[v], sum[r][v]);
    }
    a += kTileRows;
    b += kVectors * kLanes;
  }
  if (height == kTileRows && width == kVectors * kLanes) {
    for (int r = 0; r < kTileRows; ++r) {
      for (int v = 0; v < kVectors; ++v) {
        T* to = c + r * ldc + v * kLanes;
        hn::StoreU(accumulate ? hn::Add(hn::LoadU(d, to), sum[r][v]) : sum[r][v], d, to);
      }
    }
    return;
  }
  HWY_ALIGN T tile[kTileRows][kVectors * kLanes];
  for (int r = 0; r < kTileRows; ++r) {
    for (int v = 0; v < kVectors; ++v) hn::Store(sum[r][v], d, tile[r] + v * kLanes);
  }
  for (int64_t r = 0; r < height; ++r) {
    T* to = c + r * ldc;
    for (int64_t j = 0; j < width; ++j) to[j] = accumulate ? to[j] + tile[r][j] : tile[r][j];
  }
}

template <int kVectors, typename T>
void GemmLoop(int64_t m, int64_t n, int64_t k, Matrix<T> a, Matrix<T> b, bool accumulate, T* c,
              int64_t ldc, T* workspace) {
  constexpr int64_t kWidth = kVectors * static_cast<int64_t>(hn::MaxLanes(hn::ScalableTag<T>()));
  T* packed_a = workspace;
  T* packed_b = workspace + (std::min(m, GemmBlocks::kMc) + GemmBlocks::kMaxTile) *
                                std::min(k, GemmBlocks::kKc);
  for (int64_t j = 0; j < n; j += GemmBlocks::kNc) {
    const int64_t columns = std::min(GemmBlocks::kNc, n - j);
    for (int64_t p = 0; p < k; p += GemmBlocks::kKc) {
      const int64_t kc = std::min(GemmBlocks::kKc, k - p);
      const bool add = accumulate || p > 0;
      PackB(Matrix<T>{&b.at(p, j), b.row_stride, b.column_stride}, kc, columns, kWidth, packed_b);
      for (int64_t i = 0; i < m; i += GemmBlocks::kMc) {
        const int64_t rows = std::min(GemmBlocks::kMc, m - i);
        PackA(Matrix<T>{&a.at(i, p), a.row_stride, a.column_stride}, rows, kc, packed_a);
        for (int64_t q = 0; q < columns; q += kWidth) {
          for (int64_t r = 0; r < rows; r += kTileRows) {
            Tile<kVectors>(packed_a + r * kc, packed_b + q * kc, kc, add,
                           std::min<int64_t>(kTileRows, rows - r), std::min(kWidth, columns - q),
                           c + (i + r) * ldc + j + q, ldc);
          }
        }
      }
    }
  }
}

template <typename T>
void GemmAny(int64_t m, int64_t n, int64_t k, Matrix<T> a, Matrix<T> b, bool accumulate, T* c,
             int64_t ldc, T* workspace) {
  if (k == 0 && !accumulate) {
    for (int64_t i = 0; i < m; ++i) std::fill_n(c + i * ldc, n, T(0));
  } else if (n <= static_cast<int64_t>(hn::MaxLanes(hn::ScalableTag<T>()))) {
    GemmLoop<1>(m, n, k, a, b, accumulate, c, ldc, workspace);
  } else {
    GemmLoop<2>(m, n, k, a, b, accumulate, c, ldc, workspace);
  }
}

void GemmFloat(int64_t m, int64_t n, int64_t k, Matrix<float> a, Matrix<float> b, bool accumulate,
               float* c, int64_t ldc, float* workspace) {
  GemmAny(m, n, k, a, b, accumulate, c, ldc, workspace);
}
void GemmDouble(int64_t m, int64_t n, int64_t k, Matrix<double> a, Matrix<double> b,
                bool accumulate, double* c, int64_t ldc, double* workspace) {
  GemmAny(m, n, k, a, b, accumulate, c, ldc, workspace);
}

}  // namespace HWY_NAMESPACE
}  // namespace millrace::vector
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace::vector {

HWY_EXPORT(GemmFloat);
HWY_EXPORT(GemmDouble);

int64_t GemmWorkspace(int64_t m, int64_t n, int64_t k) {
  return (std::min(m, GemmBlocks::kMc) + std::min(n, GemmBlocks::kNc) + 2 * GemmBlocks::kMaxTile) *
         std::min(k, GemmBlocks::kKc);
}

void Gemm(int64_t m, int64_t n, int64_t k, Matrix<float> a, Matrix<float> b, bool accumulate,
          float* c, int64_t ldc, float* workspace) {
  HWY_DYNAMIC_DISPATCH(GemmFloat)(m, n, k, a, b, accumulate, c, ldc, workspace);
}
void Gemm(int64_t m, int64_t n, int64_t k, Matrix<double> a, Matrix<double> b, bool accumulate,
          double* c, int64_t ldc, double* workspace) {
  HWY_DYNAMIC_DISPATCH(GemmDouble)(m, n, k, a, b, accumulate, c, ldc, workspace);
}

}  // namespace millrace::vector
#endif  // HWY_ONCE
