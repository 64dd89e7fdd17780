#include "kernels/cpu/conv_plan.h"

namespace millrace {
namespace {

constexpr double kFlopsPerTask = 1e7;
constexpr double kFlopsPerStrip = 4e7;
constexpr int64_t kMaxTasks = 64;

// Padding can be far larger than the image.
Status CheckFrame(const Frame& frame) {
  StatusOr<Shape> shape = Shape::Create({frame.rows, frame.columns, frame.channels});
  return shape.ok() ? absl::OkStatus() : Annotate(shape.status(), "the padded image");
}

void DecideCopy(Frame& f) {
  f.copied = f.before[0] != 0 || f.before[1] != 0 || f.spread[0] != 1 || f.spread[1] != 1 ||
             f.rows > f.height || f.columns > f.width;
}

Status SetForward(ConvPlan& p) {
  const WindowAxis& h = p.g.axes[0];
  const WindowAxis& w = p.g.axes[1];
  Frame& f = p.frame;
  f.height = h.input;
  f.width = w.input;
  f.channels = p.g.channels;
  f.before[0] = h.before;
  f.before[1] = w.before;
  p.row_stride = h.stride;
  p.span = h.span();
  f.rows = p.frame_rows(h.output);
  f.columns = (w.output - 1) * w.stride + w.span();
  MR_RETURN_IF_ERROR(CheckFrame(f));
  DecideCopy(f);
  vector::DirectConv& d = p.direct;
  d.images = 1;
  d.row_step = h.stride * f.row_size();
  d.pixel_step = w.stride * f.channels;
  d.taps_height = h.taps;
  d.taps_width = w.taps;
  d.channels = f.channels;
  d.tap_row_step = h.dilation * f.row_size();
  d.tap_step = w.dilation * f.channels;
  d.out_height = h.output;
  d.out_width = w.output;
  d.out_channels = d.out_step = p.g.out_channels;
  d.image_step = p.image_frame_size();
  return absl::OkStatus();
}

Status SetImageGradient(ConvPlan& p) {
  const WindowAxis& h = p.g.axes[0];
  const WindowAxis& w = p.g.axes[1];
  Frame& f = p.frame;
  f.height = h.output;
  f.width = w.output;
  f.channels = p.g.out_channels;
  for (int i = 0; i < 2; ++i) {
    f.before[i] = p.g.axes[i].span() - 1 - p.g.axes[i].before;
    f.spread[i] = p.g.axes[i].stride;
  }
  p.row_stride = 1;
  p.span = h.span();
  f.rows = p.frame_rows(h.input);
  f.columns = w.input - 1 + w.span();
  MR_RETURN_IF_ERROR(CheckFrame(f));
  DecideCopy(f);
  vector::DirectConv& d = p.direct;
  d.images = 1;
  d.row_step = f.row_size();
  d.pixel_step = f.channels;
  d.taps_height = h.taps;
  d.taps_width = w.taps;
  d.channels = f.channels;
  d.tap_row_step = h.dilation * f.row_size();
  d.tap_step = w.dilation * f.channels;
  d.out_height = h.input;
  d.out_width = w.input;
  d.out_channels = d.out_step = p.g.channels;
  d.image_step = p.image_frame_size();
  return absl::OkStatus();
}

double FlopsPerRow(const ConvPlan& p) {
  return 2.0 * static_cast<double>(p.direct.out_width) * static_cast<double>(p.g.filter_size());
}

void CutStrips(ConvPlan& p, double flops_per_row, int64_t max_blocks) {
  ConvCut& c = p.cut;
  c.rows_per_strip = ItemsPerBlock(c.height, flops_per_row, kFlopsPerStrip, c.height);
  c.strips_per_image = CeilDiv(c.height, c.rows_per_strip);
  c.strips = p.g.batch * c.strips_per_image;
  c.strips_per_block = ItemsPerBlock(
      c.strips, flops_per_row * static_cast<double>(c.rows_per_strip), kFlopsPerTask, max_blocks);
}

// A large filter is read from memory by each task that uses it all, so its channels are shared out.
void CutForward(ConvPlan& p) {
  ConvCut& c = p.cut;
  c.height = p.direct.out_height;
  c.channel_block = std::max<int64_t>(1, p.direct.out_channels);
  if (p.empty()) return;
  constexpr int64_t kLargeFilter = 131072;
  double share = 1;
  if (p.g.filter_size() > kLargeFilter && p.direct.out_channels > vector::kChannelBlock) {
    const int64_t units = CeilDiv(p.direct.out_channels, vector::kChannelBlock);
    const double flops_per_unit =
        FlopsPerRow(p) * static_cast<double>(c.height * p.g.batch) / static_cast<double>(units);
    c.channel_block =
        ItemsPerBlock(units, flops_per_unit, kFlopsPerTask, kMaxTasks) * vector::kChannelBlock;
    c.channel_blocks = CeilDiv(p.direct.out_channels, c.channel_block);
    share = static_cast<double>(c.channel_block) / static_cast<double>(p.direct.out_channels);
  }
  CutStrips(p, FlopsPerRow(p) * share, std::max<int64_t>(1, kMaxTasks / c.channel_blocks));
}

}  // namespace

ConvPlanOr PlanForward(const ConvGeometry& geometry) {
  auto p = std::make_unique<ConvPlan>();
  p->g = geometry;
  MR_RETURN_IF_ERROR(SetForward(*p));
  CutForward(*p);
  return p;
}

ConvPlanOr PlanImageGradient(const ConvGeometry& geometry) {
  auto p = std::make_unique<ConvPlan>();
  p->g = geometry;
  MR_RETURN_IF_ERROR(SetImageGradient(*p));
  CutForward(*p);
  return p;
}

ConvPlanOr PlanFilterGradient(const ConvGeometry& geometry) {
  auto p = std::make_unique<ConvPlan>();
  p->g = geometry;
  MR_RETURN_IF_ERROR(SetForward(*p));
  ConvCut& c = p->cut;
  c.height = p->direct.out_height;
  c.channel_block = std::max<int64_t>(1, p->direct.out_channels);
  if (p->empty()) return p;
  // Sums of a small filter are kept by each block of images, and added at the end. Those of a large
  // one would cost more than they save: there each task owns a part of the filter.
  constexpr int64_t kLargeFilter = 65536;
  constexpr int64_t kMaxSums = 16;
  p->by_filter = geometry.filter_size() > kLargeFilter;
  if (p->by_filter) {
    c.channel_block = vector::kChannelBlock;
    c.channel_blocks = CeilDiv(p->direct.out_channels, c.channel_block);
    c.rows_per_strip = c.height;
    c.strips = geometry.batch;
  } else {
    CutStrips(*p, FlopsPerRow(*p), kMaxSums);
  }
  return p;
}

}  // namespace millrace
