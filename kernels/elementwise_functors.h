#ifndef KERNELS_ELEMENTWISE_FUNCTORS_H_
#define KERNELS_ELEMENTWISE_FUNCTORS_H_

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

// What each elementwise op does to one element: the one definition that CPU loops and CUDA kernels
// share. constexpr is what lets nvcc call them on the device (--expt-relaxed-constexpr). Integers
// wrap around; the divisor of an integer division is not zero (the kernels check it).
namespace millrace::functor {

// Integer arithmetic modulo 2^n: signed overflow would be undefined.
template <typename T>
constexpr T WrapAdd(T x, T y) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(x) + static_cast<uint64_t>(y));
  } else {
    return x + y;
  }
}
template <typename T>
constexpr T WrapSub(T x, T y) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(x) - static_cast<uint64_t>(y));
  } else {
    return x - y;
  }
}
template <typename T>
constexpr T WrapMul(T x, T y) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y));
  } else {
    return x * y;
  }
}

// ---- unary ----

template <typename T>
struct Neg {
  constexpr T operator()(T x) const {
    if constexpr (std::is_integral_v<T>) {
      return WrapSub(T(0), x);
    } else {
      return -x;  // not 0-x, which is +0 for +0
    }
  }
};
template <typename T>
struct Abs {
  constexpr T operator()(T x) const {
    if constexpr (std::is_integral_v<T>) {
      return x < T(0) ? WrapSub(T(0), x) : x;
    } else {
      return std::fabs(x);
    }
  }
};
template <typename T>
struct Sign {
  constexpr T operator()(T x) const {
    return x > T(0) ? T(1) : (x < T(0) ? T(-1) : T(x + T(0)));  // NaN stays, -0 becomes 0
  }
};
template <typename T>
struct Square {
  constexpr T operator()(T x) const { return WrapMul(x, x); }
};
template <typename T>
struct Sqrt {
  constexpr T operator()(T x) const { return std::sqrt(x); }
};
template <typename T>
struct Rsqrt {
  constexpr T operator()(T x) const { return T(1) / std::sqrt(x); }
};
template <typename T>
struct Reciprocal {
  constexpr T operator()(T x) const { return T(1) / x; }
};
template <typename T>
struct Exp {
  constexpr T operator()(T x) const { return std::exp(x); }
};
template <typename T>
struct Log {
  constexpr T operator()(T x) const { return std::log(x); }
};
template <typename T>
struct Expm1 {
  constexpr T operator()(T x) const { return std::expm1(x); }
};
template <typename T>
struct Log1p {
  constexpr T operator()(T x) const { return std::log1p(x); }
};
template <typename T>
struct Erf {
  constexpr T operator()(T x) const { return std::erf(x); }
};
template <typename T>
struct Tanh {
  constexpr T operator()(T x) const { return std::tanh(x); }
};
template <typename T>
struct Sigmoid {
  constexpr T operator()(T x) const { return T(1) / (T(1) + std::exp(-x)); }
};
// Activations keep NaN.
template <typename T>
struct Relu {
  constexpr T operator()(T x) const { return x <= T(0) ? T(0) : x; }
};
template <typename T>
struct Relu6 {
  constexpr T operator()(T x) const { return x <= T(0) ? T(0) : (x > T(6) ? T(6) : x); }
};
template <typename T>
struct Elu {
  constexpr T operator()(T x) const { return x < T(0) ? std::expm1(x) : x; }
};
// log(1+e^x), of which no part overflows.
template <typename T>
struct Softplus {
  constexpr T operator()(T x) const {
    return (x > T(0) ? x : T(0)) + std::log1p(std::exp(-std::fabs(x)));
  }
};
template <typename T>
struct IsFinite {
  constexpr bool operator()(T x) const {
    return x - x == T(0);  // NaN - NaN and inf - inf are NaN
  }
};
template <typename T>
struct IsNan {
  constexpr bool operator()(T x) const { return x != x; }
};
template <typename T>
struct IsInf {
  constexpr bool operator()(T x) const {
    return std::fabs(x) == std::numeric_limits<T>::infinity();
  }
};
struct LogicalNot {
  constexpr bool operator()(bool x) const { return !x; }
};

// ---- gradients: of the forward op's output y and dy, or of dy and its input x (or y) ----

