#include <algorithm>
#include <vector>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/register.h"
#include "kernels/cpu/vector_conv.h"
#include "kernels/cpu/vector_math.h"
#include "kernels/cpu/window_geometry.h"

// Convolutions, by the direct loops of vector_conv.h: work is cut into strips, some rows of one
// image, that are copied with their padding to scratch memory.
namespace millrace {
namespace {

constexpr double kFlopsPerTask = 1e7;
constexpr double kFlopsPerStrip = 2e7;
constexpr int64_t kMaxTasks = 64;

// How `batch` images of `height` output rows are cut: a block is a task of some strips, a strip
// some rows of one image. Depends on shapes only.
struct Cut {
  int64_t rows_per_strip = 1;
  int64_t strips_per_image = 1;
  int64_t strips_per_block = 1;
  int64_t blocks = 0;

  Cut() = default;
  Cut(int64_t batch, int64_t height, double flops_per_row, int64_t max_blocks) {
    if (height == 0 || batch == 0) return;
    rows_per_strip = ItemsPerBlock(height, flops_per_row, kFlopsPerStrip, height);
    strips_per_image = CeilDiv(height, rows_per_strip);
    const int64_t strips = batch * strips_per_image;
    strips_per_block = ItemsPerBlock(strips, flops_per_row * static_cast<double>(rows_per_strip),
                                     kFlopsPerTask, max_blocks);
    blocks = CeilDiv(strips, strips_per_block);
  }

  // Calls body(image, first row, rows) for the strips of a block, in their order.
  template <typename Body>
  void ForStrips(int64_t block, int64_t batch, int64_t height, Body body) const {
    const int64_t end = std::min((block + 1) * strips_per_block, batch * strips_per_image);
    for (int64_t strip = block * strips_per_block; strip < end; ++strip) {
      const int64_t row = strip % strips_per_image * rows_per_strip;
      body(strip / strips_per_image, row, std::min(rows_per_strip, height - row));
    }
  }
};

// An image of `height` x `width` pixels laid into a frame: pixel (y, x) at row before[0] + y *
// spread[0] and column before[1] + x * spread[1], zeros elsewhere. Some of it may fall outside.
struct Frame {
  int64_t height = 0, width = 0, channels = 0;
  int64_t before[2] = {0, 0};
  int64_t spread[2] = {1, 1};
  int64_t columns = 0;  // of the frame

  int64_t row_size() const { return columns * channels; }

  // Rows [first, first + rows) of the frame.
  template <typename T>
  void Fill(const T* image, int64_t first, int64_t rows, T* out) const {
    std::fill_n(out, rows * row_size(), T(0));
    // The pixels whose column is inside.
    const int64_t x_begin = before[1] >= 0 ? 0 : CeilDiv(-before[1], spread[1]);
    const int64_t x_end =
        std::min(width, before[1] >= columns ? 0 : (columns - 1 - before[1]) / spread[1] + 1);
    if (x_begin >= x_end) return;
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t offset = first + i - before[0];
      if (offset < 0 || offset % spread[0] != 0 || offset / spread[0] >= height) continue;
      const T* from = image + (offset / spread[0] * width + x_begin) * channels;
      T* to = out + i * row_size() + (before[1] + x_begin * spread[1]) * channels;
      if (spread[1] == 1) {
        std::copy_n(from, (x_end - x_begin) * channels, to);
        continue;
      }
      for (int64_t x = x_begin; x < x_end; ++x) {
        std::copy_n(from, channels, to);
        from += channels;
        to += spread[1] * channels;
      }
    }
  }
};

struct PreparedConv final : public PreparedShapes {
  ConvGeometry g;
  vector::DirectConv direct;  // but for out_height, that of a strip
  Frame frame;                // around what `direct` reads
  Cut cut;

