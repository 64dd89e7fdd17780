#ifndef KERNELS_CPU_CONV_PLAN_H_
#define KERNELS_CPU_CONV_PLAN_H_

#include <algorithm>
#include <cstdint>

#include "core/framework/kernel.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/vector_conv.h"
#include "kernels/cpu/window_geometry.h"

// How a convolution is made of calls to vector_conv.h: where its images' padding comes from, and
// how the work is cut into tasks. By shapes only.
namespace millrace {

// Images of `height` x `width` pixels in a frame: pixel (y, x) is at row before[0] + y * spread[0]
// and column before[1] + x * spread[1], zeros elsewhere. Pixels may fall outside.
struct Frame {
  int64_t height = 0, width = 0, channels = 0;
  int64_t before[2] = {0, 0};
  int64_t spread[2] = {1, 1};
  int64_t rows = 0, columns = 0;  // of the frame
  bool copied = true;             // else the image is its own frame

  int64_t row_size() const { return (copied ? columns : width) * channels; }

  // Copies rows [first, first + count) of the frame around `image`.
  template <typename T>
  void Fill(const T* image, int64_t first, int64_t count, T* out) const;
};

// Strips, some rows of one image, and blocks of strips. Tasks are pairs of a block of strips and a
// block of output channels.
struct ConvCut {
  int64_t height = 0;  // of the output
  int64_t rows_per_strip = 1;
  int64_t strips_per_image = 1;
  int64_t strips = 0;
  int64_t strips_per_block = 1;
  int64_t channel_block = 1;
  int64_t channel_blocks = 1;

  int64_t blocks() const { return CeilDiv(strips, strips_per_block); }
  int64_t tasks() const { return blocks() * channel_blocks; }

  // A run of strips that are computed in one call: whole images, or part of one.
  struct Run {
    int64_t image, images;
    int64_t row, rows;
  };
  // Calls body(run) for the strips of a block, in their order; `most_images` at once.
  template <typename Body>
  void ForRuns(int64_t block, int64_t most_images, Body body) const {
    const int64_t end = std::min((block + 1) * strips_per_block, strips);
    for (int64_t strip = block * strips_per_block; strip < end;) {
      Run run{strip / strips_per_image, 1, strip % strips_per_image * rows_per_strip, 0};
      run.rows = std::min(rows_per_strip, height - run.row);
      if (strips_per_image == 1) run.images = std::min(most_images, end - strip);
      body(run);
      strip += run.images;
    }
  }
};

// A convolution of framed images, "forward": also that of the output's gradient with the turned
// filter, which gives the gradient of the image.
struct ConvPlan final : public PreparedShapes {
  ConvGeometry g;
  Frame frame;
  vector::DirectConv direct;  // of one image and all channels
  int64_t row_stride = 1;     // rows of the frame from one output row to the next
  int64_t span = 1;           // rows of the frame that one output row reads
  ConvCut cut;
  bool by_filter = false;  // the gradient of the filter: tasks are parts of it, not of the images

  bool empty() const { return g.batch == 0 || g.image_size() == 0 || g.out_size() == 0; }
  int64_t frame_rows(int64_t rows) const { return (rows - 1) * row_stride + span; }
  // Elements of the frame of a strip, or of a whole image.
  int64_t strip_frame_size() const { return frame_rows(cut.rows_per_strip) * frame.row_size(); }
  int64_t image_frame_size() const {
    return (frame.copied ? frame_rows(direct.out_height) : frame.height) * frame.row_size();
  }
};

using ConvPlanOr = StatusOr<std::unique_ptr<ConvPlan>>;
ConvPlanOr PlanForward(const ConvGeometry& geometry);
ConvPlanOr PlanImageGradient(const ConvGeometry& geometry);
ConvPlanOr PlanFilterGradient(const ConvGeometry& geometry);

template <typename T>
void Frame::Fill(const T* image, int64_t first, int64_t count, T* out) const {
  std::fill_n(out, count * row_size(), T(0));
  // The pixels whose column is inside.
  const int64_t x_begin = before[1] >= 0 ? 0 : CeilDiv(-before[1], spread[1]);
  const int64_t x_end =
      std::min(width, before[1] >= columns ? 0 : (columns - 1 - before[1]) / spread[1] + 1);
  if (x_begin >= x_end) return;
  for (int64_t i = 0; i < count; ++i) {
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

}  // namespace millrace

#endif  // KERNELS_CPU_CONV_PLAN_H_