template <typename T>
struct TanhGrad {
  constexpr T operator()(T y, T dy) const { return dy * (T(1) - y * y); }
};
template <typename T>
struct SigmoidGrad {
  constexpr T operator()(T y, T dy) const { return dy * y * (T(1) - y); }
};
// Where no gradient arrives, none leaves, though the slope may be infinite.
template <typename T>
struct SqrtGrad {
  constexpr T operator()(T y, T dy) const { return dy == T(0) ? T(0) : dy * T(0.5) / y; }
};
template <typename T>
struct RsqrtGrad {
  constexpr T operator()(T y, T dy) const { return dy == T(0) ? T(0) : T(-0.5) * dy * (y * y * y); }
};
template <typename T>
struct ReciprocalGrad {
  constexpr T operator()(T y, T dy) const { return dy == T(0) ? T(0) : -dy * y * y; }
};
template <typename T>
struct ReluGrad {
  constexpr T operator()(T dy, T x) const { return x > T(0) ? dy : T(0); }
};
template <typename T>
struct Relu6Grad {
  constexpr T operator()(T dy, T x) const { return x > T(0) && x < T(6) ? dy : T(0); }
};
template <typename T>
struct EluGrad {
  constexpr T operator()(T dy, T y) const { return y < T(0) ? (y + T(1)) * dy : dy; }
};
template <typename T>
struct SoftplusGrad {
  constexpr T operator()(T dy, T x) const { return dy / (std::exp(-x) + T(1)); }
};

// ---- binary ----

template <typename T>
struct Add {
  constexpr T operator()(T x, T y) const { return WrapAdd(x, y); }
};
template <typename T>
struct Sub {
  constexpr T operator()(T x, T y) const { return WrapSub(x, y); }
};
template <typename T>
struct Mul {
  constexpr T operator()(T x, T y) const { return WrapMul(x, y); }
};
template <typename T>
struct Div {
  constexpr T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
      if (y == T(-1)) return WrapSub(T(0), x);  // the smallest number / -1 would trap
    }
    return static_cast<T>(x / y);
  }
};
template <typename T>
struct DivNoNan {
  constexpr T operator()(T x, T y) const { return y == T(0) ? T(0) : x / y; }
};
template <typename T>
struct FloorDiv {
  constexpr T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>) {
      const T q = Div<T>()(x, y);
      // Rounded towards zero; down, if it was not exact and the signs differ.
      return (WrapMul(q, y) != x && (x < T(0)) != (y < T(0))) ? static_cast<T>(q - 1) : q;
    } else {
      return std::floor(x / y);
    }
  }
};
template <typename T>
struct FloorMod {
  constexpr T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>) {
      return WrapSub(x, WrapMul(FloorDiv<T>()(x, y), y));
    } else {
      const T r = std::fmod(x, y);
      return (r != T(0) && (r < T(0)) != (y < T(0))) ? r + y : r;
    }
  }
};
// NaN in either operand gives NaN.
template <typename T>
struct Maximum {
  constexpr T operator()(T x, T y) const { return (x > y || x != x) ? x : y; }
};
template <typename T>
struct Minimum {
  constexpr T operator()(T x, T y) const { return (x < y || x != x) ? x : y; }
};
template <typename T>
struct Pow {
  // For integers: y >= 0 (the kernel checks it); modulo 2^n.
  constexpr T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>) {
      T result = 1;
      for (; y > 0; y = static_cast<T>(y >> 1)) {
        if (y & 1) result = WrapMul(result, x);
        x = WrapMul(x, x);
      }
      return result;
    } else {
      return std::pow(x, y);
    }
  }
};
template <typename T>
struct SquaredDifference {
  constexpr T operator()(T x, T y) const {
    const T d = WrapSub(x, y);
    return WrapMul(d, d);
  }
};
template <typename T>
struct Equal {
  constexpr bool operator()(T x, T y) const { return x == y; }
};
template <typename T>
struct NotEqual {
  constexpr bool operator()(T x, T y) const { return x != y; }
};
template <typename T>
struct Less {
  constexpr bool operator()(T x, T y) const { return x < y; }
};
template <typename T>
struct LessEqual {
  constexpr bool operator()(T x, T y) const { return x <= y; }
};
template <typename T>
struct Greater {
  constexpr bool operator()(T x, T y) const { return x > y; }
};
template <typename T>
struct GreaterEqual {
  constexpr bool operator()(T x, T y) const { return x >= y; }
};
struct LogicalAnd {
  constexpr bool operator()(bool x, bool y) const { return x && y; }
};
struct LogicalOr {
  constexpr bool operator()(bool x, bool y) const { return x || y; }
};

// ---- Cast ----

// Numbers outside of an integer type's range give its nearest end, NaN gives 0: C++ leaves both
// undefined.
template <typename To, typename From>
struct Cast {
  constexpr To operator()(From x) const {
    if constexpr (std::is_same_v<To, bool>) {
      return x != From(0);
    } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
      // -min is a power of two, exact in From; max may round up to it.
      constexpr From kEnd = From(2) * static_cast<From>(uint64_t{1} << (sizeof(To) * 8 - 1)) /
                            (std::is_signed_v<To> ? From(2) : From(1));
      constexpr From kLow = std::is_signed_v<To> ? -kEnd : From(0);
      if (!(x == x)) return To(0);
      if (x >= kEnd) return std::numeric_limits<To>::max();
      if (x < kLow) return std::numeric_limits<To>::min();
      return static_cast<To>(x);
    } else {
      return static_cast<To>(x);
    }
  }
};

}  // namespace millrace::functor

#endif  // KERNELS_ELEMENTWISE_FUNCTORS_H_
