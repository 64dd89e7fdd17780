#include <algorithm>
#include <vector>

#include "kernels/cpu/conv_plan.h"
#include "kernels/cpu/register.h"
#include "kernels/cpu/vector_math.h"

namespace millrace {
namespace {

// Elements of framed images that are worked on at once: they stay in the caches.
constexpr int64_t kForwardFrames = 65536;
constexpr int64_t kGradientFrames = 131072;
constexpr int64_t kSharedFrames = 1 << 21;

template <typename T>
StatusOr<Tensor> Scratch(KernelContext& context, std::initializer_list<int64_t> dims) {
  MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Create({dims.begin(), dims.size()}));
  return context.AllocateScratch(DTypeOf<T>::value, shape);
}

// Gives the framed rows that a run of strips reads: copied to `memory`, or where they are.
template <typename T>
const T* FramedRun(const ConvPlan& p, const ConvCut::Run& run, const T* images, T* memory) {
  const int64_t image_size = p.frame.height * p.frame.width * p.frame.channels;
  const int64_t first = run.row * p.row_stride;
  const T* from = images + run.image * image_size;
  if (!p.frame.copied) return from + first * p.frame.row_size();
  for (int64_t i = 0; i < run.images; ++i) {
    p.frame.Fill(from + i * image_size, first, p.frame_rows(run.rows),
                 memory + i * p.strip_frame_size());
  }
  return memory;
}

// The call for a run of strips and a block of channels.
vector::DirectConv CallFor(const ConvPlan& p, const ConvCut::Run& run, int64_t channel) {
  vector::DirectConv call = p.direct;
  call.images = run.images;
  call.image_step = p.frame.copied ? p.strip_frame_size() : p.image_frame_size();
  call.out_height = run.rows;
  call.out_channels = std::min(p.cut.channel_block, p.direct.out_channels - channel);
  return call;
}

int64_t MostImages(const ConvPlan& p, int64_t budget) {
  const int64_t size = p.frame.copied ? p.strip_frame_size() : p.image_frame_size();
  return std::clamp<int64_t>(budget / std::max<int64_t>(1, size), 1, p.cut.strips_per_block);
}

// out[n, height, width, channels] = the convolution `p.direct` of the framed images.
template <typename T>
Status RunForward(KernelContext& context, const ConvPlan& p, const T* images,
                  const vector::FilterLayout<T>& filter, T* out) {
  const vector::DirectConv& d = p.direct;
  const int64_t taps = d.taps_height * d.taps_width;
  MR_ASSIGN_OR_RETURN(
      Tensor packed_memory,
      Scratch<T>(context, {vector::PackedFilterSize(taps, d.channels, d.out_channels)}));
  T* packed = packed_memory.mutable_data<T>();
  const auto packed_at = [&](int64_t channel) { return packed + taps * d.channels * channel; };
  MR_RETURN_IF_ERROR(ParallelBlocks(context, p.cut.channel_blocks, [&](int64_t block) -> Status {
    const int64_t channel = block * p.cut.channel_block;
    vector::FilterLayout<T> part = filter;
    part.first += channel * filter.out_step;
    vector::PackFilter(CallFor(p, {0, 1, 0, 1}, channel), part, packed_at(channel));
    return absl::OkStatus();
  }));
  const int64_t most_images = MostImages(p, kForwardFrames);
  return ParallelBlocks(context, p.cut.tasks(), [&](int64_t task) -> Status {
    const int64_t channel = task % p.cut.channel_blocks * p.cut.channel_block;
    Tensor framed;
    if (p.frame.copied) {
      MR_ASSIGN_OR_RETURN(framed, Scratch<T>(context, {most_images, p.strip_frame_size()}));
    }
    p.cut.ForRuns(task / p.cut.channel_blocks, most_images, [&](const ConvCut::Run& run) {
      const T* image = FramedRun(p, run, images, framed.mutable_data<T>());
      vector::Forward(
          CallFor(p, run, channel), image, packed_at(channel),
          out + (run.image * d.out_height + run.row) * d.out_width * d.out_step + channel);
    });
    return absl::OkStatus();
  });
}

class ConvKernelBase : public Kernel {
 public:
  explicit ConvKernelBase(const WindowAttributes& attributes) : attributes_(attributes) {}

