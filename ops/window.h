#ifndef OPS_WINDOW_H_
#define OPS_WINDOW_H_

#include "core/framework/op_def.h"

// Sliding windows over NHWC images: the attributes that convolutions and pools share.
namespace millrace {

// Along height (0) and width (1).
struct Window {
  int64_t stride[2] = {1, 1};
  int64_t dilation[2] = {1, 1};
  bool same = false;  // padding 'SAME'
  // Padding before and after, of 'EXPLICIT'.
  int64_t before[2] = {0, 0};
  int64_t after[2] = {0, 0};
};

// The attributes strides, dilations (if there), padding, explicit_paddings and data_format;
// InvalidArgument or Unimplemented, by name, for values that mean nothing or are not provided.
StatusOr<Window> WindowFromAttrs(const AttrMap& attrs);

// Height and width of the attribute `name`, [1, height, width, 1].
Status PairFromAttr(const AttrMap& attrs, absl::string_view name, int64_t pair[2]);

// How many windows of extent `window` there are along `axis` (0 or 1) of an image of extent
// `extent`; unknown if either is.
StatusOr<int64_t> WindowCount(const Window& w, int axis, int64_t extent, int64_t window);

}  // namespace millrace

#endif  // OPS_WINDOW_H_
