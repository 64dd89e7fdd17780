#include "kernels/cpu/vector_special.h"

// The targets of vector_math.cc.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/vector_special.cc"
#include "hwy/foreach_target.h"  // compiles this file again for each target
//
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
#include "kernels/cpu/vector_functions-inl.h"

HWY_BEFORE_NAMESPACE();
namespace millrace::vector {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

struct Expm1Op {
  template <class D, class V>
  V operator()(D d, V x) const {
    return SafeExpm1(d, x);
  }
};
struct Log1pOp {
  template <class D, class V>
  V operator()(D d, V x) const {
    return SafeLog1p(d, x);
  }
};
struct ErfOp {
  template <class D, class V>
  V operator()(D d, V x) const {
    return Erf(d, x);
  }
};
struct EluOp {
  template <class D, class V>
  V operator()(D d, V x) const {
    return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), SafeExpm1(d, x), x);
  }
};
struct SoftplusOp {
  template <class D, class V>
  V operator()(D d, V x) const {
    return Softplus(d, x);
  }
};

template <typename T>
struct ClipOp {
  const T low;
  const T high;
  template <class D, class V>
  V operator()(D d, V x) const {
    const V vhigh = hn::Set(d, high), vlow = hn::Set(d, low);
    const V below = hn::IfThenElse(hn::Lt(vhigh, x), vhigh, x);
    return hn::IfThenElse(hn::Lt(below, vlow), vlow, below);
  }
};

// The last, partial vector goes through the same instructions as the others.
template <typename T, class Op>
void Loop(Op op, const T* x, T* out, int64_t n) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(op(d, hn::LoadU(d, x + i)), d, out + i);
  if (i < n) {
    const auto rest = hn::FirstN(d, static_cast<size_t>(n - i));
    hn::BlendedStore(op(d, hn::MaskedLoad(rest, d, x + i)), rest, d, out + i);
  }
}

template <typename T>
void LeakLoop(const T* value, const T* x, T alpha, T* out, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto valpha = hn::Set(d, alpha);
  const auto leak = [&](auto v, auto at) {
    return hn::IfThenElse(hn::Gt(at, hn::Zero(d)), v, hn::Mul(v, valpha));
  };
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(leak(hn::LoadU(d, value + i), hn::LoadU(d, x + i)), d, out + i);
  }
  if (i < n) {
    const auto rest = hn::FirstN(d, static_cast<size_t>(n - i));
    hn::BlendedStore(leak(hn::MaskedLoad(rest, d, value + i), hn::MaskedLoad(rest, d, x + i)), rest,
                     d, out + i);
  }
}

void RunSpecial(Special op, const float* x, float* out, int64_t n) {
  switch (op) {
    case Special::kExpm1:
      return Loop(Expm1Op(), x, out, n);
    case Special::kLog1p:
      return Loop(Log1pOp(), x, out, n);
    case Special::kErf:
      return Loop(ErfOp(), x, out, n);
    case Special::kElu:
      return Loop(EluOp(), x, out, n);
    case Special::kSoftplus:
      return Loop(SoftplusOp(), x, out, n);
  }
}

void LeakFloat(const float* value, const float* x, float alpha, float* out, int64_t n) {
  LeakLoop(value, x, alpha, out, n);
}
void LeakDouble(const double* value, const double* x, double alpha, double* out, int64_t n) {
  LeakLoop(value, x, alpha, out, n);
}
void ClipFloat(const float* x, float low, float high, float* out, int64_t n) {
  Loop(ClipOp<float>{low, high}, x, out, n);
}
void ClipDouble(const double* x, double low, double high, double* out, int64_t n) {
  Loop(ClipOp<double>{low, high}, x, out, n);
}

}  // namespace HWY_NAMESPACE
}  // namespace millrace::vector
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace::vector {

HWY_EXPORT(RunSpecial);
HWY_EXPORT(LeakFloat);
HWY_EXPORT(LeakDouble);
HWY_EXPORT(ClipFloat);
HWY_EXPORT(ClipDouble);

void Run(Special op, const float* x, float* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(RunSpecial)(op, x, out, n);
}
void Leak(const float* value, const float* x, float alpha, float* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(LeakFloat)(value, x, alpha, out, n);
}
void Leak(const double* value, const double* x, double alpha, double* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(LeakDouble)(value, x, alpha, out, n);
}
void Clip(const float* x, float low, float high, float* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(ClipFloat)(x, low, high, out, n);
}
void Clip(const double* x, double low, double high, double* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(ClipDouble)(x, low, high, out, n);
}

}  // namespace millrace::vector
#endif  // HWY_ONCE
