#include <cstring>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/register.h"
#include "kernels/half.h"

namespace millrace {
namespace {

// Half-precision elements are uint16_t in memory; as tags they have types of their own here.
template <typename T>
struct Number {
  using Memory = T;
  static constexpr DType kDType = DTypeOf<T>::value;
  static T Load(T x) { return x; }
  static T Store(T x) { return x; }
  using Value = T;
};
struct HalfTag {};
template <>
struct Number<HalfTag> {
  using Memory = uint16_t;
  using Value = float;
  static constexpr DType kDType = DType::kHalf;
  static float Load(uint16_t bits) { return HalfToFloat(bits); }
  static uint16_t Store(float x) { return FloatToHalf(x); }
};
struct Bfloat16Tag {};
template <>
struct Number<Bfloat16Tag> {
  using Memory = uint16_t;
  using Value = float;
  static constexpr DType kDType = DType::kBfloat16;
  static float Load(uint16_t bits) { return Bfloat16ToFloat(bits); }
  static uint16_t Store(float x) { return FloatToBfloat16(x); }
};

using Loop = void (*)(const void* from, void* to, int64_t begin, int64_t end);

template <typename From, typename To>
void CastLoop(const void* from, void* to, int64_t begin, int64_t end) {
  using Source = Number<From>;
  using Target = Number<To>;
  const auto* x = static_cast<const typename Source::Memory*>(from);
  auto* y = static_cast<typename Target::Memory*>(to);
  using F = functor::Cast<typename Target::Value, typename Source::Value>;
  for (int64_t i = begin; i < end; ++i) y[i] = Target::Store(F()(Source::Load(x[i])));
}

// Cuts the mantissa down to that of the target, towards zero, before it is converted. What is
// subnormal in the target is still rounded, as in the public op.
template <typename From, typename To, typename Bits, int kCut>
void TruncatingLoop(const void* from, void* to, int64_t begin, int64_t end) {
  using Target = Number<To>;
  const auto* x = static_cast<const From*>(from);
  auto* y = static_cast<typename Target::Memory*>(to);
  using F = functor::Cast<typename Target::Value, From>;
  for (int64_t i = begin; i < end; ++i) {
    From value = x[i];
    if (value == value) {
      Bits bits;
      std::memcpy(&bits, &value, sizeof(bits));
      bits &= ~Bits{0} << kCut;
      std::memcpy(&value, &bits, sizeof(bits));
    }
    y[i] = Target::Store(F()(value));
  }
}

// The loop for Truncate = true where it makes a difference, else null. The public op truncates no
// doubles to bfloat16.
Loop FindTruncatingLoop(DType from, DType to) {
  if (from == DType::kDouble && to == DType::kFloat) {
    return TruncatingLoop<double, float, uint64_t, 29>;
  }
  if (from == DType::kDouble && to == DType::kHalf) {
    return TruncatingLoop<double, HalfTag, uint64_t, 42>;
  }
  if (from == DType::kFloat && to == DType::kHalf) {
    return TruncatingLoop<float, HalfTag, uint32_t, 13>;
  }
  if (from == DType::kFloat && to == DType::kBfloat16) {
    return TruncatingLoop<float, Bfloat16Tag, uint32_t, 16>;
  }
  return nullptr;
}

template <typename From, typename... To>
Loop FindTarget(DType to) {
  Loop loop = nullptr;
  ((Number<To>::kDType == to ? void(loop = CastLoop<From, To>) : void()), ...);
  return loop;
}

template <typename... Ts>
Loop FindLoop(DType from, DType to) {
  Loop loop = nullptr;
  ((Number<Ts>::kDType == from ? void(loop = FindTarget<Ts, Ts...>(to)) : void()), ...);
  return loop;
}

Loop FindLoop(DType from, DType to) {
  return FindLoop<float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t,
                  uint64_t, bool, HalfTag, Bfloat16Tag>(from, to);
}

class CastKernel final : public Kernel {
 public:
  CastKernel(Loop loop, size_t copied_size) : loop_(loop), copied_size_(copied_size) {}

  static StatusOr<std::unique_ptr<Kernel>> Create(const KernelConstruction& c) {
    MR_ASSIGN_OR_RETURN(const DType from, c.attrs.Get<DType>("SrcT"));
    MR_ASSIGN_OR_RETURN(const DType to, c.attrs.Get<DType>("DstT"));
    Loop loop = c.attrs.GetOr("Truncate", false) ? FindTruncatingLoop(from, to) : nullptr;
    if (loop == nullptr) loop = FindLoop(from, to);
    if (loop == nullptr) {
      return Unimplemented("no cast from ", Name(from), " to ", Name(to));
    }
    return std::unique_ptr<Kernel>(new CastKernel(loop, from == to ? SizeOf(from) : 0));
  }

  Status Compute(KernelContext& context) const override {
    const void* x = context.input(0).raw_data();
    void* out = context.output(0).mutable_raw_data();
    const int64_t n = context.input(0).num_elements();
    if (copied_size_ > 0) {  // the same dtype
      if (n > 0) std::memmove(out, x, n * copied_size_);
      return absl::OkStatus();
    }
    ParallelRange(context, n, kElementsPerTask,
                  [&](int64_t begin, int64_t end) { loop_(x, out, begin, end); });
    return absl::OkStatus();
  }

 private:
  const Loop loop_;
  const size_t copied_size_;
};

}  // namespace

void RegisterCastKernels(KernelRegistry& registry) {
  registry.Add("Cast", "CPU", CastKernel::Create);
}

}  // namespace millrace
