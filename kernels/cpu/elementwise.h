#ifndef KERNELS_CPU_ELEMENTWISE_H_
#define KERNELS_CPU_ELEMENTWISE_H_

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/broadcast.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/vector_math.h"
#include "kernels/cpu/vector_special.h"
#include "kernels/elementwise_functors.h"

// Elementwise kernels from the functors. Where vector_math has the op for floats or doubles, that
// loop runs; else a plain one.
namespace millrace {

// Which vector loop stands for a functor; kNone for the others. Doubles keep the exact exp, log,
// tanh and so on of the C library: they are what fp32 is compared with.
inline constexpr int kNone = -1;
template <typename F>
inline constexpr int kVectorUnary = kNone;
template <typename F>
inline constexpr int kVectorSpecial = kNone;
template <typename F>
inline constexpr int kVectorBinary = kNone;

template <typename T>
inline constexpr int kVectorUnary<functor::Neg<T>> = static_cast<int>(vector::Unary::kNeg);
template <typename T>
inline constexpr int kVectorUnary<functor::Abs<T>> = static_cast<int>(vector::Unary::kAbs);
template <typename T>
inline constexpr int kVectorUnary<functor::Square<T>> = static_cast<int>(vector::Unary::kSquare);
template <typename T>
inline constexpr int kVectorUnary<functor::Sqrt<T>> = static_cast<int>(vector::Unary::kSqrt);
template <typename T>
inline constexpr int kVectorUnary<functor::Rsqrt<T>> = static_cast<int>(vector::Unary::kRsqrt);
template <typename T>
inline constexpr int kVectorUnary<functor::Reciprocal<T>> =
    static_cast<int>(vector::Unary::kReciprocal);
template <typename T>
inline constexpr int kVectorUnary<functor::Relu<T>> = static_cast<int>(vector::Unary::kRelu);
template <typename T>
inline constexpr int kVectorUnary<functor::Relu6<T>> = static_cast<int>(vector::Unary::kRelu6);
template <>
inline constexpr int kVectorUnary<functor::Exp<float>> = static_cast<int>(vector::Unary::kExp);
template <>
inline constexpr int kVectorUnary<functor::Log<float>> = static_cast<int>(vector::Unary::kLog);
template <>
inline constexpr int kVectorUnary<functor::Tanh<float>> = static_cast<int>(vector::Unary::kTanh);
template <>
inline constexpr int kVectorUnary<functor::Sigmoid<float>> =
    static_cast<int>(vector::Unary::kSigmoid);

template <>
inline constexpr int kVectorSpecial<functor::Expm1<float>> =
    static_cast<int>(vector::Special::kExpm1);
template <>
inline constexpr int kVectorSpecial<functor::Log1p<float>> =
    static_cast<int>(vector::Special::kLog1p);
template <>
inline constexpr int kVectorSpecial<functor::Erf<float>> = static_cast<int>(vector::Special::kErf);
template <>
inline constexpr int kVectorSpecial<functor::Elu<float>> = static_cast<int>(vector::Special::kElu);
template <>
inline constexpr int kVectorSpecial<functor::Softplus<float>> =
    static_cast<int>(vector::Special::kSoftplus);

template <typename T>
inline constexpr int kVectorBinary<functor::Add<T>> = static_cast<int>(vector::Binary::kAdd);
template <typename T>
inline constexpr int kVectorBinary<functor::Sub<T>> = static_cast<int>(vector::Binary::kSub);
template <typename T>
inline constexpr int kVectorBinary<functor::Mul<T>> = static_cast<int>(vector::Binary::kMul);
template <typename T>
inline constexpr int kVectorBinary<functor::Div<T>> = static_cast<int>(vector::Binary::kDiv);
template <typename T>
inline constexpr int kVectorBinary<functor::Maximum<T>> =
    static_cast<int>(vector::Binary::kMaximum);
template <typename T>
inline constexpr int kVectorBinary<functor::Minimum<T>> =
    static_cast<int>(vector::Binary::kMinimum);
template <typename T>
inline constexpr int kVectorBinary<functor::SquaredDifference<T>> =
    static_cast<int>(vector::Binary::kSquaredDifference);
template <typename T>
inline constexpr int kVectorBinary<functor::ReluGrad<T>> =
    static_cast<int>(vector::Binary::kReluGrad);
template <typename T>
inline constexpr int kVectorBinary<functor::Relu6Grad<T>> =
    static_cast<int>(vector::Binary::kRelu6Grad);
template <typename T>
inline constexpr int kVectorBinary<functor::EluGrad<T>> =
    static_cast<int>(vector::Binary::kEluGrad);
template <>
inline constexpr int kVectorBinary<functor::SoftplusGrad<float>> =
    static_cast<int>(vector::Binary::kSoftplusGrad);
template <typename T>
inline constexpr int kVectorBinary<functor::TanhGrad<T>> =
    static_cast<int>(vector::Binary::kTanhGrad);
template <typename T>
inline constexpr int kVectorBinary<functor::SigmoidGrad<T>> =
    static_cast<int>(vector::Binary::kSigmoidGrad);

// Whether the functor's operations are those of its vector loop, so that it may stand for that.
template <typename F>
inline constexpr bool kSameAsVector = true;
template <>
inline constexpr bool kSameAsVector<functor::SoftplusGrad<float>> = false;

template <typename T>
inline constexpr bool kIsVectorType = std::is_same_v<T, float> || std::is_same_v<T, double>;

// Integer ops that are not defined for every right operand.
template <typename F>
inline constexpr bool kDivides = false;
template <typename T>
inline constexpr bool kDivides<functor::Div<T>> = std::is_integral_v<T>;
template <typename T>
inline constexpr bool kDivides<functor::FloorDiv<T>> = std::is_integral_v<T>;
template <typename T>
inline constexpr bool kDivides<functor::FloorMod<T>> = std::is_integral_v<T>;
template <typename F>
inline constexpr bool kIntegerPower = false;
template <typename T>
inline constexpr bool kIntegerPower<functor::Pow<T>> = std::is_integral_v<T>;

template <typename F, typename T>
Status CheckRightOperand(const T* y, int64_t n) {
  if constexpr (kDivides<F>) {
    const T* zero = std::find(y, y + n, T(0));
    if (zero != y + n) {
      return InvalidArgument("integer division by zero (element ", zero - y, " of the divisor)");
    }
  } else if constexpr (kIntegerPower<F>) {
    const T* negative = std::find_if(y, y + n, [](T v) { return v < T(0); });
    if (negative != y + n) {
      return InvalidArgument("an integer to the negative power ", *negative, " (element ",
                             negative - y, ")");
    }
  }
  return absl::OkStatus();
}

template <typename F, typename In, typename Out>
class UnaryKernel final : public Kernel {
 public:
  Status Compute(KernelContext& context) const override {
    const In* x = context.input(0).data<In>();
    Out* out = context.output(0).mutable_data<Out>();
    ParallelRange(context, context.input(0).num_elements(), kGrain,
                  [&](int64_t begin, int64_t end) {
                    if constexpr (kVectorUnary<F> != kNone && kIsVectorType<In>) {
                      vector::Run(static_cast<vector::Unary>(kVectorUnary<F>), x + begin,
                                  out + begin, end - begin);
                    } else if constexpr (kVectorSpecial<F> != kNone) {
                      vector::Run(static_cast<vector::Special>(kVectorSpecial<F>), x + begin,
                                  out + begin, end - begin);
                    } else {
                      for (int64_t i = begin; i < end; ++i) out[i] = F()(x[i]);
                    }
                  });
    return absl::OkStatus();
  }

