#include "kernels/cpu/vector_update.h"

#include <algorithm>

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/vector_update.cc"
#include "hwy/foreach_target.h"  // compiles this file again for each target
//
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace millrace::vector {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Calls body(load/store position) for whole vectors; the rest is moved through one on the stack by
// `step`, which must treat all lanes alike.
template <int kArrays, typename T, class Step>
HWY_INLINE void ForVectors(const Step& step, T* const (&arrays)[kArrays], int64_t n) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    T* at[kArrays];
    for (int k = 0; k < kArrays; ++k) at[k] = arrays[k] + i;
    step(at);
  }
  if (i == n) return;
  HWY_ALIGN T rest[kArrays][hn::MaxLanes(d)] = {};
  T* at[kArrays];
  for (int k = 0; k < kArrays; ++k) {
    std::copy_n(arrays[k] + i, n - i, rest[k]);
    at[k] = rest[k];
  }
  step(at);
  // Array 0 is only read.
  for (int k = 1; k < kArrays; ++k) std::copy_n(rest[k], n - i, arrays[k] + i);
}

template <typename T>
void AddScaledLoop(T factor, const T* x, T* y, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto f = hn::Set(d, factor);
  T* const arrays[2] = {const_cast<T*>(x), y};
  ForVectors<2>(
      [&](T* const(&at)[2]) {
        hn::StoreU(hn::MulAdd(f, hn::LoadU(d, at[0]), hn::LoadU(d, at[1])), d, at[1]);
      },
      arrays, n);
}

template <typename T>
void MomentumLoop(const MomentumRates<T>& r, const T* g, T* m, T* w, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto rate = hn::Set(d, r.rate);
  const auto momentum = hn::Set(d, r.momentum);
  const bool nesterov = r.nesterov;
  T* const arrays[3] = {const_cast<T*>(g), m, w};
  ForVectors<3>(
      [&](T* const(&at)[3]) {
        const auto gradient = hn::LoadU(d, at[0]);
        const auto moment = hn::MulAdd(momentum, hn::LoadU(d, at[1]), gradient);
        hn::StoreU(moment, d, at[1]);
        const auto direction = nesterov ? hn::MulAdd(momentum, moment, gradient) : moment;
        hn::StoreU(hn::NegMulAdd(rate, direction, hn::LoadU(d, at[2])), d, at[2]);
      },
      arrays, n);
}

template <typename T>
void KerasMomentumLoop(const MomentumRates<T>& r, const T* g, T* m, T* w, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto rate = hn::Set(d, r.rate);
  const auto momentum = hn::Set(d, r.momentum);
  const bool nesterov = r.nesterov;
  T* const arrays[3] = {const_cast<T*>(g), m, w};
  ForVectors<3>(
      [&](T* const(&at)[3]) {
        const auto change = hn::Mul(rate, hn::LoadU(d, at[0]));
        const auto moment = hn::MulSub(momentum, hn::LoadU(d, at[1]), change);
        hn::StoreU(moment, d, at[1]);
        const auto direction = nesterov ? hn::MulSub(momentum, moment, change) : moment;
        hn::StoreU(hn::Add(direction, hn::LoadU(d, at[2])), d, at[2]);
      },
      arrays, n);
}

template <typename T>
void AdagradLoop(T factor, bool update_sum, const T* g, T* sum, T* w, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto rate = hn::Set(d, factor);
  T* const arrays[3] = {const_cast<T*>(g), sum, w};
  ForVectors<3>(
      [&](T* const(&at)[3]) {
        const auto gradient = hn::LoadU(d, at[0]);
        auto squares = hn::LoadU(d, at[1]);
        if (update_sum) {
          squares = hn::MulAdd(gradient, gradient, squares);
          hn::StoreU(squares, d, at[1]);
        }
        const auto change = hn::Div(hn::Mul(rate, gradient), hn::Sqrt(squares));
        hn::StoreU(hn::Sub(hn::LoadU(d, at[2]), change), d, at[2]);
      },
      arrays, n);
}

