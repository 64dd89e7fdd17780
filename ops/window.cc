#include "ops/window.h"

#include "core/base/checked_math.h"

namespace millrace {

Status PairFromAttr(const AttrMap& attrs, absl::string_view name, int64_t pair[2]) {
  MR_ASSIGN_OR_RETURN(const std::vector<int64_t> values, attrs.Get<std::vector<int64_t>>(name));
  if (values.size() != 4) {
    return InvalidArgument("attribute '", name, "' needs 4 elements, but has ", values.size());
  }
  if (values[0] != 1 || values[3] != 1) {
    return Unimplemented("attribute '", name, "' must be 1 for batch and channels, but is ",
                         values[0], " and ", values[3]);
  }
  if (values[1] < 1 || values[2] < 1) {
    return InvalidArgument("attribute '", name, "' must be positive, but is ", values[1], " and ",
                           values[2]);
  }
  pair[0] = values[1];
  pair[1] = values[2];
  return absl::OkStatus();
}

namespace {

Status ReadPaddings(const std::vector<int64_t>& paddings, Window* w) {
  constexpr int64_t kLargest = int64_t{1} << 30;
  bool fits = paddings.size() == 8;
  for (size_t i = 0; fits && i < 8; ++i) {
    fits = paddings[i] >= 0 && paddings[i] <= (i < 2 || i > 5 ? 0 : kLargest);
  }
  if (!fits) {
    return InvalidArgument(
        "explicit_paddings must be [0, 0, top, bottom, left, right, 0, 0], none negative");
  }
  for (int i = 0; i < 2; ++i) {
    w->before[i] = paddings[2 + 2 * i];
    w->after[i] = paddings[3 + 2 * i];
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<Window> WindowFromAttrs(const AttrMap& attrs) {
  const std::string format = attrs.GetOr("data_format", std::string("NHWC"));
  if (format != "NHWC") {
    return Unimplemented("data_format '", format, "' is not provided; use 'NHWC'");
  }
  Window w;
  MR_RETURN_IF_ERROR(PairFromAttr(attrs, "strides", w.stride));
  if (attrs.Has("dilations")) MR_RETURN_IF_ERROR(PairFromAttr(attrs, "dilations", w.dilation));
  MR_ASSIGN_OR_RETURN(const std::string padding, attrs.Get<std::string>("padding"));
  const auto paddings = attrs.GetOr("explicit_paddings", std::vector<int64_t>());
  if (padding == "EXPLICIT") {
    MR_RETURN_IF_ERROR(ReadPaddings(paddings, &w));
  } else if (!paddings.empty()) {
    return InvalidArgument("explicit_paddings are given, but padding is '", padding, "'");
  }
  w.same = padding == "SAME";
  return w;
}

StatusOr<int64_t> WindowCount(const Window& w, int axis, int64_t extent, int64_t window) {
  const int64_t stride = w.stride[axis];
  if (extent < 0) return PartialShape::kUnknown;
  if (w.same) return extent / stride + (extent % stride != 0 ? 1 : 0);
  if (window < 0) return PartialShape::kUnknown;
  int64_t reach = 0;
  const char* name = axis == 0 ? "height" : "width";
  if (window < 1 || !CheckedMul(window - 1, w.dilation[axis], &reach)) {
    return InvalidArgument("the window has ", name, " ", window, " with dilation ",
                           w.dilation[axis]);
  }
  int64_t padded = 0;
  if (!CheckedAdd(extent, w.before[axis] + w.after[axis], &padded)) {
    return InvalidArgument("an image of ", name, " ", extent, " is too large to be padded");
  }
  if (reach >= padded) {
    return InvalidArgument("a window of ", name, " ", window, " with dilation ", w.dilation[axis],
                           " does not fit in an image of ", name, " ", padded,
                           ", padding included");
  }
  return (padded - reach - 1) / stride + 1;
}

}  // namespace millrace
