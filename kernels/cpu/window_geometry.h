#ifndef KERNELS_CPU_WINDOW_GEOMETRY_H_
#define KERNELS_CPU_WINDOW_GEOMETRY_H_

#include <cstdint>
#include <vector>

#include "core/framework/kernel.h"

// Sliding windows over NHWC images, as convolutions and pools have them.
namespace millrace {

// The attributes; [0] is the height, [1] the width.
struct WindowAttributes {
  int64_t stride[2] = {1, 1};
  int64_t dilation[2] = {1, 1};
  int64_t kernel[2] = {1, 1};  // of pools
  enum class Padding { kSame, kValid, kExplicit } padding = Padding::kValid;
  int64_t explicit_before[2] = {0, 0};
  int64_t explicit_after[2] = {0, 0};

  // Reads strides, dilations, ksize (those that are there), padding, explicit_paddings and
  // data_format; an error names the attribute.
  static StatusOr<WindowAttributes> FromAttrs(const AttrMap& attrs);
};

// One axis: output o covers the inputs o * stride - before + t * dilation, t < taps, as far as they
// exist.
struct WindowAxis {
  int64_t input = 0;
  int64_t taps = 0;
  int64_t output = 0;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t before = 0;  // padding

  // How many inputs the taps span.
  int64_t span() const { return (taps - 1) * dilation + 1; }
};

// InvalidArgument unless that many outputs follow from the attributes. `axis` is 0 or 1.
StatusOr<WindowAxis> MakeWindowAxis(const WindowAttributes& attributes, int axis, int64_t input,
                                    int64_t taps, int64_t output);

struct ConvGeometry {
  int64_t batch = 0;
  int64_t channels = 0;
  int64_t out_channels = 0;
  WindowAxis axes[2];

  int64_t image_size() const { return axes[0].input * axes[1].input * channels; }
  int64_t out_size() const { return axes[0].output * axes[1].output * out_channels; }
  int64_t filter_size() const { return axes[0].taps * axes[1].taps * channels * out_channels; }
};

// image [n,h,w,c], filter [fh,fw,c,k], out [n,oh,ow,k].
StatusOr<ConvGeometry> MakeConvGeometry(const WindowAttributes& attributes, const Shape& image,
                                        const Shape& filter, const Shape& out);

}  // namespace millrace

#endif  // KERNELS_CPU_WINDOW_GEOMETRY_H_
