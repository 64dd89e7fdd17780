// Highway's functions are defined on part of the numbers; these are on all, NaN giving NaN.
#if defined(KERNELS_CPU_VECTOR_FUNCTIONS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KERNELS_CPU_VECTOR_FUNCTIONS_INL_H_
#undef KERNELS_CPU_VECTOR_FUNCTIONS_INL_H_
#else
#define KERNELS_CPU_VECTOR_FUNCTIONS_INL_H_
#endif

#include <limits>

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace millrace::vector {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class D, class V>
HWY_INLINE V SafeExp(D d, V x) {
  using T = hn::TFromD<D>;
  constexpr bool kFloat = sizeof(T) == 4;
  const V largest = hn::Set(d, static_cast<T>(kFloat ? 88.72284 : 709.782712893384));
  // Highway's doubles end at 706, by the exponent that it can build.
  const V safe = hn::Set(d, static_cast<T>(kFloat ? 88.72284 : 700.0));
  const V smallest = hn::Set(d, static_cast<T>(kFloat ? -110.0 : -760.0));
  V y = hn::Exp(d, hn::Max(hn::Min(x, safe), smallest));
  if constexpr (!kFloat) {
    const auto beyond = hn::Gt(x, safe);
    if (!hn::AllFalse(d, beyond)) {
      // e^x = (e^(x/2))^2 for the last few that do not overflow.
      const V root = hn::Exp(d, hn::Mul(hn::Min(x, largest), hn::Set(d, T(0.5))));
      y = hn::IfThenElse(beyond, hn::Mul(root, root), y);
    }
  }
  y = hn::IfThenElse(hn::Gt(x, largest), hn::Set(d, std::numeric_limits<T>::infinity()), y);
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

template <class D, class V>
HWY_INLINE V SafeLog(D d, V x) {
  using T = hn::TFromD<D>;
  const V infinity = hn::Set(d, std::numeric_limits<T>::infinity());
  V y = hn::Log(d, x);
  y = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Neg(infinity), y);
  y = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Set(d, std::numeric_limits<T>::quiet_NaN()), y);
  return hn::IfThenElse(hn::Or(hn::Eq(x, infinity), hn::IsNaN(x)), x, y);
}

// The following are for floats.

template <class D, class V>
HWY_INLINE V SafeExpm1(D d, V x) {
  const V largest = hn::Set(d, 88.72284f);
  V y = hn::Expm1(d, hn::Max(hn::Min(x, largest), hn::Set(d, -110.0f)));
  y = hn::IfThenElse(hn::Gt(x, largest), hn::Set(d, std::numeric_limits<float>::infinity()), y);
  // Zero keeps its sign.
  return hn::IfThenElse(hn::Or(hn::Eq(x, hn::Zero(d)), hn::IsNaN(x)), x, y);
}

template <class D, class V>
HWY_INLINE V SafeLog1p(D d, V x) {
  const V infinity = hn::Set(d, std::numeric_limits<float>::infinity());
  const V pole = hn::Set(d, -1.0f);
  V y = hn::Log1p(d, x);
  y = hn::IfThenElse(hn::Eq(x, pole), hn::Neg(infinity), y);
  y = hn::IfThenElse(hn::Lt(x, pole), hn::Set(d, std::numeric_limits<float>::quiet_NaN()), y);
  return hn::IfThenElse(hn::Or(hn::Eq(x, infinity), hn::IsNaN(x)), x, y);
}

// log(1+e^x) = max(x,0) + log(1+e^-|x|), of which no part overflows.
template <class D, class V>
HWY_INLINE V Softplus(D d, V x) {
  const V rest = SafeLog1p(d, SafeExp(d, hn::Neg(hn::Abs(x))));
  const V y = hn::Add(hn::IfThenElseZero(hn::Gt(x, hn::Zero(d)), x), rest);
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

// Up to 1, x times a polynomial in x^2; beyond, 1 - e^p(|x|), p being near the logarithm of the
// complement, which at 4 is less than half a unit in the last place. Both polynomials are minimax
// fits: their error is below 2e-9.
template <class D, class V>
HWY_INLINE V Erf(D d, V x) {
  const V magnitude = hn::Abs(x);
  const V t = hn::Mul(x, x);
  V small = hn::Set(d, 7.889119533e-5f);
  small = hn::MulAdd(small, t, hn::Set(d, -8.020841280e-4f));
  small = hn::MulAdd(small, t, hn::Set(d, 5.189535339e-3f));
  small = hn::MulAdd(small, t, hn::Set(d, -2.685444459e-2f));
  small = hn::MulAdd(small, t, hn::Set(d, 1.128360018e-1f));
  small = hn::MulAdd(small, t, hn::Set(d, -3.761262714e-1f));
  small = hn::MulAdd(small, t, hn::Set(d, 1.283791659e-1f));
  small = hn::MulAdd(small, x, x);

  const V bounded = hn::Min(magnitude, hn::Set(d, 4.0f));
  V complement = hn::Set(d, 1.855748931e-4f);
  complement = hn::MulAdd(complement, bounded, hn::Set(d, -2.939615735e-3f));
  complement = hn::MulAdd(complement, bounded, hn::Set(d, 2.180535115e-2f));
  complement = hn::MulAdd(complement, bounded, hn::Set(d, -1.030374355e-1f));
  complement = hn::MulAdd(complement, bounded, hn::Set(d, -6.382256024e-1f));
  complement = hn::MulAdd(complement, bounded, hn::Set(d, -1.127040080f));
  complement = hn::MulAdd(complement, bounded, hn::Set(d, -3.537089296e-4f));
  const V large = hn::Sub(hn::Set(d, 1.0f), hn::Exp(d, complement));

  const V y = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 1.0f)), small, hn::CopySign(large, x));
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

}  // namespace HWY_NAMESPACE
}  // namespace millrace::vector
HWY_AFTER_NAMESPACE();

#endif  // KERNELS_CPU_VECTOR_FUNCTIONS_INL_H_
