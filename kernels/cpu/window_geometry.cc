#include "kernels/cpu/window_geometry.h"

#include <algorithm>

#include "core/base/checked_math.h"

namespace millrace {
namespace {

// Larger steps than this make no sense and would overflow the arithmetic below.
constexpr int64_t kLargest = int64_t{1} << 30;

// Height and width of a list [1, height, width, 1].
Status ReadPair(const AttrMap& attrs, absl::string_view name, int64_t pair[2]) {
  if (!attrs.Has(name)) return absl::OkStatus();
  MR_ASSIGN_OR_RETURN(const std::vector<int64_t> list, attrs.Get<std::vector<int64_t>>(name));
  if (list.empty()) return absl::OkStatus();
  if (list.size() != 4 || list[0] != 1 || list[3] != 1) {
    return InvalidArgument("attribute '", name, "' must be [1, height, width, 1]");
  }
  for (int i = 0; i < 2; ++i) {
    if (list[i + 1] < 1 || list[i + 1] > kLargest) {
      return InvalidArgument("attribute '", name, "' holds ", list[i + 1]);
    }
    pair[i] = list[i + 1];
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<WindowAttributes> WindowAttributes::FromAttrs(const AttrMap& attrs) {
  WindowAttributes a;
  const std::string format = attrs.GetOr<std::string>("data_format", "NHWC");
  if (format != "NHWC") {
    return Unimplemented("data_format '", format, "' on a CPU; transpose to NHWC");
  }
  MR_RETURN_IF_ERROR(ReadPair(attrs, "strides", a.stride));
  MR_RETURN_IF_ERROR(ReadPair(attrs, "dilations", a.dilation));
  MR_RETURN_IF_ERROR(ReadPair(attrs, "ksize", a.kernel));
  MR_ASSIGN_OR_RETURN(const std::string padding, attrs.Get<std::string>("padding"));
  if (padding == "SAME") {
    a.padding = Padding::kSame;
  } else if (padding == "VALID") {
    a.padding = Padding::kValid;
  } else if (padding == "EXPLICIT") {
    a.padding = Padding::kExplicit;
    MR_ASSIGN_OR_RETURN(const std::vector<int64_t> list,
                        attrs.Get<std::vector<int64_t>>("explicit_paddings"));
    if (list.size() != 8 || list[0] != 0 || list[1] != 0 || list[6] != 0 || list[7] != 0 ||
        std::any_of(list.begin(), list.end(), [](int64_t v) { return v < 0 || v > kLargest; })) {
      return InvalidArgument(
          "attribute 'explicit_paddings' must be [0, 0, top, bottom, left, right, 0, 0]");
    }
    for (int i = 0; i < 2; ++i) {
      a.explicit_before[i] = list[2 + 2 * i];
      a.explicit_after[i] = list[3 + 2 * i];
    }
  } else {
    return InvalidArgument("attribute 'padding' is '", padding, "', not SAME, VALID or EXPLICIT");
  }
  return a;
}

StatusOr<WindowAxis> MakeWindowAxis(const WindowAttributes& attributes, int axis, int64_t input,
                                    int64_t taps, int64_t output) {
  WindowAxis w;
  w.input = input;
  w.taps = taps;
  w.output = output;
  w.stride = attributes.stride[axis];
  w.dilation = attributes.dilation[axis];
  int64_t span = 0;
  if (taps < 1 || !CheckedMul(taps - 1, w.dilation, &span) || span > 2 * kLargest ||
      input > (int64_t{1} << 40)) {
    return InvalidArgument("a window of ", taps, " taps over ", input, " elements");
  }
  span += 1;
  int64_t expected = 0;
  switch (attributes.padding) {
    case WindowAttributes::Padding::kSame: {
      expected = (input + w.stride - 1) / w.stride;
      w.before = std::max<int64_t>(0, (expected - 1) * w.stride + span - input) / 2;
      break;
    }
    case WindowAttributes::Padding::kValid:
      expected = input < span ? 0 : (input - span) / w.stride + 1;
      break;
    case WindowAttributes::Padding::kExplicit: {
      w.before = attributes.explicit_before[axis];
      const int64_t padded = input + w.before + attributes.explicit_after[axis];
      expected = padded < span ? 0 : (padded - span) / w.stride + 1;
      break;
    }
  }
  if (expected != output) {
    return InvalidArgument(axis == 0 ? "height" : "width", " of the output is ", output,
                           ", but an input of ", input, " and a window of ", taps, " give ",
                           expected);
  }
  return w;
}

StatusOr<ConvGeometry> MakeConvGeometry(const WindowAttributes& attributes, const Shape& image,
                                        const Shape& filter, const Shape& out) {
  const auto all = [&] {
    return StrCat("image ", image.ToString(), ", filter ", filter.ToString(), ", output ",
                  out.ToString());
  };
  if (image.rank() != 4 || filter.rank() != 4 || out.rank() != 4) {
    return InvalidArgument("a convolution needs rank 4: ", all());
  }
  ConvGeometry g;
  g.batch = image[0];
  g.channels = image[3];
  g.out_channels = filter[3];
  if (out[0] != g.batch || filter[2] != g.channels || out[3] != g.out_channels) {
    return InvalidArgument("extents do not fit: ", all());
  }
  for (int i = 0; i < 2; ++i) {
    StatusOr<WindowAxis> axis = MakeWindowAxis(attributes, i, image[1 + i], filter[i], out[1 + i]);
    if (!axis.ok()) return Annotate(axis.status(), all());
    g.axes[i] = *axis;
  }
  return g;
}

}  // namespace millrace