 private:
  static constexpr int64_t kGrain = kHeavyElementsPerTask;
};

template <typename F, typename In, typename Out>
void BinaryRow(const In* x, int64_t stride_x, const In* y, int64_t stride_y, Out* out, int64_t n) {
  if (n == 1 && kSameAsVector<F>) {
    *out = F()(*x, *y);  // without the call
  } else if constexpr (kVectorBinary<F> != kNone && kIsVectorType<In>) {
    constexpr auto kOp = static_cast<vector::Binary>(kVectorBinary<F>);
    if (stride_x == 1) {
      vector::Run(kOp, stride_y == 1 ? vector::Operands::kBothVectors : vector::Operands::kScalarY,
                  x, y, out, n);
    } else {
      vector::Run(kOp, vector::Operands::kScalarX, x, y, out, n);
    }
  } else if (stride_x == 1 && stride_y == 1) {
    for (int64_t i = 0; i < n; ++i) out[i] = F()(x[i], y[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) out[i] = F()(x[i * stride_x], y[i * stride_y]);
  }
}

template <typename F, typename In, typename Out>
class BinaryKernel final : public Kernel {
 public:
  StatusOr<std::unique_ptr<PreparedShapes>> Prepare(const PrepareContext& c) const override {
    return MakeBroadcastPlan<2>({&c.inputs[0], &c.inputs[1]}, c.outputs[0]);
  }
  Status Compute(KernelContext& context) const override {
    const auto& plan = context.prepared<BroadcastPlan<2>>();
    const In* x = context.input(0).data<In>();
    const In* y = context.input(1).data<In>();
    Out* out = context.output(0).mutable_data<Out>();
    if constexpr (kDivides<F> || kIntegerPower<F>) {
      MR_RETURN_IF_ERROR(CheckRightOperand<F>(y, context.input(1).num_elements()));
    }
    const auto& inner = plan.strides[plan.rank - 1];
    ParallelRange(context, plan.num_elements, kElementsPerTask, [&](int64_t begin, int64_t end) {
      if (plan.rank == 1) {
        BinaryRow<F>(x + begin * inner[0], inner[0], y + begin * inner[1], inner[1], out + begin,
                     end - begin);
        return;
      }
      ForEachRow(plan, begin, end, [&](int64_t at, const std::array<int64_t, 2>& from, int64_t n) {
        BinaryRow<F>(x + from[0], inner[0], y + from[1], inner[1], out + at, n);
      });
    });
    return absl::OkStatus();
  }
};

// Of what the node says, if K wants to know.
template <typename K>
StatusOr<std::unique_ptr<Kernel>> MakeKernel(const KernelConstruction& c) {
  if constexpr (std::is_constructible_v<K, const KernelConstruction&>) {
    return std::unique_ptr<Kernel>(std::make_unique<K>(c));
  } else {
    return std::unique_ptr<Kernel>(std::make_unique<K>());
  }
}

// Adds `op` with one kernel for each dtype T of attribute "T".
template <template <typename> class F, typename... Ts>
void AddUnary(KernelRegistry& registry, absl::string_view op) {
  (registry.Add(KernelDef{std::string(op), "CPU", {{"T", {DTypeOf<Ts>::value}}}},
                MakeKernel<UnaryKernel<F<Ts>, Ts, decltype(F<Ts>()(Ts()))>>),
   ...);
}
template <template <typename> class F, typename... Ts>
void AddBinary(KernelRegistry& registry, absl::string_view op) {
  (registry.Add(KernelDef{std::string(op), "CPU", {{"T", {DTypeOf<Ts>::value}}}},
                MakeKernel<BinaryKernel<F<Ts>, Ts, decltype(F<Ts>()(Ts(), Ts()))>>),
   ...);
}

}  // namespace millrace

#endif  // KERNELS_CPU_ELEMENTWISE_H_
