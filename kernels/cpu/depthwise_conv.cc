#include <algorithm>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/register.h"
#include "kernels/cpu/window_geometry.h"

// Convolutions in which each channel has filters of its own: image [n,h,w,c], filter [fh,fw,c,m],
// output [n,oh,ow,c*m].
namespace millrace {
namespace {

struct DepthwiseGeometry {
  int64_t batch = 0, channels = 0, multiplier = 0;
  WindowAxis axes[2];
  int64_t out_channels() const { return channels * multiplier; }
  int64_t image_row() const { return axes[1].input * channels; }
  int64_t out_row() const { return axes[1].output * out_channels(); }
};

StatusOr<DepthwiseGeometry> MakeGeometry(const WindowAttributes& attributes, const Shape& image,
                                         const Shape& filter, const Shape& out) {
  const auto all = [&] {
    return StrCat("image ", image.ToString(), ", filter ", filter.ToString(), ", output ",
                  out.ToString());
  };
  if (image.rank() != 4 || filter.rank() != 4 || out.rank() != 4) {
    return InvalidArgument("a convolution needs rank 4: ", all());
  }
  DepthwiseGeometry g;
  g.batch = image[0];
  g.channels = image[3];
  g.multiplier = filter[3];
  if (out[0] != g.batch || filter[2] != g.channels || out[3] != g.out_channels()) {
    return InvalidArgument("extents do not fit: ", all());
  }
  for (int i = 0; i < 2; ++i) {
    StatusOr<WindowAxis> axis = MakeWindowAxis(attributes, i, image[1 + i], filter[i], out[1 + i]);
    if (!axis.ok()) return Annotate(axis.status(), all());
    g.axes[i] = *axis;
  }
  return g;
}

// The outputs [begin, end) along an axis for which tap `t` meets an input.
struct Meeting {
  int64_t begin, end;
};
Meeting OutputsOfTap(const WindowAxis& axis, int64_t t) {
  // 0 <= o * stride + shift < input
  const int64_t shift = t * axis.dilation - axis.before;
  const int64_t begin = shift >= 0 ? 0 : CeilDiv(-shift, axis.stride);
  const int64_t last = axis.input - 1 - shift;
  const int64_t end = last < 0 ? 0 : last / axis.stride + 1;
  return {std::min(begin, axis.output), std::min(std::max(end, begin), axis.output)};
}

// For all pairs of an output column and the image column that tap (row, column) makes of it:
// visit(image offset, filter offset, output offset), each of the first channel.
template <typename Visit>
void ForColumns(const DepthwiseGeometry& g, int64_t tap_row, int64_t tap_column, int64_t image_row,
                int64_t out_row, const Visit& visit) {
  const WindowAxis& columns = g.axes[1];
  const int64_t filter = (tap_row * columns.taps + tap_column) * g.out_channels();
  const Meeting meeting = OutputsOfTap(columns, tap_column);
  for (int64_t o = meeting.begin; o < meeting.end; ++o) {
    const int64_t in = o * columns.stride + tap_column * columns.dilation - columns.before;
    visit(image_row + in * g.channels, filter, out_row + o * g.out_channels());
  }
}

// Over the rows of one image.
template <typename Visit>
void ForOutputRow(const DepthwiseGeometry& g, int64_t n, int64_t out, const Visit& visit) {
  const WindowAxis& rows = g.axes[0];
  for (int64_t t = 0; t < rows.taps; ++t) {
    const int64_t in = out * rows.stride + t * rows.dilation - rows.before;
    if (in < 0 || in >= rows.input) continue;
    for (int64_t s = 0; s < g.axes[1].taps; ++s) {
      ForColumns(g, t, s, (n * rows.input + in) * g.image_row(),
                 (n * rows.output + out) * g.out_row(), visit);
    }
  }
}

template <typename T>
class DepthwiseKernelBase : public Kernel {
 public:
  explicit DepthwiseKernelBase(const WindowAttributes& attributes) : attributes_(attributes) {}

