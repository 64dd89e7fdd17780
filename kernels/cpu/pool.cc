#include <algorithm>
#include <limits>
#include <vector>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/register.h"
#include "kernels/cpu/window_geometry.h"

// Pools over NHWC images. Inner loops run over the channels; images are the units of parallel work,
// so that overlapping windows of one image are added in order.
namespace millrace {
namespace {

struct PreparedPool final : public PreparedShapes {
  int64_t batch = 0;
  int64_t channels = 0;
  WindowAxis axes[2];

  int64_t image_size() const { return axes[0].input * axes[1].input * channels; }
  int64_t out_size() const { return axes[0].output * axes[1].output * channels; }
  int64_t images_per_task() const {
    const int64_t work = std::max<int64_t>(1, out_size()) * axes[0].taps * axes[1].taps;
    return std::max<int64_t>(1, kElementsPerTask / std::max<int64_t>(1, work));
  }
};

StatusOr<std::unique_ptr<PreparedShapes>> MakePool(const WindowAttributes& attributes,
                                                   const Shape& image, const Shape& out) {
  if (image.rank() != 4 || out.rank() != 4 || image[0] != out[0] || image[3] != out[3]) {
    return InvalidArgument("a pool from ", image.ToString(), " to ", out.ToString());
  }
  auto p = std::make_unique<PreparedPool>();
  p->batch = image[0];
  p->channels = image[3];
  for (int i = 0; i < 2; ++i) {
    MR_ASSIGN_OR_RETURN(
        p->axes[i], MakeWindowAxis(attributes, i, image[1 + i], attributes.kernel[i], out[1 + i]));
  }
  return std::unique_ptr<PreparedShapes>(std::move(p));
}

// The inputs that exist among the taps of output `o`.
struct Range {
  int64_t begin, end;
};
Range Covered(const WindowAxis& axis, int64_t o) {
  const int64_t first = o * axis.stride - axis.before;
  return {std::max<int64_t>(first, 0), std::min(first + axis.taps, axis.input)};
}

// Calls window(output pixel, rows, columns) for the outputs of one image.
template <typename Window>
void ForWindows(const PreparedPool& p, Window window) {
  for (int64_t y = 0; y < p.axes[0].output; ++y) {
    const Range rows = Covered(p.axes[0], y);
    for (int64_t x = 0; x < p.axes[1].output; ++x) {
      window(y * p.axes[1].output + x, rows, Covered(p.axes[1], x));
    }
  }
}

// Calls image(images' offset, outputs' offset) for all images.
template <typename Image>
void ForImages(KernelContext& context, const PreparedPool& p, Image image) {
  ParallelRange(context, p.batch, p.images_per_task(), [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) image(n * p.image_size(), n * p.out_size());
  });
}

class PoolKernelBase : public Kernel {
 public:
  explicit PoolKernelBase(const WindowAttributes& attributes) : attributes_(attributes) {}

 protected:
  const WindowAttributes attributes_;
};

template <typename T>
class MaxPoolKernel final : public PoolKernelBase {
 public:
  using PoolKernelBase::PoolKernelBase;

  StatusOr<std::unique_ptr<PreparedShapes>> Prepare(const PrepareContext& c) const override {
    return MakePool(attributes_, c.inputs[0], c.outputs[0]);
  }
  Status Compute(KernelContext& context) const override {
    const auto& p = context.prepared<PreparedPool>();
    const T* images = context.input(0).data<T>();
    T* outs = context.output(0).mutable_data<T>();
    ForImages(context, p, [&](int64_t image_at, int64_t out_at) {
      ForWindows(p, [&](int64_t pixel, Range rows, Range columns) {
        T* out = outs + out_at + pixel * p.channels;
        std::fill_n(out, p.channels, -std::numeric_limits<T>::infinity());
        for (int64_t y = rows.begin; y < rows.end; ++y) {
          for (int64_t x = columns.begin; x < columns.end; ++x) {
            const T* from = images + image_at + (y * p.axes[1].input + x) * p.channels;
            for (int64_t c = 0; c < p.channels; ++c) {
              out[c] = (from[c] > out[c] || from[c] != from[c]) ? from[c] : out[c];
            }
          }
        }
      });
    });
    return absl::OkStatus();
  }
};

// Inputs: the image, the pool's output, its gradient. The first largest element of a window, row
// by row, gets its gradient.
template <typename T>
class MaxPoolGradKernel final : public PoolKernelBase {
 public:
  using PoolKernelBase::PoolKernelBase;

