#include "kernels/cpu/vector_reduce.h"

#include <algorithm>
#include <cmath>
#include <limits>

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/vector_reduce.cc"
#include "hwy/foreach_target.h"  // compiles this file again for each target
//
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace millrace::vector {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

struct Plain {
  template <class V>
  V operator()(V x, V sum) const {
    return hn::Add(sum, x);
  }
};
struct Squared {
  template <class V>
  V operator()(V x, V sum) const {
    return hn::MulAdd(x, x, sum);
  }
};

template <class D, typename T>
HWY_INLINE hn::Vec<D> LoadPartial(D d, const T* x, int64_t n) {
  return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(n)), d, x);
}

// Up to kBlock elements: four running vectors.
constexpr int64_t kBlock = 1024;
template <class Term, typename T>
T SumBlock(const T* x, int64_t n) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const Term term;
  auto sum0 = hn::Zero(d), sum1 = sum0, sum2 = sum0, sum3 = sum0;
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    sum0 = term(hn::LoadU(d, x + i), sum0);
    sum1 = term(hn::LoadU(d, x + i + lanes), sum1);
    sum2 = term(hn::LoadU(d, x + i + 2 * lanes), sum2);
    sum3 = term(hn::LoadU(d, x + i + 3 * lanes), sum3);
  }
  for (; i + lanes <= n; i += lanes) sum0 = term(hn::LoadU(d, x + i), sum0);
  if (i < n) sum1 = term(LoadPartial(d, x + i, n - i), sum1);
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3))));
}

// Halves at multiples of kBlock; the depth is the logarithm of n.
template <class Term, typename T>
T SumTree(const T* x, int64_t n) {
  if (n <= kBlock) return SumBlock<Term>(x, n);
  const int64_t half = (n / kBlock + 1) / 2 * kBlock;
  return SumTree<Term>(x, half) + SumTree<Term>(x + half, n - half);
}

template <typename T>
T MaxLoop(const T* x, int64_t n) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  T largest = -std::numeric_limits<T>::infinity();
  bool nan = false;
  int64_t i = 0;
  if (n >= lanes) {
    auto best = hn::LoadU(d, x);
    auto unordered = hn::IsNaN(best);
    for (i = lanes; i + lanes <= n; i += lanes) {
      const auto v = hn::LoadU(d, x + i);
      unordered = hn::Or(unordered, hn::IsNaN(v));
      best = hn::Max(best, v);
    }
    largest = hn::GetLane(hn::MaxOfLanes(d, best));
    nan = !hn::AllFalse(d, unordered);
  }
  for (; i < n; ++i) {
    nan |= std::isnan(x[i]);
    largest = std::max(largest, x[i]);
  }
  return nan ? std::numeric_limits<T>::quiet_NaN() : largest;
}

// Columns [0, kVectors * lanes) of at most kRows rows in registers, added to `sums`.
constexpr int64_t kRows = 256;
template <int kVectors, typename T>
HWY_INLINE void SumColumns(const T* x, int64_t rows, int64_t stride, T* sums) {
  const hn::ScalableTag<T> d;
  constexpr int64_t kLanes = hn::MaxLanes(d);
  hn::Vec<decltype(d)> sum[kVectors];
  for (int v = 0; v < kVectors; ++v) sum[v] = hn::Zero(d);
  for (int64_t i = 0; i < rows; ++i) {
    for (int v = 0; v < kVectors; ++v) {
      sum[v] = hn::Add(sum[v], hn::LoadU(d, x + i * stride + v * kLanes));
    }
  }
  for (int v = 0; v < kVectors; ++v) {
    hn::StoreU(hn::Add(hn::LoadU(d, sums + v * kLanes), sum[v]), d, sums + v * kLanes);
  }
}

template <typename T>
void SumRowsWide(const T* x, int64_t rows, int64_t stride, int64_t width, T* sums) {
  constexpr int64_t kLanes = hn::MaxLanes(hn::ScalableTag<T>());
  std::fill_n(sums, width, T(0));
  for (int64_t begin = 0; begin < rows; begin += kRows) {
    const int64_t count = std::min(kRows, rows - begin);
    const T* from = x + begin * stride;
    int64_t j = 0;
    for (; j + 4 * kLanes <= width; j += 4 * kLanes) {
      SumColumns<4>(from + j, count, stride, sums + j);
    }
    for (; j + kLanes <= width; j += kLanes) SumColumns<1>(from + j, count, stride, sums + j);
    for (; j < width; ++j) {
      T sum = 0;
      for (int64_t i = 0; i < count; ++i) sum += from[i * stride + j];
      sums[j] += sum;
    }
  }
}

