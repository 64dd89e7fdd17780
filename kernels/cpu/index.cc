#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/indices.h"
#include "kernels/cpu/register.h"
#include "kernels/host_values.h"

namespace millrace {
namespace {

class InvertPermutationKernel final : public Kernel {
 public:
  bool IsExpensive() const override { return false; }
  Status Compute(KernelContext& context) const override {
    MR_ASSIGN_OR_RETURN(const IntVector permutation, HostInts(context.input(0), "the permutation"));
    const int64_t n = static_cast<int64_t>(permutation.size());
    absl::InlinedVector<bool, kMaxRank> seen(permutation.size(), false);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t p = permutation[i];
      if (p < 0 || p >= n || seen[p]) {
        return InvalidArgument("not a permutation: element ", i, " is ", p, ", which is ",
                               p < 0 || p >= n ? "out of range" : "there twice");
      }
      seen[p] = true;
      MR_RETURN_IF_ERROR(SetHostInt(context.output(0), p, i));
    }
    return absl::OkStatus();
  }
};

// start, start + delta, ... before limit.
template <typename T>
class RangeKernel final : public Kernel {
 public:
  bool IsExpensive() const override { return false; }
  Status Compute(KernelContext& context) const override {
    for (int i = 0; i < 3; ++i) {
      if (context.input(i).num_elements() != 1 || context.input(i).dtype() != DTypeOf<T>::value) {
        return InvalidArgument("start, limit and delta must each be one ", Name(DTypeOf<T>::value));
      }
    }
    const T start = *context.input(0).data<T>();
    const T limit = *context.input(1).data<T>();
    const T delta = *context.input(2).data<T>();
    MR_ASSIGN_OR_RETURN(const int64_t count, Count(start, limit, delta));
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Create({count}));
    MR_RETURN_IF_ERROR(context.AllocateOutput(0, DTypeOf<T>::value, shape));
    T* out = context.output(0).mutable_data<T>();
    for (int64_t i = 0; i < count; ++i) {
      out[i] = functor::WrapAdd(start, functor::WrapMul(static_cast<T>(i), delta));
    }
    return absl::OkStatus();
  }

 private:
  static StatusOr<int64_t> Count(T start, T limit, T delta) {
    if (delta == T(0)) return InvalidArgument("delta must not be 0");
    if (delta > T(0) ? start >= limit : start <= limit) return int64_t{0};
    if constexpr (std::is_integral_v<T>) {
      // As unsigned, as limit - start may not fit the signed type.
      const auto from = static_cast<uint64_t>(static_cast<int64_t>(start));
      const auto to = static_cast<uint64_t>(static_cast<int64_t>(limit));
      const auto step = static_cast<uint64_t>(static_cast<int64_t>(delta));
      const uint64_t distance = delta > T(0) ? to - from : from - to;
      const uint64_t stride = delta > T(0) ? step : uint64_t{0} - step;
      const uint64_t count = (distance - 1) / stride + 1;
      if (count > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
        return InvalidArgument("a range of ", count, " elements");
      }
      return static_cast<int64_t>(count);
    } else {
      const double count = std::ceil((static_cast<double>(limit) - static_cast<double>(start)) /
                                     static_cast<double>(delta));
      if (!(count < 9007199254740992.0)) {
        return InvalidArgument("a range from ", start, " to ", limit, " by ", delta,
                               " has no countable number of elements");
      }
      return static_cast<int64_t>(count);
    }
  }
};

template <typename T>
class OneHotKernel final : public Kernel {
 public:
  explicit OneHotKernel(int64_t axis) : axis_(axis) {}

  Status Compute(KernelContext& context) const override {
    const Tensor& indices = context.input(0);
    Tensor& out = context.output(0);
    const int rank = indices.shape().rank();
    MR_ASSIGN_OR_RETURN(const int64_t depth, HostInt(context.input(1), "depth"));
    MR_ASSIGN_OR_RETURN(const int axis, ResolveAxis(axis_, rank + 1));
    IntVector dims(indices.shape().dims().begin(), indices.shape().dims().end());
    dims.insert(dims.begin() + axis, depth);
    if (out.shape().dims() != absl::MakeConstSpan(dims)) {
      return InvalidArgument("indices ", indices.shape().ToString(), " and depth ", depth,
                             " do not give an output of shape ", out.shape().ToString());
    }
    if (context.input(2).num_elements() != 1 || context.input(3).num_elements() != 1) {
      return InvalidArgument("on_value and off_value must be scalars");
    }
    const T on = *context.input(2).data<T>();
    const T off = *context.input(3).data<T>();
    int64_t suffix = 1;
    for (int i = axis; i < rank; ++i) suffix *= indices.shape()[i];
    const int64_t n = indices.num_elements();
    T* to = out.mutable_data<T>();
    ParallelRange(context, suffix == 0 ? 0 : n / suffix,
                  std::max<int64_t>(1, kElementsPerTask / std::max<int64_t>(1, depth * suffix)),
                  [&](int64_t begin, int64_t end) {
                    std::fill(to + begin * depth * suffix, to + end * depth * suffix, off);
                    for (int64_t i = begin * suffix; i < end * suffix; ++i) {
                      const int64_t index = IndexAt(indices, i);
                      if (index < 0 || index >= depth) continue;  // none is on, by definition
                      to[(i / suffix * depth + index) * suffix + i % suffix] = on;
                    }
                  });
    return absl::OkStatus();
  }

 private:
  const int64_t axis_;
};

StatusOr<std::unique_ptr<Kernel>> CreateOneHot(const KernelConstruction& c) {
  MR_ASSIGN_OR_RETURN(const DType dtype, c.attrs.Get<DType>("T"));
  const int64_t axis = c.attrs.GetOr<int64_t>("axis", -1);
  switch (SizeOf(dtype)) {
    case 1:
      return std::unique_ptr<Kernel>(new OneHotKernel<uint8_t>(axis));
    case 2:
      return std::unique_ptr<Kernel>(new OneHotKernel<uint16_t>(axis));
    case 4:
      return std::unique_ptr<Kernel>(new OneHotKernel<uint32_t>(axis));
    case 8:
      return std::unique_ptr<Kernel>(new OneHotKernel<uint64_t>(axis));
    default:
      return Unimplemented("no one-hot tensors of ", Name(dtype));
  }
}

}  // namespace

void RegisterIndexKernels(KernelRegistry& registry) {
  registry.Add("InvertPermutation", "CPU", MakeKernel<InvertPermutationKernel>);
  AddTyped<RangeKernel, int32_t, int64_t, float, double>(registry, "Range", "CPU", "Tidx");
  registry.Add("OneHot", "CPU", CreateOneHot);
}

}  // namespace millrace
