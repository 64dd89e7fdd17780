#include <algorithm>
#include <limits>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/register.h"
#include "kernels/host_values.h"

namespace millrace {
namespace {

// The search begins at `kStart`, of element 0, and goes to an element that is better. So the first
// of equals wins, and NaN, which is never better, only does where nothing is.
template <typename T>
struct Largest {
  static constexpr absl::string_view kWhat = "largest";
  static constexpr T kStart = std::numeric_limits<T>::lowest();
  static bool Better(T x, T best) { return x > best; }
};
template <typename T>
struct Smallest {
  static constexpr absl::string_view kWhat = "smallest";
  static constexpr T kStart = std::numeric_limits<T>::max();
  static bool Better(T x, T best) { return x < best; }
};

// ArgMax and ArgMin: the index of the extreme element along an axis.
template <typename E, typename T>
class ArgExtremeKernel final : public Kernel {
 public:
  Status Compute(KernelContext& context) const override {
    const Tensor& x = context.input(0);
    MR_ASSIGN_OR_RETURN(const int64_t given, HostInt(context.input(1), "the axis"));
    MR_ASSIGN_OR_RETURN(const int axis, ResolveAxis(given, x.shape().rank()));
    Tensor& out = context.output(0);
    const int64_t extent = x.shape()[axis];
    if (out.num_elements() == 0) return absl::OkStatus();
    if (extent == 0) {
      return InvalidArgument("axis ", given, " of ", x.shape().ToString(), " has no ", E::kWhat,
                             " element");
    }
    int64_t inner = 1;
    for (int i = axis + 1; i < x.shape().rank(); ++i) inner *= x.shape()[i];
    if (out.dtype() == DType::kInt32) {
      if (extent - 1 > std::numeric_limits<int32_t>::max()) {
        return InvalidArgument("axis ", given, " of ", x.shape().ToString(),
                               " has indices that output_type int32 does not hold");
      }
      Search<int32_t>(context, x.data<T>(), extent, inner, out);
    } else if (out.dtype() == DType::kInt64) {
      Search<int64_t>(context, x.data<T>(), extent, inner, out);
    } else {
      return InvalidArgument("output_type must be int32 or int64, not ", Name(out.dtype()));
    }
    return absl::OkStatus();
  }

 private:
  template <typename Index>
  static void Search(KernelContext& context, const T* x, int64_t extent, int64_t inner,
                     Tensor& out) {
    Index* index = out.mutable_data<Index>();
    const int64_t grain = std::max<int64_t>(1, kElementsPerTask / extent);
    ParallelRange(context, out.num_elements(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* from = x + i / inner * extent * inner + i % inner;
        T best = E::kStart;
        int64_t at = 0;
        for (int64_t k = 0; k < extent; ++k) {
          if (!E::Better(from[k * inner], best)) continue;
          best = from[k * inner];
          at = k;
        }
        index[i] = static_cast<Index>(at);
      }
    });
  }
};

template <template <typename> class E, typename... Ts>
void AddArgExtreme(KernelRegistry& registry, absl::string_view op) {
  (registry.Add(KernelDef{std::string(op), "CPU", {{"T", {DTypeOf<Ts>::value}}}},
                MakeKernel<ArgExtremeKernel<E<Ts>, Ts>>),
   ...);
}

}  // namespace

void RegisterArgExtremeKernels(KernelRegistry& registry) {
  AddArgExtreme<Largest, float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t,
                uint32_t, uint64_t, bool>(registry, "ArgMax");
  AddArgExtreme<Smallest, float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t,
                uint32_t, uint64_t, bool>(registry, "ArgMin");
}

}  // namespace millrace