  // Rows of the frame that `rows` output rows read.
  int64_t frame_rows(int64_t rows, const WindowAxis& axis, int64_t stride) const {
    return rows == 0 ? 0 : (rows - 1) * stride + axis.span();
  }
  bool empty() const { return g.batch == 0 || g.image_size() == 0 || g.out_size() == 0; }
};

// Padding can be far larger than the image.
Status CheckFrame(const PreparedConv& p, int64_t rows) {
  StatusOr<Shape> shape = Shape::Create({rows, p.frame.columns, p.frame.channels});
  return shape.ok() ? absl::OkStatus() : Annotate(shape.status(), "the padded image");
}

// The forward pass, and what the gradient of the filter shares with it.
Status SetForward(PreparedConv& p) {
  const ConvGeometry& g = p.g;
  const WindowAxis& h = g.axes[0];
  const WindowAxis& w = g.axes[1];
  p.frame.height = h.input;
  p.frame.width = w.input;
  p.frame.channels = g.channels;
  p.frame.before[0] = h.before;
  p.frame.before[1] = w.before;
  p.frame.columns = p.frame_rows(w.output, w, w.stride);
  MR_RETURN_IF_ERROR(CheckFrame(p, p.frame_rows(h.output, h, h.stride)));
  p.direct = {
      h.output, w.output, g.out_channels, h.stride * p.frame.row_size(),   w.stride * g.channels,
      h.taps,   w.taps,   g.channels,     h.dilation * p.frame.row_size(), w.dilation * g.channels};
  return absl::OkStatus();
}

// The gradient of the image: a convolution of the output's gradient, its pixels `stride` apart,
// with the filter turned by 180 degrees.
Status SetImageGradient(PreparedConv& p) {
  const ConvGeometry& g = p.g;
  const WindowAxis& h = g.axes[0];
  const WindowAxis& w = g.axes[1];
  p.frame.height = h.output;
  p.frame.width = w.output;
  p.frame.channels = g.out_channels;
  for (int i = 0; i < 2; ++i) {
    p.frame.before[i] = g.axes[i].span() - 1 - g.axes[i].before;
    p.frame.spread[i] = g.axes[i].stride;
  }
  p.frame.columns = p.frame_rows(w.input, w, 1);
  MR_RETURN_IF_ERROR(CheckFrame(p, p.frame_rows(h.input, h, 1)));
  p.direct = {h.input,
              w.input,
              g.channels,
              p.frame.row_size(),
              g.out_channels,
              h.taps,
              w.taps,
              g.out_channels,
              h.dilation * p.frame.row_size(),
              w.dilation * g.out_channels};
  return absl::OkStatus();
}

// out[n, height, width, channels] = the convolution `p.direct` of the framed images.
template <typename T>
Status RunForward(KernelContext& context, const PreparedConv& p, const T* images,
                  int64_t image_size, int64_t row_stride, const T* filter, T* out) {
  const vector::DirectConv& direct = p.direct;
  MR_ASSIGN_OR_RETURN(
      Tensor packed,
      context.AllocateScratch(DTypeOf<T>::value, Shape({vector::PackedFilterSize(direct)})));
  vector::PackFilter(direct, filter, packed.mutable_data<T>());
  const int64_t out_row = direct.out_width * direct.out_channels;
  const WindowAxis& h = p.g.axes[0];
  return ParallelBlocks(context, p.cut.blocks, [&](int64_t block) -> Status {
    const int64_t most_rows = p.frame_rows(p.cut.rows_per_strip, h, row_stride);
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Create({most_rows, p.frame.row_size()}));
    MR_ASSIGN_OR_RETURN(Tensor framed, context.AllocateScratch(DTypeOf<T>::value, shape));
    T* frame = framed.mutable_data<T>();
    p.cut.ForStrips(block, p.g.batch, direct.out_height,
                    [&](int64_t image, int64_t row, int64_t rows) {
                      p.frame.Fill(images + image * image_size, row * row_stride,
                                   p.frame_rows(rows, h, row_stride), frame);
                      vector::DirectConv strip = direct;
                      strip.out_height = rows;
                      vector::Forward(strip, frame, packed.data<T>(),
                                      out + (image * direct.out_height + row) * out_row);
                    });
    return absl::OkStatus();
  });
}

class ConvKernelBase : public Kernel {
 public:
  explicit ConvKernelBase(const WindowAttributes& attributes) : attributes_(attributes) {}

 protected:
  const WindowAttributes attributes_;
};

template <typename T>
class Conv2DKernel final : public ConvKernelBase {
 public:
  using ConvKernelBase::ConvKernelBase;

