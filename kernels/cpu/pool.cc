#include <algorithm>
#include <vector>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/register.h"
#include "kernels/cpu/vector_pool.h"
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

int64_t First(const PreparedPool& p, Range rows, Range columns) {
  return (rows.begin * p.axes[1].input + columns.begin) * p.channels;
}
// `count` windows side by side, of the same rows and of columns that begin a stride apart.
vector::PoolWindows WindowsOf(const PreparedPool& p, int64_t count, Range rows, Range columns) {
  return {count,
          p.axes[1].stride * p.channels,
          rows.end - rows.begin,
          columns.end - columns.begin,
          p.axes[1].input * p.channels,
          p.channels};
}

// Calls windows(first output pixel, count, rows, columns of the first) for runs of outputs of one
// image whose windows have the same extents, as all have that do not touch the padding.
template <typename Windows>
void ForWindows(const PreparedPool& p, Windows windows) {
  const WindowAxis& w = p.axes[1];
  for (int64_t y = 0; y < p.axes[0].output; ++y) {
    const Range rows = Covered(p.axes[0], y);
    for (int64_t x = 0; x < w.output;) {
      const Range columns = Covered(w, x);
      int64_t count = 1;
      for (; x + count < w.output; ++count) {
        const Range next = Covered(w, x + count);
        const int64_t step = count * w.stride;
        if (next.begin != columns.begin + step || next.end != columns.end + step) break;
      }
      windows(y * w.output + x, count, rows, columns);
      x += count;
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
      ForWindows(p, [&](int64_t pixel, int64_t count, Range rows, Range columns) {
        vector::MaxWindow(WindowsOf(p, count, rows, columns),
                          images + image_at + First(p, rows, columns),
                          outs + out_at + pixel * p.channels);
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
      ForWindows(p, [&](int64_t pixel, int64_t count, Range rows, Range columns) {
        const int64_t at = image_at + First(p, rows, columns);
        const int64_t out = out_at + pixel * p.channels;
        vector::MaxWindowGradient(WindowsOf(p, count, rows, columns), images + at, outs + out,
                                  grads + out, d_images + at);
      });
    });
    return absl::OkStatus();
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
      ForWindows(p, [&](int64_t pixel, int64_t count, Range rows, Range columns) {
        const T size = static_cast<T>((rows.end - rows.begin) * (columns.end - columns.begin));
        for (int64_t i = 0; i < count; ++i) {
          T* out = outs + out_at + (pixel + i) * p.channels;
          std::fill_n(out, p.channels, T(0));
          for (int64_t y = rows.begin; y < rows.end; ++y) {
            const int64_t start = y * p.axes[1].input + columns.begin + i * p.axes[1].stride;
            const T* from = images + image_at + start * p.channels;
            for (int64_t x = columns.begin; x < columns.end; ++x, from += p.channels) {
              for (int64_t c = 0; c < p.channels; ++c) out[c] += from[c];
            }
          }
          for (int64_t c = 0; c < p.channels; ++c) out[c] /= size;
        }
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
      ForWindows(p, [&](int64_t pixel, int64_t count, Range rows, Range columns) {
        const T share =
            T(1) / static_cast<T>((rows.end - rows.begin) * (columns.end - columns.begin));
        for (int64_t i = 0; i < count; ++i) {
          const T* grad = grads + out_at + (pixel + i) * p.channels;
          for (int64_t y = rows.begin; y < rows.end; ++y) {
            const int64_t start = y * p.axes[1].input + columns.begin + i * p.axes[1].stride;
            T* to = d_images + image_at + start * p.channels;
            for (int64_t x = columns.begin; x < columns.end; ++x, to += p.channels) {
              for (int64_t c = 0; c < p.channels; ++c) to[c] += grad[c] * share;
            }
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
