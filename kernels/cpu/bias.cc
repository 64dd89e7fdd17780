#include <algorithm>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/reduction.h"
#include "kernels/cpu/register.h"

namespace millrace {
namespace {

Status CheckFormat(const AttrMap& attrs) {
  const std::string format = attrs.GetOr<std::string>("data_format", "NHWC");
  if (format == "NHWC") return absl::OkStatus();
  return Unimplemented("data_format '", format, "' on a CPU; transpose to NHWC");
}

template <typename K>
StatusOr<std::unique_ptr<Kernel>> CreateNhwc(const KernelConstruction& c) {
  MR_RETURN_IF_ERROR(CheckFormat(c.attrs));
  return std::unique_ptr<Kernel>(std::make_unique<K>());
}

// Adds bias[c] along the last axis. A few copies of the bias side by side make runs that are worth
// a vector loop when there are few channels.
template <typename T>
class BiasAddKernel final : public Kernel {
 public:
  static StatusOr<std::unique_ptr<Kernel>> Create(const KernelConstruction& c) {
    return CreateNhwc<BiasAddKernel>(c);
  }
  Status Compute(KernelContext& context) const override {
    const Tensor& x = context.input(0);
    const Tensor& bias = context.input(1);
    const int64_t channels = bias.num_elements();
    const Shape& shape = x.shape();
    if (bias.shape().rank() != 1 || shape.rank() < 2 || shape[shape.rank() - 1] != channels) {
      return InvalidArgument("bias has shape ", bias.shape().ToString(),
                             ", which does not fit the last axis of ", shape.ToString());
    }
    const int64_t rows = channels == 0 ? 0 : x.num_elements() / channels;
    const T* from = x.data<T>();
    const T* b = bias.data<T>();
    T* out = context.output(0).mutable_data<T>();
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
class BiasAddGradKernel final : public Kernel {
 public:
  static StatusOr<std::unique_ptr<Kernel>> Create(const KernelConstruction& c) {
    return CreateNhwc<BiasAddGradKernel>(c);
  }
  Status Compute(KernelContext& context) const override {
    const Tensor& d_out = context.input(0);
    const int64_t channels = context.output(0).num_elements();
    if (channels == 0) return absl::OkStatus();
    return SumMiddle(context, d_out.data<T>(), 1, d_out.num_elements() / channels, channels,
                     context.output(0).mutable_data<T>());
  }
};

}  // namespace

void RegisterBiasKernels(KernelRegistry& registry) {
  AddTyped<BiasAddKernel, float, double>(registry, "BiasAdd", "CPU");
  AddTyped<BiasAddGradKernel, float, double>(registry, "BiasAddGrad", "CPU");
}

}  // namespace millrace
