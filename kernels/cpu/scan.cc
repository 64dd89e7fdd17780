#include <algorithm>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/register.h"
#include "kernels/host_values.h"

namespace millrace {
namespace {

template <typename T>
struct SumScan {
  static constexpr T kInitial = T(0);
  using F = functor::Add<T>;
};
template <typename T>
struct ProductScan {
  static constexpr T kInitial = T(1);
  using F = functor::Mul<T>;
};

// Columns of a row that are worth a task of their own.
constexpr int64_t kScanColumns = 2048;

// Cumsum and Cumprod: each element combined with all before it along an axis, in that order. The
// steps along the axis are taken one by one; what is beside the axis goes in parallel.
template <typename S, typename T>
class ScanKernel final : public Kernel {
 public:
  ScanKernel(bool exclusive, bool reverse) : exclusive_(exclusive), reverse_(reverse) {}

  static StatusOr<std::unique_ptr<Kernel>> Create(const KernelConstruction& c) {
    return std::unique_ptr<Kernel>(std::make_unique<ScanKernel>(c.attrs.GetOr("exclusive", false),
                                                                c.attrs.GetOr("reverse", false)));
  }

  Status Compute(KernelContext& context) const override {
    const Tensor& x = context.input(0);
    MR_ASSIGN_OR_RETURN(const int64_t given, HostInt(context.input(1), "the axis"));
    MR_ASSIGN_OR_RETURN(const int axis, ResolveAxis(given, x.shape().rank()));
    if (x.num_elements() == 0) return absl::OkStatus();
    const int64_t extent = x.shape()[axis];
    int64_t inner = 1;
    for (int i = axis + 1; i < x.shape().rank(); ++i) inner *= x.shape()[i];
    const int64_t outer = x.num_elements() / (extent * inner);
    const T* from = x.data<T>();
    T* to = context.output(0).mutable_data<T>();
    const int64_t blocks = CeilDiv(inner, kScanColumns);
    const int64_t grain =
        std::max<int64_t>(1, kElementsPerTask / (extent * std::min(inner, kScanColumns)));
    ParallelRange(context, outer * blocks, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t column = i % blocks * kScanColumns;
        const int64_t at = i / blocks * extent * inner + column;
        const int64_t width = std::min(kScanColumns, inner - column);
        if (width == 1) {
          ScanOne(from + at, to + at, extent, inner);
        } else {
          ScanRows(from + at, to + at, extent, inner, width);
        }
      }
    });
    return absl::OkStatus();
  }

 private:
  // One line along the axis, whose elements are `stride` apart.
  void ScanOne(const T* x, T* out, int64_t extent, int64_t stride) const {
    const int64_t step = reverse_ ? -stride : stride;
    int64_t at = reverse_ ? (extent - 1) * stride : 0;
    T sum = S::kInitial;
    for (int64_t k = 0; k < extent; ++k, at += step) {
      const T next = typename S::F()(sum, x[at]);
      out[at] = exclusive_ ? sum : next;
      sum = next;
    }
  }
  // `width` of them side by side.
  void ScanRows(const T* x, T* out, int64_t extent, int64_t stride, int64_t width) const {
    const int64_t step = reverse_ ? -stride : stride;
    int64_t at = reverse_ ? (extent - 1) * stride : 0;
    // The first element is combined with the initial one, as in ScanOne.
    for (int64_t j = 0; j < width; ++j) {
      out[at + j] = exclusive_ ? S::kInitial : typename S::F()(S::kInitial, x[at + j]);
    }
    for (int64_t k = 1; k < extent; ++k) {
      const int64_t before = at;
      at += step;
      BinaryRow<typename S::F>(out + before, 1, x + (exclusive_ ? before : at), 1, out + at, width);
    }
  }

  const bool exclusive_;
  const bool reverse_;
};

template <template <typename> class S, typename... Ts>
void AddScan(KernelRegistry& registry, absl::string_view op) {
  (registry.Add(KernelDef{std::string(op), "CPU", {{"T", {DTypeOf<Ts>::value}}}},
                ScanKernel<S<Ts>, Ts>::Create),
   ...);
}

}  // namespace

void RegisterScanKernels(KernelRegistry& registry) {
  AddScan<SumScan, float, double, int32_t, int64_t>(registry, "Cumsum");
  AddScan<ProductScan, float, double, int32_t, int64_t>(registry, "Cumprod");
}

}  // namespace millrace