template <typename T>
void SumRowsAny(const T* x, int64_t rows, int64_t stride, int64_t width, T* sums) {
  // Several narrow contiguous rows make one that fills vectors.
  constexpr int64_t kWide = 64;
  const int64_t group = width > 0 ? kWide / width : 0;
  if (stride != width || group < 2 || rows < 2 * group) {
    SumRowsWide(x, rows, stride, width, sums);
    return;
  }
  T grouped[kWide];
  const int64_t groups = rows / group;
  SumRowsWide(x, groups, group * width, group * width, grouped);
  for (int64_t j = 0; j < width; ++j) {
    T sum = 0;
    for (int64_t g = 0; g < group; ++g) sum += grouped[g * width + j];
    for (int64_t i = groups * group; i < rows; ++i) sum += x[i * width + j];
    sums[j] = sum;
  }
}

// Highway's exp below its smallest argument is 0 already; the argument here is at most 0, unless
// it is NaN or the shift was no maximum.
template <typename T>
T ExpShiftedLoop(const T* x, T shift, T* out, int64_t n) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const V vshift = hn::Set(d, shift);
  const V lowest = hn::Set(d, sizeof(T) == 4 ? T(-110) : T(-760));
  const V highest = hn::Set(d, sizeof(T) == 4 ? T(88) : T(700));
  const auto exp = [&](V v) {
    const V difference = hn::Sub(v, vshift);
    const V y = hn::Exp(d, hn::Max(hn::Min(difference, highest), lowest));
    return hn::IfThenElse(hn::IsNaN(difference), difference, y);
  };
  V sum0 = hn::Zero(d), sum1 = sum0;
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const V y0 = exp(hn::LoadU(d, x + i));
    const V y1 = exp(hn::LoadU(d, x + i + lanes));
    sum0 = hn::Add(sum0, y0);
    sum1 = hn::Add(sum1, y1);
    if (out != nullptr) {
      hn::StoreU(y0, d, out + i);
      hn::StoreU(y1, d, out + i + lanes);
    }
  }
  T sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(sum0, sum1)));
  for (; i < n; i += lanes) {
    const int64_t count = std::min(lanes, n - i);
    HWY_ALIGN T rest[hn::MaxLanes(d)];
    hn::Store(exp(LoadPartial(d, x + i, count)), d, rest);
    for (int64_t j = 0; j < count; ++j) sum += rest[j];
    if (out != nullptr) std::copy_n(rest, count, out + i);
  }
  return sum;
}

float SumFloat(const float* x, int64_t n) { return SumTree<Plain>(x, n); }
double SumDouble(const double* x, int64_t n) { return SumTree<Plain>(x, n); }
float SumOfSquaresFloat(const float* x, int64_t n) { return SumTree<Squared>(x, n); }
double SumOfSquaresDouble(const double* x, int64_t n) { return SumTree<Squared>(x, n); }
float MaxFloat(const float* x, int64_t n) { return MaxLoop(x, n); }
double MaxDouble(const double* x, int64_t n) { return MaxLoop(x, n); }
void SumRowsFloat(const float* x, int64_t rows, int64_t stride, int64_t width, float* sums) {
  SumRowsAny(x, rows, stride, width, sums);
}
void SumRowsDouble(const double* x, int64_t rows, int64_t stride, int64_t width, double* sums) {
  SumRowsAny(x, rows, stride, width, sums);
}
float ExpShiftedFloat(const float* x, float shift, float* out, int64_t n) {
  return ExpShiftedLoop(x, shift, out, n);
}

}  // namespace HWY_NAMESPACE
}  // namespace millrace::vector
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace::vector {

HWY_EXPORT(SumFloat);
HWY_EXPORT(SumDouble);
HWY_EXPORT(SumOfSquaresFloat);
HWY_EXPORT(SumOfSquaresDouble);
HWY_EXPORT(MaxFloat);
HWY_EXPORT(MaxDouble);
HWY_EXPORT(SumRowsFloat);
HWY_EXPORT(SumRowsDouble);
HWY_EXPORT(ExpShiftedFloat);

float Sum(const float* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(SumFloat)(x, n); }
double Sum(const double* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(SumDouble)(x, n); }
float SumOfSquares(const float* x, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(SumOfSquaresFloat)(x, n);
}
double SumOfSquares(const double* x, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(SumOfSquaresDouble)(x, n);
}
float Max(const float* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(MaxFloat)(x, n); }
double Max(const double* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(MaxDouble)(x, n); }
void SumRows(const float* x, int64_t rows, int64_t stride, int64_t width, float* sums) {
  HWY_DYNAMIC_DISPATCH(SumRowsFloat)(x, rows, stride, width, sums);
}
void SumRows(const double* x, int64_t rows, int64_t stride, int64_t width, double* sums) {
  HWY_DYNAMIC_DISPATCH(SumRowsDouble)(x, rows, stride, width, sums);
}
float ExpShifted(const float* x, float shift, float* out, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(ExpShiftedFloat)(x, shift, out, n);
}
// The C library's exp: doubles are what fp32 is compared with.
double ExpShifted(const double* x, double shift, double* out, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double y = std::exp(x[i] - shift);
    if (out != nullptr) out[i] = y;
    sum += y;
  }
  return sum;
}

}  // namespace millrace::vector
#endif  // HWY_ONCE