 protected:
  // Rows of `elements` results each that make a task.
  static int64_t Grain(const DepthwiseGeometry& g, int64_t elements) {
    const int64_t work = elements * g.axes[0].taps * g.axes[1].taps;
    return std::max<int64_t>(1, kElementsPerTask / std::max<int64_t>(1, work));
  }
  const WindowAttributes attributes_;
};

template <typename T>
class ForwardKernel final : public DepthwiseKernelBase<T> {
 public:
  using DepthwiseKernelBase<T>::DepthwiseKernelBase;
  Status Compute(KernelContext& context) const override {
    Tensor& out = context.output(0);
    MR_ASSIGN_OR_RETURN(const DepthwiseGeometry g,
                        MakeGeometry(this->attributes_, context.input(0).shape(),
                                     context.input(1).shape(), out.shape()));
    const T *const x = context.input(0).data<T>(), *const f = context.input(1).data<T>();
    T* const y = out.mutable_data<T>();
    const int64_t channels = g.channels, multiplier = g.multiplier;
    ParallelRange(context, g.batch * g.axes[0].output, this->Grain(g, g.out_row()),
                  [&](int64_t begin, int64_t end) {
                    std::fill(y + begin * g.out_row(), y + end * g.out_row(), T(0));
                    for (int64_t row = begin; row < end; ++row) {
                      ForOutputRow(g, row / g.axes[0].output, row % g.axes[0].output,
                                   [&](int64_t in, int64_t filter, int64_t to) {
                                     for (int64_t c = 0, k = 0; c < channels; ++c) {
                                       for (int64_t m = 0; m < multiplier; ++m, ++k) {
                                         y[to + k] += x[in + c] * f[filter + k];
                                       }
                                     }
                                   });
                    }
                  });
    return absl::OkStatus();
  }
};

// Whole images are tasks: their output rows overlap in the image.
template <typename T>
class BackpropInputKernel final : public DepthwiseKernelBase<T> {
 public:
  using DepthwiseKernelBase<T>::DepthwiseKernelBase;
  Status Compute(KernelContext& context) const override {
    Tensor& out = context.output(0);
    MR_ASSIGN_OR_RETURN(const DepthwiseGeometry g,
                        MakeGeometry(this->attributes_, out.shape(), context.input(1).shape(),
                                     context.input(2).shape()));
    const T *const f = context.input(1).data<T>(), *const dy = context.input(2).data<T>();
    T* const dx = out.mutable_data<T>();
    const int64_t channels = g.channels, multiplier = g.multiplier;
    const int64_t image = g.axes[0].input * g.image_row();
    ParallelRange(context, g.batch, this->Grain(g, g.axes[0].output * g.out_row()),
                  [&](int64_t begin, int64_t end) {
                    std::fill(dx + begin * image, dx + end * image, T(0));
                    for (int64_t n = begin; n < end; ++n) {
                      for (int64_t row = 0; row < g.axes[0].output; ++row) {
                        ForOutputRow(g, n, row, [&](int64_t in, int64_t filter, int64_t from) {
                          for (int64_t c = 0, k = 0; c < channels; ++c) {
                            T sum = 0;
                            for (int64_t m = 0; m < multiplier; ++m, ++k) {
                              sum += dy[from + k] * f[filter + k];
                            }
                            dx[in + c] += sum;
                          }
                        });
                      }
                    }
                  });
    return absl::OkStatus();
  }
};

// Each tap is a task, which sums over all images.
template <typename T>
class BackpropFilterKernel final : public DepthwiseKernelBase<T> {
 public:
  using DepthwiseKernelBase<T>::DepthwiseKernelBase;
  Status Compute(KernelContext& context) const override {
    Tensor& out = context.output(0);
    MR_ASSIGN_OR_RETURN(const DepthwiseGeometry g,
                        MakeGeometry(this->attributes_, context.input(0).shape(), out.shape(),
                                     context.input(2).shape()));
    const T *const x = context.input(0).data<T>(), *const dy = context.input(2).data<T>();
    T* const df = out.mutable_data<T>();
    std::fill_n(df, out.num_elements(), T(0));
    const WindowAxis& rows = g.axes[0];
    const int64_t channels = g.channels, multiplier = g.multiplier;
    ParallelRange(context, rows.taps * g.axes[1].taps, 1, [&](int64_t begin, int64_t end) {
      for (int64_t tap = begin; tap < end; ++tap) {
        const int64_t t = tap / g.axes[1].taps, s = tap % g.axes[1].taps;
        const Meeting meeting = OutputsOfTap(rows, t);
        for (int64_t i = 0; i < g.batch * rows.output; ++i) {
          const int64_t n = i / rows.output, o = i % rows.output;
          if (o < meeting.begin || o >= meeting.end) continue;
          const int64_t in = o * rows.stride + t * rows.dilation - rows.before;
          ForColumns(g, t, s, (n * rows.input + in) * g.image_row(), i * g.out_row(),
                     [&](int64_t image, int64_t filter, int64_t from) {
                       for (int64_t c = 0, k = 0; c < channels; ++c) {
                         for (int64_t m = 0; m < multiplier; ++m, ++k) {
                           df[filter + k] += x[image + c] * dy[from + k];
                         }
                       }
                     });
        }
      }
    });
    return absl::OkStatus();
  }
};

template <template <typename> class K, typename... Ts>
void AddDepthwise(KernelRegistry& registry, absl::string_view op) {
  (registry.Add(KernelDef{std::string(op), "CPU", {{"T", {DTypeOf<Ts>::value}}}},
                [](const KernelConstruction& c) -> StatusOr<std::unique_ptr<Kernel>> {
                  MR_ASSIGN_OR_RETURN(const WindowAttributes attributes,
                                      WindowAttributes::FromAttrs(c.attrs));
                  return std::unique_ptr<Kernel>(std::make_unique<K<Ts>>(attributes));
                }),
   ...);
}

}  // namespace

void RegisterDepthwiseConvKernels(KernelRegistry& registry) {
  AddDepthwise<ForwardKernel, float, double>(registry, "DepthwiseConv2dNative");
  AddDepthwise<BackpropInputKernel, float, double>(registry, "DepthwiseConv2dNativeBackpropInput");
  AddDepthwise<BackpropFilterKernel, float, double>(registry,
                                                    "DepthwiseConv2dNativeBackpropFilter");
}

}  // namespace millrace
