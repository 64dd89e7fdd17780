#include "kernels/cpu/vector_math.h"

// Three targets are enough: those left out differ from a neighbour in what is not used here.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/vector_math.cc"
#include "hwy/foreach_target.h"  // compiles this file again for each target
//
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
#include "kernels/cpu/vector_functions-inl.h"

HWY_BEFORE_NAMESPACE();
namespace millrace::vector {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// One struct an op; the call works on vectors.
struct NegOp {
  template <class D, class V>
  V operator()(D, V x) const {
    return hn::Neg(x);
  }
};
struct AbsOp {
  template <class D, class V>
  V operator()(D, V x) const {
    return hn::Abs(x);
  }
};
struct SquareOp {
  template <class D, class V>
  V operator()(D, V x) const {
    return hn::Mul(x, x);
  }
};
struct SqrtOp {
  template <class D, class V>
  V operator()(D, V x) const {
    return hn::Sqrt(x);
  }
};
struct RsqrtOp {
  template <class D, class V>
  V operator()(D d, V x) const {
    return hn::Div(hn::Set(d, 1), hn::Sqrt(x));
  }
};
struct ReciprocalOp {
  template <class D, class V>
  V operator()(D d, V x) const {
    return hn::Div(hn::Set(d, 1), x);
  }
};
struct ReluOp {
  template <class D, class V>
  V operator()(D d, V x) const {
    return hn::IfThenElse(hn::Le(x, hn::Zero(d)), hn::Zero(d), x);
  }
};
struct Relu6Op {
  template <class D, class V>
  V operator()(D d, V x) const {
    const V six = hn::Set(d, 6);
    const V below = hn::IfThenElse(hn::Gt(x, six), six, x);
    return hn::IfThenElse(hn::Le(x, hn::Zero(d)), hn::Zero(d), below);
  }
};
struct ExpOp {
  template <class D, class V>
  V operator()(D d, V x) const {
    return SafeExp(d, x);
  }
};
struct LogOp {
  template <class D, class V>
  V operator()(D d, V x) const {
    return SafeLog(d, x);
  }
};
struct TanhOp {
  template <class D, class V>
  V operator()(D d, V x) const {
    // 1 to the last place beyond 20.
    const V bounded = hn::Max(hn::Min(x, hn::Set(d, 20)), hn::Set(d, -20));
    return hn::IfThenElse(hn::IsNaN(x), x, hn::Tanh(d, bounded));
  }
};
struct SigmoidOp {
  template <class D, class V>
  V operator()(D d, V x) const {
    const V one = hn::Set(d, 1);
    return hn::Div(one, hn::Add(one, SafeExp(d, hn::Neg(x))));
  }
};

struct AddOp {
  template <class D, class V>
  V operator()(D, V x, V y) const {
    return hn::Add(x, y);
  }
};
struct SubOp {
  template <class D, class V>
  V operator()(D, V x, V y) const {
    return hn::Sub(x, y);
  }
};
struct MulOp {
  template <class D, class V>
  V operator()(D, V x, V y) const {
    return hn::Mul(x, y);
  }
};
struct DivOp {
  template <class D, class V>
  V operator()(D, V x, V y) const {
    return hn::Div(x, y);
  }
};
struct MaximumOp {
  template <class D, class V>
  V operator()(D, V x, V y) const {
    return hn::IfThenElse(hn::Or(hn::Gt(x, y), hn::IsNaN(x)), x, y);
  }
};
struct MinimumOp {
  template <class D, class V>
  V operator()(D, V x, V y) const {
    return hn::IfThenElse(hn::Or(hn::Lt(x, y), hn::IsNaN(x)), x, y);
  }
};
struct SquaredDifferenceOp {
  template <class D, class V>
  V operator()(D, V x, V y) const {
    const V d = hn::Sub(x, y);
    return hn::Mul(d, d);
  }
};
struct ReluGradOp {
  template <class D, class V>
  V operator()(D d, V dy, V x) const {
    return hn::IfThenElseZero(hn::Gt(x, hn::Zero(d)), dy);
  }
};
struct Relu6GradOp {
  template <class D, class V>
  V operator()(D d, V dy, V x) const {
    const auto inside = hn::And(hn::Gt(x, hn::Zero(d)), hn::Lt(x, hn::Set(d, 6)));
    return hn::IfThenElseZero(inside, dy);
  }
};
struct EluGradOp {
  template <class D, class V>
  V operator()(D d, V dy, V y) const {
    const V below = hn::Mul(hn::Add(y, hn::Set(d, 1)), dy);
    return hn::IfThenElse(hn::Lt(y, hn::Zero(d)), below, dy);
  }
};
struct SoftplusGradOp {
  template <class D, class V>
  V operator()(D d, V dy, V x) const {
    return hn::Div(dy, hn::Add(SafeExp(d, hn::Neg(x)), hn::Set(d, 1)));
  }
};
struct TanhGradOp {
  template <class D, class V>
  V operator()(D d, V y, V dy) const {
    return hn::Mul(dy, hn::Sub(hn::Set(d, 1), hn::Mul(y, y)));
  }
};
struct SigmoidGradOp {
  template <class D, class V>
  V operator()(D d, V y, V dy) const {
    return hn::Mul(hn::Mul(dy, y), hn::Sub(hn::Set(d, 1), y));
  }
};

// The last, partial vector goes through the same instructions as the others; lanes beyond it are
// neither read nor written on the targets that are compiled.
template <class D, typename T>
HWY_INLINE hn::Vec<D> LoadPartial(D d, const T* x, int64_t n) {
  return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(n)), d, x);
}
template <class D, typename T>
HWY_INLINE void StorePartial(hn::Vec<D> v, D d, T* out, int64_t n) {
  hn::BlendedStore(v, hn::FirstN(d, static_cast<size_t>(n)), d, out);
}