 protected:
  using Prepared = StatusOr<std::unique_ptr<PreparedShapes>>;
  const WindowAttributes attributes_;
};

template <typename T>
class Conv2DKernel final : public ConvKernelBase {
 public:
  using ConvKernelBase::ConvKernelBase;

  Prepared Prepare(const PrepareContext& c) const override {
    MR_ASSIGN_OR_RETURN(const ConvGeometry g,
                        MakeConvGeometry(attributes_, c.inputs[0], c.inputs[1], c.outputs[0]));
    return PlanForward(g);
  }

  Status Compute(KernelContext& context) const override {
    const auto& p = context.prepared<ConvPlan>();
    T* out = context.output(0).mutable_data<T>();
    if (p.empty()) {
      std::fill_n(out, context.output(0).num_elements(), T(0));
      return absl::OkStatus();
    }
    const vector::FilterLayout<T> filter{context.input(1).data<T>(),
                                         p.g.channels * p.g.out_channels, p.g.out_channels, 1};
    return RunForward(context, p, context.input(0).data<T>(), filter, out);
  }
};

// Inputs: the image's shape, the filter, the gradient of the output.
template <typename T>
class Conv2DBackpropInputKernel final : public ConvKernelBase {
 public:
  using ConvKernelBase::ConvKernelBase;

  Prepared Prepare(const PrepareContext& c) const override {
    MR_ASSIGN_OR_RETURN(const ConvGeometry g,
                        MakeConvGeometry(attributes_, c.outputs[0], c.inputs[1], c.inputs[2]));
    return PlanImageGradient(g);
  }

  Status Compute(KernelContext& context) const override {
    const auto& p = context.prepared<ConvPlan>();
    T* out = context.output(0).mutable_data<T>();
    if (p.empty()) {
      std::fill_n(out, context.output(0).num_elements(), T(0));
      return absl::OkStatus();
    }
    // Turned by 180 degrees, its input and output channels exchanged.
    const int64_t taps = p.g.axes[0].taps * p.g.axes[1].taps;
    const int64_t tap_size = p.g.channels * p.g.out_channels;
    const vector::FilterLayout<T> filter{context.input(1).data<T>() + (taps - 1) * tap_size,
                                         -tap_size, 1, p.g.out_channels};
    return RunForward(context, p, context.input(2).data<T>(), filter, out);
  }
};

// Inputs: the image, the filter's shape, the gradient of the output.
template <typename T>
class Conv2DBackpropFilterKernel final : public ConvKernelBase {
 public:
  using ConvKernelBase::ConvKernelBase;

  Prepared Prepare(const PrepareContext& c) const override {
    MR_ASSIGN_OR_RETURN(const ConvGeometry g,
                        MakeConvGeometry(attributes_, c.inputs[0], c.outputs[0], c.inputs[2]));
    return PlanFilterGradient(g);
  }

  Status Compute(KernelContext& context) const override {
    const auto& p = context.prepared<ConvPlan>();
    T* out = context.output(0).mutable_data<T>();
    std::fill_n(out, context.output(0).num_elements(), T(0));
    if (p.empty()) return absl::OkStatus();
    const T* images = context.input(0).data<T>();
    const T* d_out = context.input(2).data<T>();
    return p.by_filter ? ByFilter(context, p, images, d_out, out)
                       : ByImages(context, p, images, d_out, out);
  }

