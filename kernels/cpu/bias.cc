#include <algorithm>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/reduction.h"
#include "kernels/cpu/register.h"

namespace millrace {
namespace {

// A value of channels: `outer` times `channels` times `inner` elements; inner is 1 in NHWC.
struct ChannelLayout {
  int64_t outer = 1, channels = 0, inner = 1;
};

class BiasKernelBase : public Kernel {
 public:
  explicit BiasKernelBase(const KernelConstruction& c)
      : channels_first_(c.attrs.GetOr<std::string>("data_format", "NHWC") == "NCHW") {}

 protected:
  StatusOr<ChannelLayout> LayoutOf(const Shape& value, const Shape& bias) const {
    const int axis = channels_first_ ? 1 : value.rank() - 1;
    if (bias.rank() != 1 || value.rank() < 2 || value[axis] != bias[0]) {
      return InvalidArgument("bias has shape ", bias.ToString(), ", which does not fit axis ", axis,
                             " of ", value.ToString());
    }
    ChannelLayout layout;
    layout.channels = bias[0];
    for (int i = 0; i < axis; ++i) layout.outer *= value[i];
    for (int i = axis + 1; i < value.rank(); ++i) layout.inner *= value[i];
    return layout;
  }

 private:
  const bool channels_first_;
};

// In NHWC a few copies of the bias side by side make runs that are worth
// a vector loop when there are few channels.
template <typename T>
class BiasAddKernel final : public BiasKernelBase {
 public:
  using BiasKernelBase::BiasKernelBase;
  Status Compute(KernelContext& context) const override {
    const Tensor& x = context.input(0);
    const Tensor& bias = context.input(1);
    MR_ASSIGN_OR_RETURN(const ChannelLayout l, LayoutOf(x.shape(), bias.shape()));
    const int64_t channels = l.channels;
    const int64_t rows = channels == 0 ? 0 : l.outer;
    const T* from = x.data<T>();
    const T* b = bias.data<T>();
    T* out = context.output(0).mutable_data<T>();
    if (l.inner != 1) {
      ParallelRange(context, rows * channels,
                    std::max<int64_t>(1, kElementsPerTask / (l.inner + 1)),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i) {
                        BinaryRow<functor::Add<T>>(from + i * l.inner, 1, b + i % channels, 0,
                                                   out + i * l.inner, l.inner);
                      }
                    });
      return absl::OkStatus();
    }
    ParallelRange(context, rows, std::max<int64_t>(1, kElementsPerTask / (channels + 1)),
                  [&](int64_t begin, int64_t end) {
                    AddRows(from + begin * channels, end - begin, channels, b,
                            out + begin * channels);
                  });
    return absl::OkStatus();
  }

 private:
  static void AddRows(const T* x, int64_t rows, int64_t channels, const T* bias, T* out) {
    constexpr int64_t kRun = 1024;
    alignas(64) T repeated[kRun];
    const int64_t copies = std::min(kRun / channels, rows);
    if (copies < 2) {
      for (int64_t i = 0; i < rows; ++i) {
        BinaryRow<functor::Add<T>>(x + i * channels, 1, bias, 1, out + i * channels, channels);
      }
      return;
    }
    for (int64_t i = 0; i < copies; ++i) std::copy_n(bias, channels, repeated + i * channels);
    for (int64_t i = 0; i < rows; i += copies) {
      const int64_t n = std::min(copies, rows - i) * channels;
      BinaryRow<functor::Add<T>>(x + i * channels, 1, repeated, 1, out + i * channels, n);
    }
  }
};

template <typename T>
class BiasAddGradKernel final : public BiasKernelBase {
 public:
  using BiasKernelBase::BiasKernelBase;
  Status Compute(KernelContext& context) const override {
    const Tensor& d_out = context.input(0);
    MR_ASSIGN_OR_RETURN(const ChannelLayout l, LayoutOf(d_out.shape(), context.output(0).shape()));
    T* const sums = context.output(0).mutable_data<T>();
    if (l.channels == 0) return absl::OkStatus();
    if (l.inner == 1) {
      return SumMiddle(context, d_out.data<T>(), 1, l.outer, l.channels, sums);
    }
    // [outer, channels, inner]: over the pixels first, then over the images.
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Create({l.outer, l.channels}));
    MR_ASSIGN_OR_RETURN(Tensor rows, context.AllocateScratch(d_out.dtype(), shape));
    MR_RETURN_IF_ERROR(SumMiddle(context, d_out.data<T>(), l.outer * l.channels, l.inner, 1,
                                 rows.mutable_data<T>()));
    return SumMiddle(context, rows.data<T>(), 1, l.outer, l.channels, sums);
  }
};

template <template <typename> class K, typename... Ts>
void AddFormats(KernelRegistry& registry, absl::string_view op) {
  (registry.Add(KernelDef{std::string(op), "CPU", {{"T", {DTypeOf<Ts>::value}}}},
                MakeKernel<K<Ts>>),
   ...);
}

}  // namespace

void RegisterBiasKernels(KernelRegistry& registry) {
  AddFormats<BiasAddKernel, float, double>(registry, "BiasAdd");
  AddFormats<BiasAddGradKernel, float, double>(registry, "BiasAddGrad");
}

}  // namespace millrace