template <typename T, class Op>
void UnaryLoop(Op op, const T* x, T* out, int64_t n) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(op(d, hn::LoadU(d, x + i)), d, out + i);
  if (i < n) StorePartial(op(d, LoadPartial(d, x + i, n - i)), d, out + i, n - i);
}

template <typename T, class Op>
void BinaryLoop(Op op, Operands operands, const T* x, const T* y, T* out, int64_t n) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  if (operands == Operands::kBothVectors) {
    for (; i + lanes <= n; i += lanes) {
      hn::StoreU(op(d, hn::LoadU(d, x + i), hn::LoadU(d, y + i)), d, out + i);
    }
    if (i < n) {
      StorePartial(op(d, LoadPartial(d, x + i, n - i), LoadPartial(d, y + i, n - i)), d, out + i,
                   n - i);
    }
  } else if (operands == Operands::kScalarX) {
    const auto vx = hn::Set(d, *x);
    for (; i + lanes <= n; i += lanes) hn::StoreU(op(d, vx, hn::LoadU(d, y + i)), d, out + i);
    if (i < n) StorePartial(op(d, vx, LoadPartial(d, y + i, n - i)), d, out + i, n - i);
  } else {
    const auto vy = hn::Set(d, *y);
    for (; i + lanes <= n; i += lanes) hn::StoreU(op(d, hn::LoadU(d, x + i), vy), d, out + i);
    if (i < n) StorePartial(op(d, LoadPartial(d, x + i, n - i), vy), d, out + i, n - i);
  }
}

