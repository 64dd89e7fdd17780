#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/register.h"

namespace millrace {
namespace {

// NaN stays, as no comparison holds for it; a bound that is NaN is none.
template <typename T>
T Clipped(T x, T low, T high) {
  const T below = high < x ? high : x;
  return below < low ? low : below;
}

// Each bound is a scalar or has an element for each of t.
template <typename T>
class ClipKernel final : public Kernel {
 public:
  Status Compute(KernelContext& context) const override {
    const Tensor& t = context.input(0);
    for (int i = 1; i < 3; ++i) {
      const Shape& bound = context.input(i).shape();
      if (bound.rank() != 0 && bound != t.shape()) {
        return InvalidArgument(i == 1 ? "clip_value_min" : "clip_value_max",
                               " must be a scalar or have the shape ", t.shape().ToString(),
                               " of t, but has ", bound.ToString());
      }
    }
    const int64_t low_stride = context.input(1).shape().rank() == 0 ? 0 : 1;
    const int64_t high_stride = context.input(2).shape().rank() == 0 ? 0 : 1;
    const T* x = t.data<T>();
    const T* low = context.input(1).data<T>();
    const T* high = context.input(2).data<T>();
    T* out = context.output(0).mutable_data<T>();
    const bool scalars = low_stride == 0 && high_stride == 0;
    ParallelRange(context, t.num_elements(), kElementsPerTask, [&](int64_t begin, int64_t end) {
      if constexpr (kIsVectorType<T>) {
        if (scalars) return vector::Clip(x + begin, *low, *high, out + begin, end - begin);
      }
      for (int64_t i = begin; i < end; ++i) {
        out[i] = Clipped(x[i], low[i * low_stride], high[i * high_stride]);
      }
    });
    return absl::OkStatus();
  }
};

}  // namespace

void RegisterClipKernels(KernelRegistry& registry) {
  AddTyped<ClipKernel, float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t>(
      registry, "ClipByValue", "CPU");
}

}  // namespace millrace
