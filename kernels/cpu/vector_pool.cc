#include "kernels/cpu/vector_pool.h"

#include <limits>

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/vector_pool.cc"
#include "hwy/foreach_target.h"  // compiles this file again for each target
//
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace millrace::vector {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Calls body(first channel, load, store) for the channels, a vector at a time.
template <typename T, class Body>
HWY_INLINE void ForChannels(int64_t channels, Body body) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t c = 0;
  for (; c + lanes <= channels; c += lanes) {
    body(
        c, [d](const T* p) { return hn::LoadU(d, p); }, [d](V v, T* p) { hn::StoreU(v, d, p); });
  }
  if (c < channels) {
    const auto mask = hn::FirstN(d, static_cast<size_t>(channels - c));
    body(
        c, [d, mask](const T* p) { return hn::MaskedLoad(mask, d, p); },
        [d, mask](V v, T* p) { hn::BlendedStore(v, mask, d, p); });
  }
}

template <typename T>
void MaxLoop(const PoolWindows& w, const T* first, T* out) {
  const hn::ScalableTag<T> d;
  ForChannels<T>(w.channels, [&](int64_t c, auto load, auto store) HWY_ATTR {
    for (int64_t i = 0; i < w.count; ++i) {
      auto best = hn::Set(d, -std::numeric_limits<T>::infinity());
      for (int64_t y = 0; y < w.rows; ++y) {
        const T* at = first + i * w.step + y * w.row_step + c;
        for (int64_t x = 0; x < w.columns; ++x, at += w.channels) {
          const auto v = load(at);
          best = hn::IfThenElse(hn::Or(hn::Gt(v, best), hn::IsNaN(v)), v, best);
        }
      }
      store(best, out + i * w.channels + c);
    }
  });
}

template <typename T>
void GradientLoop(const PoolWindows& w, const T* first, const T* out, const T* d_out, T* d_first) {
  ForChannels<T>(w.channels, [&](int64_t c, auto load, auto store) HWY_ATTR {
    for (int64_t i = 0; i < w.count; ++i) {
      const auto largest = load(out + i * w.channels + c);
      auto left = load(d_out + i * w.channels + c);  // what has found no element yet
      for (int64_t y = 0; y < w.rows; ++y) {
        int64_t at = i * w.step + y * w.row_step + c;
        for (int64_t x = 0; x < w.columns; ++x, at += w.channels) {
          const auto v = load(first + at);
          const auto hit = hn::Or(hn::Eq(v, largest), hn::IsNaN(v));
          store(hn::Add(load(d_first + at), hn::IfThenElseZero(hit, left)), d_first + at);
          left = hn::IfThenZeroElse(hit, left);
        }
      }
    }
  });
}

void MaxFloat(const PoolWindows& w, const float* first, float* out) { MaxLoop(w, first, out); }
void MaxDouble(const PoolWindows& w, const double* first, double* out) { MaxLoop(w, first, out); }
void GradientFloat(const PoolWindows& w, const float* first, const float* out, const float* d_out,
                   float* d_first) {
  GradientLoop(w, first, out, d_out, d_first);
}
void GradientDouble(const PoolWindows& w, const double* first, const double* out,
                    const double* d_out, double* d_first) {
  GradientLoop(w, first, out, d_out, d_first);
}

}  // namespace HWY_NAMESPACE
}  // namespace millrace::vector
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace::vector {

HWY_EXPORT(MaxFloat);
HWY_EXPORT(MaxDouble);
HWY_EXPORT(GradientFloat);
HWY_EXPORT(GradientDouble);

void MaxWindow(const PoolWindows& w, const float* first, float* out) {
  HWY_DYNAMIC_DISPATCH(MaxFloat)(w, first, out);
}
void MaxWindow(const PoolWindows& w, const double* first, double* out) {
  HWY_DYNAMIC_DISPATCH(MaxDouble)(w, first, out);
}
void MaxWindowGradient(const PoolWindows& w, const float* first, const float* out,
                       const float* d_out, float* d_first) {
  HWY_DYNAMIC_DISPATCH(GradientFloat)(w, first, out, d_out, d_first);
}
void MaxWindowGradient(const PoolWindows& w, const double* first, const double* out,
                       const double* d_out, double* d_first) {
  HWY_DYNAMIC_DISPATCH(GradientDouble)(w, first, out, d_out, d_first);
}

}  // namespace millrace::vector
#endif  // HWY_ONCE