  StatusOr<std::unique_ptr<PreparedShapes>> Prepare(const PrepareContext& c) const override {
    if (c.inputs[1] != c.inputs[2] || c.inputs[0] != c.outputs[0]) {
      return InvalidArgument("output ", c.inputs[1].ToString(), " and its gradient ",
                             c.inputs[2].ToString(), " differ in shape");
    }
    return MakePool(attributes_, c.inputs[0], c.inputs[1]);
  }
  Status Compute(KernelContext& context) const override {
    const auto& p = context.prepared<PreparedPool>();
    const T* images = context.input(0).data<T>();
    const T* outs = context.input(1).data<T>();
    const T* grads = context.input(2).data<T>();
    T* d_images = context.output(0).mutable_data<T>();
    ForImages(context, p, [&](int64_t image_at, int64_t out_at) {
      std::fill_n(d_images + image_at, p.image_size(), T(0));
      std::vector<T> left(p.channels);  // gradients that have found no element yet
      ForWindows(p, [&](int64_t pixel, Range rows, Range columns) {
        const T* out = outs + out_at + pixel * p.channels;
        std::copy_n(grads + out_at + pixel * p.channels, p.channels, left.begin());
        for (int64_t y = rows.begin; y < rows.end; ++y) {
          for (int64_t x = columns.begin; x < columns.end; ++x) {
            const int64_t at = image_at + (y * p.axes[1].input + x) * p.channels;
            Give(p.channels, images + at, out, left.data(), d_images + at);
          }
        }
      });
    });
    return absl::OkStatus();
  }

 private:
  static void Give(int64_t channels, const T* __restrict from, const T* __restrict out,
                   T* __restrict left, T* __restrict to) {
    for (int64_t c = 0; c < channels; ++c) {
      // A NaN is its window's output, and equal to none.
      const bool hit = from[c] == out[c] || from[c] != from[c];
      to[c] += hit ? left[c] : T(0);
      left[c] = hit ? T(0) : left[c];
    }
  }
};

template <typename T>
class AvgPoolKernel final : public PoolKernelBase {
 public:
  using PoolKernelBase::PoolKernelBase;

  StatusOr<std::unique_ptr<PreparedShapes>> Prepare(const PrepareContext& c) const override {
    return MakePool(attributes_, c.inputs[0], c.outputs[0]);
  }
  Status Compute(KernelContext& context) const override {
    const auto& p = context.prepared<PreparedPool>();
    const T* images = context.input(0).data<T>();
    T* outs = context.output(0).mutable_data<T>();
    ForImages(context, p, [&](int64_t image_at, int64_t out_at) {
      ForWindows(p, [&](int64_t pixel, Range rows, Range columns) {
        T* out = outs + out_at + pixel * p.channels;
        std::fill_n(out, p.channels, T(0));
        for (int64_t y = rows.begin; y < rows.end; ++y) {
          for (int64_t x = columns.begin; x < columns.end; ++x) {
            const T* from = images + image_at + (y * p.axes[1].input + x) * p.channels;
            for (int64_t c = 0; c < p.channels; ++c) out[c] += from[c];
          }
        }
        const T count = static_cast<T>((rows.end - rows.begin) * (columns.end - columns.begin));
        for (int64_t c = 0; c < p.channels; ++c) out[c] /= count;
      });
    });
    return absl::OkStatus();
  }
};

// Inputs: the image's shape, the gradient of the output.
template <typename T>
class AvgPoolGradKernel final : public PoolKernelBase {
 public:
  using PoolKernelBase::PoolKernelBase;

  StatusOr<std::unique_ptr<PreparedShapes>> Prepare(const PrepareContext& c) const override {
    return MakePool(attributes_, c.outputs[0], c.inputs[1]);
  }
  Status Compute(KernelContext& context) const override {
    const auto& p = context.prepared<PreparedPool>();
    const T* grads = context.input(1).data<T>();
    T* d_images = context.output(0).mutable_data<T>();
    ForImages(context, p, [&](int64_t image_at, int64_t out_at) {
      std::fill_n(d_images + image_at, p.image_size(), T(0));
      ForWindows(p, [&](int64_t pixel, Range rows, Range columns) {
        const T* grad = grads + out_at + pixel * p.channels;
        const T share =
            T(1) / static_cast<T>((rows.end - rows.begin) * (columns.end - columns.begin));
        for (int64_t y = rows.begin; y < rows.end; ++y) {
          for (int64_t x = columns.begin; x < columns.end; ++x) {
            T* to = d_images + image_at + (y * p.axes[1].input + x) * p.channels;
            for (int64_t c = 0; c < p.channels; ++c) to[c] += grad[c] * share;
          }
        }
      });
    });
    return absl::OkStatus();
  }
};

template <template <typename> class K, typename... Ts>
void AddPool(KernelRegistry& registry, absl::string_view op) {
  (registry.Add(KernelDef{std::string(op), "CPU", {{"T", {DTypeOf<Ts>::value}}}},
                [](const KernelConstruction& c) -> StatusOr<std::unique_ptr<Kernel>> {
                  MR_ASSIGN_OR_RETURN(const WindowAttributes attributes,
                                      WindowAttributes::FromAttrs(c.attrs));
                  return std::unique_ptr<Kernel>(std::make_unique<K<Ts>>(attributes));
                }),
   ...);
}

}  // namespace

void RegisterPoolKernels(KernelRegistry& registry) {
  AddPool<MaxPoolKernel, float, double>(registry, "MaxPool");
  AddPool<MaxPoolGradKernel, float, double>(registry, "MaxPoolGrad");
  AddPool<AvgPoolKernel, float, double>(registry, "AvgPool");
  AddPool<AvgPoolGradKernel, float, double>(registry, "AvgPoolGrad");
}

}  // namespace millrace