template <typename T>
void RunUnary(Unary op, const T* x, T* out, int64_t n) {
  switch (op) {
    case Unary::kNeg:
      return UnaryLoop(NegOp(), x, out, n);
    case Unary::kAbs:
      return UnaryLoop(AbsOp(), x, out, n);
    case Unary::kSquare:
      return UnaryLoop(SquareOp(), x, out, n);
    case Unary::kSqrt:
      return UnaryLoop(SqrtOp(), x, out, n);
    case Unary::kRsqrt:
      return UnaryLoop(RsqrtOp(), x, out, n);
    case Unary::kReciprocal:
      return UnaryLoop(ReciprocalOp(), x, out, n);
    case Unary::kRelu:
      return UnaryLoop(ReluOp(), x, out, n);
    case Unary::kRelu6:
      return UnaryLoop(Relu6Op(), x, out, n);
    case Unary::kExp:
      return UnaryLoop(ExpOp(), x, out, n);
    case Unary::kLog:
      return UnaryLoop(LogOp(), x, out, n);
    case Unary::kTanh:
      return UnaryLoop(TanhOp(), x, out, n);
    case Unary::kSigmoid:
      return UnaryLoop(SigmoidOp(), x, out, n);
  }
}

template <typename T>
void RunBinary(Binary op, Operands operands, const T* x, const T* y, T* out, int64_t n) {
  switch (op) {
    case Binary::kAdd:
      return BinaryLoop(AddOp(), operands, x, y, out, n);
    case Binary::kSub:
      return BinaryLoop(SubOp(), operands, x, y, out, n);
    case Binary::kMul:
      return BinaryLoop(MulOp(), operands, x, y, out, n);
    case Binary::kDiv:
      return BinaryLoop(DivOp(), operands, x, y, out, n);
    case Binary::kMaximum:
      return BinaryLoop(MaximumOp(), operands, x, y, out, n);
    case Binary::kMinimum:
      return BinaryLoop(MinimumOp(), operands, x, y, out, n);
    case Binary::kSquaredDifference:
      return BinaryLoop(SquaredDifferenceOp(), operands, x, y, out, n);
    case Binary::kReluGrad:
      return BinaryLoop(ReluGradOp(), operands, x, y, out, n);
    case Binary::kRelu6Grad:
      return BinaryLoop(Relu6GradOp(), operands, x, y, out, n);
    case Binary::kEluGrad:
      return BinaryLoop(EluGradOp(), operands, x, y, out, n);
    case Binary::kSoftplusGrad:
      return BinaryLoop(SoftplusGradOp(), operands, x, y, out, n);
    case Binary::kTanhGrad:
      return BinaryLoop(TanhGradOp(), operands, x, y, out, n);
    case Binary::kSigmoidGrad:
      return BinaryLoop(SigmoidGradOp(), operands, x, y, out, n);
  }
}

void UnaryFloat(Unary op, const float* x, float* out, int64_t n) { RunUnary(op, x, out, n); }
void UnaryDouble(Unary op, const double* x, double* out, int64_t n) { RunUnary(op, x, out, n); }
void BinaryFloat(Binary op, Operands operands, const float* x, const float* y, float* out,
                 int64_t n) {
  RunBinary(op, operands, x, y, out, n);
}
void BinaryDouble(Binary op, Operands operands, const double* x, const double* y, double* out,
                  int64_t n) {
  RunBinary(op, operands, x, y, out, n);
}

}  // namespace HWY_NAMESPACE
}  // namespace millrace::vector
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace::vector {

HWY_EXPORT(UnaryFloat);
HWY_EXPORT(UnaryDouble);
HWY_EXPORT(BinaryFloat);
HWY_EXPORT(BinaryDouble);

void Run(Unary op, const float* x, float* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(UnaryFloat)(op, x, out, n);
}
void Run(Unary op, const double* x, double* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(UnaryDouble)(op, x, out, n);
}
void Run(Binary op, Operands operands, const float* x, const float* y, float* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(BinaryFloat)(op, operands, x, y, out, n);
}
void Run(Binary op, Operands operands, const double* x, const double* y, double* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(BinaryDouble)(op, operands, x, y, out, n);
}

}  // namespace millrace::vector
#endif  // HWY_ONCE