template <typename T>
void RmsPropLoop(const RmsPropRates<T>& r, const T* g, T* s, T* m, T* w, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto rate = hn::Set(d, r.rate);
  const auto rest = hn::Set(d, T(1) - r.decay);
  const auto momentum = hn::Set(d, r.momentum);
  const auto epsilon = hn::Set(d, r.epsilon);
  T* const arrays[4] = {const_cast<T*>(g), s, m, w};
  ForVectors<4>(
      [&](T* const(&at)[4]) {
        const auto gradient = hn::LoadU(d, at[0]);
        auto square = hn::LoadU(d, at[1]);
        square = hn::MulAdd(hn::MulSub(gradient, gradient, square), rest, square);
        hn::StoreU(square, d, at[1]);
        const auto scaled = hn::Div(hn::Mul(rate, gradient), hn::Sqrt(hn::Add(square, epsilon)));
        const auto moment = hn::MulAdd(momentum, hn::LoadU(d, at[2]), scaled);
        hn::StoreU(moment, d, at[2]);
        hn::StoreU(hn::Sub(hn::LoadU(d, at[3]), moment), d, at[3]);
      },
      arrays, n);
}

template <typename T>
void AdamLoop(const AdamRates<T>& r, const T* g, T* m, T* v, T* w, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto rate = hn::Set(d, r.rate);
  const auto beta1 = hn::Set(d, r.beta1);
  const auto rest1 = hn::Set(d, T(1) - r.beta1);
  const auto rest2 = hn::Set(d, T(1) - r.beta2);
  const auto epsilon = hn::Set(d, r.epsilon);
  const bool nesterov = r.nesterov;
  T* const arrays[4] = {const_cast<T*>(g), m, v, w};
  ForVectors<4>(
      [&](T* const(&at)[4]) {
        const auto gradient = hn::LoadU(d, at[0]);
        auto first = hn::LoadU(d, at[1]);
        first = hn::MulAdd(hn::Sub(gradient, first), rest1, first);
        hn::StoreU(first, d, at[1]);
        auto second = hn::LoadU(d, at[2]);
        second = hn::MulAdd(hn::MulSub(gradient, gradient, second), rest2, second);
        hn::StoreU(second, d, at[2]);
        const auto direction =
            nesterov ? hn::MulAdd(beta1, first, hn::Mul(rest1, gradient)) : first;
        const auto change = hn::Div(hn::Mul(rate, direction), hn::Add(hn::Sqrt(second), epsilon));
        hn::StoreU(hn::Sub(hn::LoadU(d, at[3]), change), d, at[3]);
      },
      arrays, n);
}