  StatusOr<std::unique_ptr<PreparedShapes>> Prepare(const PrepareContext& c) const override {
    auto p = std::make_unique<PreparedConv>();
    MR_ASSIGN_OR_RETURN(p->g,
                        MakeConvGeometry(attributes_, c.inputs[0], c.inputs[1], c.outputs[0]));
    MR_RETURN_IF_ERROR(SetForward(*p));
    p->cut = Cut(p->g.batch, p->g.axes[0].output, p->g.flops_per_row(), kMaxTasks);
    return std::unique_ptr<PreparedShapes>(std::move(p));
  }

  Status Compute(KernelContext& context) const override {
    const auto& p = context.prepared<PreparedConv>();
    T* out = context.output(0).mutable_data<T>();
    if (p.empty()) {
      std::fill_n(out, context.output(0).num_elements(), T(0));
      return absl::OkStatus();
    }
    return RunForward(context, p, context.input(0).data<T>(), p.g.image_size(), p.g.axes[0].stride,
                      context.input(1).data<T>(), out);
  }
};

// Inputs: the image's shape, the filter, the gradient of the output.
template <typename T>
class Conv2DBackpropInputKernel final : public ConvKernelBase {
 public:
  using ConvKernelBase::ConvKernelBase;

  StatusOr<std::unique_ptr<PreparedShapes>> Prepare(const PrepareContext& c) const override {
    auto p = std::make_unique<PreparedConv>();
    MR_ASSIGN_OR_RETURN(p->g,
                        MakeConvGeometry(attributes_, c.outputs[0], c.inputs[1], c.inputs[2]));
    MR_RETURN_IF_ERROR(SetImageGradient(*p));
    const double flops_per_row =
        2.0 * static_cast<double>(p->g.axes[1].input) * static_cast<double>(p->g.filter_size());
    p->cut = Cut(p->g.batch, p->g.axes[0].input, flops_per_row, kMaxTasks);
    return std::unique_ptr<PreparedShapes>(std::move(p));
  }

  Status Compute(KernelContext& context) const override {
    const auto& p = context.prepared<PreparedConv>();
    const ConvGeometry& g = p.g;
    T* out = context.output(0).mutable_data<T>();
    if (p.empty()) {
      std::fill_n(out, context.output(0).num_elements(), T(0));
      return absl::OkStatus();
    }
    MR_ASSIGN_OR_RETURN(Tensor turned,
                        context.AllocateScratch(DTypeOf<T>::value, Shape({g.filter_size()})));
    Turn(g, context.input(1).data<T>(), turned.mutable_data<T>());
    return RunForward<T>(context, p, context.input(2).data<T>(), g.out_size(), 1, turned.data<T>(),
                         out);
  }

 private:
  // [fh, fw, c, k] turned by 180 degrees and its channels exchanged: [fh, fw, k, c].
  static void Turn(const ConvGeometry& g, const T* filter, T* turned) {
    const int64_t taps = g.axes[0].taps * g.axes[1].taps;
    for (int64_t t = 0; t < taps; ++t) {
      const T* from = filter + (taps - 1 - t) * g.channels * g.out_channels;
      for (int64_t k = 0; k < g.out_channels; ++k) {
        for (int64_t c = 0; c < g.channels; ++c) *turned++ = from[c * g.out_channels + k];
      }
    }
  }
};

// Inputs: the image, the filter's shape, the gradient of the output. Each block sums the gradients
// of its strips; the blocks' sums are added in their order.
template <typename T>
class Conv2DBackpropFilterKernel final : public ConvKernelBase {
 public:
  using ConvKernelBase::ConvKernelBase;

  StatusOr<std::unique_ptr<PreparedShapes>> Prepare(const PrepareContext& c) const override {
    auto p = std::make_unique<PreparedConv>();
    MR_ASSIGN_OR_RETURN(p->g,
                        MakeConvGeometry(attributes_, c.inputs[0], c.outputs[0], c.inputs[2]));
    MR_RETURN_IF_ERROR(SetForward(*p));
    // Bounds the memory of the partial sums.
    constexpr int64_t kMostElements = int64_t{1} << 24;
    const int64_t most =
        std::clamp<int64_t>(kMostElements / std::max<int64_t>(1, p->g.filter_size()), 1, 16);
    p->cut = Cut(p->g.batch, p->g.axes[0].output, p->g.flops_per_row(), most);
    return std::unique_ptr<PreparedShapes>(std::move(p));
  }