 private:
  // Each block of images has sums of its own, which are added in their order.
  static Status ByImages(KernelContext& context, const ConvPlan& p, const T* images, const T* d_out,
                         T* out) {
    const int64_t size = p.g.filter_size();
    const int64_t blocks = p.cut.blocks();
    T* sums = out;
    Tensor partial;
    if (blocks > 1) {
      MR_ASSIGN_OR_RETURN(partial, Scratch<T>(context, {blocks, size}));
      sums = partial.mutable_data<T>();
      std::fill_n(sums, blocks * size, T(0));
    }
    const int64_t most_images = MostImages(p, kGradientFrames);
    MR_RETURN_IF_ERROR(ParallelBlocks(context, blocks, [&](int64_t block) -> Status {
      ConvCut::Run largest{0, most_images, 0, p.cut.rows_per_strip};
      const int64_t frames = p.frame.copied ? most_images * p.strip_frame_size() : 0;
      const int64_t workspace = vector::FilterGradientWorkspace(CallFor(p, largest, 0));
      MR_ASSIGN_OR_RETURN(Tensor scratch, Scratch<T>(context, {frames + workspace}));
      T* memory = scratch.mutable_data<T>();
      p.cut.ForRuns(block, most_images, [&](const ConvCut::Run& run) {
        const T* image = FramedRun(p, run, images, memory);
        vector::FilterGradient(CallFor(p, run, 0), image, GradientRow(p, d_out, run),
                               sums + block * size, memory + frames);
      });
      return absl::OkStatus();
    }));
    if (blocks == 1) return absl::OkStatus();
    ParallelRange(context, size, kElementsPerTask, [&](int64_t begin, int64_t end) {
      std::copy(sums + begin, sums + end, out + begin);
      for (int64_t b = 1; b < blocks; ++b) {
        vector::Run(vector::Binary::kAdd, vector::Operands::kBothVectors, out + begin,
                    sums + b * size + begin, out + begin, end - begin);
      }
    });
    return absl::OkStatus();
  }

  // Each task adds up a row of taps and a block of channels over all images.
  static Status ByFilter(KernelContext& context, const ConvPlan& p, const T* images, const T* d_out,
                         T* out) {
    const int64_t chunk = std::clamp<int64_t>(
        kSharedFrames / std::max<int64_t>(1, p.image_frame_size()), 1, p.g.batch);
    Tensor framed;
    if (p.frame.copied) {
      MR_ASSIGN_OR_RETURN(framed, Scratch<T>(context, {chunk, p.image_frame_size()}));
    }
    T* frames = framed.mutable_data<T>();
    const int64_t taps_row = p.direct.taps_width * p.g.channels * p.g.out_channels;
    for (int64_t first = 0; first < p.g.batch; first += chunk) {
      const ConvCut::Run run{first, std::min(chunk, p.g.batch - first), 0, p.direct.out_height};
      const T* from = images + first * p.g.image_size();
      if (p.frame.copied) {
        from = frames;
        ParallelRange(context, run.images, 1, [&](int64_t begin, int64_t end) {
          const ConvCut::Run part{first + begin, end - begin, 0, p.direct.out_height};
          FramedRun(p, part, images, frames + begin * p.image_frame_size());
        });
      }
      MR_RETURN_IF_ERROR(ParallelBlocks(
          context, p.cut.channel_blocks * p.direct.taps_height, [&](int64_t task) -> Status {
            const int64_t channel = task % p.cut.channel_blocks * p.cut.channel_block;
            const int64_t tap_row = task / p.cut.channel_blocks;
            vector::DirectConv call = CallFor(p, run, channel);
            call.taps_height = 1;
            MR_ASSIGN_OR_RETURN(Tensor workspace,
                                Scratch<T>(context, {vector::FilterGradientWorkspace(call)}));
            vector::FilterGradient(call, from + tap_row * call.tap_row_step,
                                   GradientRow(p, d_out, run) + channel,
                                   out + tap_row * taps_row + channel, workspace.mutable_data<T>());
            return absl::OkStatus();
          }));
    }
    return absl::OkStatus();
  }

  static const T* GradientRow(const ConvPlan& p, const T* d_out, const ConvCut::Run& run) {
    return d_out +
           (run.image * p.direct.out_height + run.row) * p.direct.out_width * p.direct.out_step;
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