void AddScaledFloat(float f, const float* x, float* y, int64_t n) { AddScaledLoop(f, x, y, n); }
void AddScaledDouble(double f, const double* x, double* y, int64_t n) { AddScaledLoop(f, x, y, n); }
void MomentumFloat(const MomentumRates<float>& r, const float* g, float* m, float* w, int64_t n) {
  MomentumLoop(r, g, m, w, n);
}
void MomentumDouble(const MomentumRates<double>& r, const double* g, double* m, double* w,
                    int64_t n) {
  MomentumLoop(r, g, m, w, n);
}
void KerasMomentumFloat(const MomentumRates<float>& r, const float* g, float* m, float* w,
                        int64_t n) {
  KerasMomentumLoop(r, g, m, w, n);
}
void KerasMomentumDouble(const MomentumRates<double>& r, const double* g, double* m, double* w,
                         int64_t n) {
  KerasMomentumLoop(r, g, m, w, n);
}
void AdagradFloat(float rate, bool update, const float* g, float* sum, float* w, int64_t n) {
  AdagradLoop(rate, update, g, sum, w, n);
}
void AdagradDouble(double rate, bool update, const double* g, double* sum, double* w, int64_t n) {
  AdagradLoop(rate, update, g, sum, w, n);
}
void RmsPropFloat(const RmsPropRates<float>& r, const float* g, float* s, float* m, float* w,
                  int64_t n) {
  RmsPropLoop(r, g, s, m, w, n);
}
void RmsPropDouble(const RmsPropRates<double>& r, const double* g, double* s, double* m, double* w,
                   int64_t n) {
  RmsPropLoop(r, g, s, m, w, n);
}
void AdamFloat(const AdamRates<float>& r, const float* g, float* m, float* v, float* w, int64_t n) {
  AdamLoop(r, g, m, v, w, n);
}
void AdamDouble(const AdamRates<double>& r, const double* g, double* m, double* v, double* w,
                int64_t n) {
  AdamLoop(r, g, m, v, w, n);
}

}  // namespace HWY_NAMESPACE
}  // namespace millrace::vector
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace::vector {

HWY_EXPORT(AddScaledFloat);
HWY_EXPORT(AddScaledDouble);
HWY_EXPORT(MomentumFloat);
HWY_EXPORT(MomentumDouble);
HWY_EXPORT(KerasMomentumFloat);
HWY_EXPORT(KerasMomentumDouble);
HWY_EXPORT(AdagradFloat);
HWY_EXPORT(AdagradDouble);
HWY_EXPORT(RmsPropFloat);
HWY_EXPORT(RmsPropDouble);
HWY_EXPORT(AdamFloat);
HWY_EXPORT(AdamDouble);

void AddScaled(float factor, const float* x, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(AddScaledFloat)(factor, x, y, n);
}
void AddScaled(double factor, const double* x, double* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(AddScaledDouble)(factor, x, y, n);
}
void Momentum(const MomentumRates<float>& r, const float* g, float* m, float* w, int64_t n) {
  HWY_DYNAMIC_DISPATCH(MomentumFloat)(r, g, m, w, n);
}
void Momentum(const MomentumRates<double>& r, const double* g, double* m, double* w, int64_t n) {
  HWY_DYNAMIC_DISPATCH(MomentumDouble)(r, g, m, w, n);
}
void KerasMomentum(const MomentumRates<float>& r, const float* g, float* m, float* w, int64_t n) {
  HWY_DYNAMIC_DISPATCH(KerasMomentumFloat)(r, g, m, w, n);
}
void KerasMomentum(const MomentumRates<double>& r, const double* g, double* m, double* w,
                   int64_t n) {
  HWY_DYNAMIC_DISPATCH(KerasMomentumDouble)(r, g, m, w, n);
}
void Adagrad(float rate, bool update_sum, const float* g, float* sum, float* w, int64_t n) {
  HWY_DYNAMIC_DISPATCH(AdagradFloat)(rate, update_sum, g, sum, w, n);
}
void Adagrad(double rate, bool update_sum, const double* g, double* sum, double* w, int64_t n) {
  HWY_DYNAMIC_DISPATCH(AdagradDouble)(rate, update_sum, g, sum, w, n);
}
void RmsProp(const RmsPropRates<float>& r, const float* g, float* s, float* m, float* w,
             int64_t n) {
  HWY_DYNAMIC_DISPATCH(RmsPropFloat)(r, g, s, m, w, n);
}
void RmsProp(const RmsPropRates<double>& r, const double* g, double* s, double* m, double* w,
             int64_t n) {
  HWY_DYNAMIC_DISPATCH(RmsPropDouble)(r, g, s, m, w, n);
}
void Adam(const AdamRates<float>& r, const float* g, float* m, float* v, float* w, int64_t n) {
  HWY_DYNAMIC_DISPATCH(AdamFloat)(r, g, m, v, w, n);
}
void Adam(const AdamRates<double>& r, const double* g, double* m, double* v, double* w, int64_t n) {
  HWY_DYNAMIC_DISPATCH(AdamDouble)(r, g, m, v, w, n);
}

}  // namespace millrace::vector
#endif  // HWY_ONCE