  Status Compute(KernelContext& context) const override {
    const auto& p = context.prepared<PreparedConv>();
    const ConvGeometry& g = p.g;
    T* out = context.output(0).mutable_data<T>();
    if (p.empty()) {
      std::fill_n(out, context.output(0).num_elements(), T(0));
      return absl::OkStatus();
    }
    const int64_t size = g.filter_size();
    T* sums = out;
    Tensor partial;
    if (p.cut.blocks > 1) {
      MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Create({p.cut.blocks, size}));
      MR_ASSIGN_OR_RETURN(partial, context.AllocateScratch(DTypeOf<T>::value, shape));
      sums = partial.mutable_data<T>();
    }
    MR_RETURN_IF_ERROR(ParallelBlocks(context, p.cut.blocks, [&](int64_t block) {
      return RunBlock(context, p, block, sums + block * size);
    }));
    if (p.cut.blocks == 1) return absl::OkStatus();
    ParallelRange(context, size, kElementsPerTask, [&](int64_t begin, int64_t end) {
      std::copy(sums + begin, sums + end, out + begin);
      for (int64_t b = 1; b < p.cut.blocks; ++b) {
        vector::Run(vector::Binary::kAdd, vector::Operands::kBothVectors, out + begin,
                    sums + b * size + begin, out + begin, end - begin);
      }
    });
    return absl::OkStatus();
  }

 private:
  static Status RunBlock(KernelContext& context, const PreparedConv& p, int64_t block, T* sum) {
    const ConvGeometry& g = p.g;
    const WindowAxis& h = g.axes[0];
    vector::DirectConv strip = p.direct;
    strip.out_height = p.cut.rows_per_strip;
    const int64_t frame_size = p.frame_rows(p.cut.rows_per_strip, h, h.stride) * p.frame.row_size();
    MR_ASSIGN_OR_RETURN(const Shape shape,
                        Shape::Create({frame_size + vector::FilterGradientWorkspace(strip)}));
    MR_ASSIGN_OR_RETURN(Tensor scratch, context.AllocateScratch(DTypeOf<T>::value, shape));
    T* frame = scratch.mutable_data<T>();
    std::fill_n(sum, g.filter_size(), T(0));
    const T* images = context.input(0).data<T>();
    const T* d_out = context.input(2).data<T>();
    const int64_t out_row = p.direct.out_width * p.direct.out_channels;
    p.cut.ForStrips(block, g.batch, h.output, [&](int64_t image, int64_t row, int64_t rows) {
      p.frame.Fill(images + image * g.image_size(), row * h.stride, p.frame_rows(rows, h, h.stride),
                   frame);
      strip.out_height = rows;
      vector::FilterGradient(strip, frame, d_out + (image * h.output + row) * out_row, sum,
                             frame + frame_size);
    });
    return absl::OkStatus();
  }
};

template <template <typename> class K, typename... Ts>
void AddConv(KernelRegistry& registry, absl::string_view op) {
  (registry.Add(KernelDef{std::string(op), "CPU", {{"T", {DTypeOf<Ts>::value}}}},
                [](const KernelConstruction& c) -> StatusOr<std::unique_ptr<Kernel>> {
                  MR_ASSIGN_OR_RETURN(const WindowAttributes attributes,
                                      WindowAttributes::FromAttrs(c.attrs));
                  return std::unique_ptr<Kernel>(std::make_unique<K<Ts>>(attributes));
                }),
   ...);
}

}  // namespace

void RegisterConvKernels(KernelRegistry& registry) {
  AddConv<Conv2DKernel, float, double>(registry, "Conv2D");
  AddConv<Conv2DBackpropInputKernel, float, double>(registry, "Conv2DBackpropInput");
  AddConv<Conv2DBackpropFilterKernel, float, double>(registry, "Conv2DBackpropFilter");
}

}  // namespace millrace
