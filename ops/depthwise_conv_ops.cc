#include "core/base/checked_math.h"
#include "ops/gradient_shapes.h"
#include "ops/nn_ops.h"
#include "ops/node_call.h"
#include "ops/op_families.h"
#include "ops/shape_functions.h"
#include "ops/sharding_rules.h"
#include "ops/window.h"

// Convolutions in which each channel has filters of its own.
namespace millrace {

Value DepthwiseConv2D(Value x, Value filter, Conv2DOptions options, SourceLocation where) {
  const std::vector<int64_t> strides = {1, options.stride_height, options.stride_width, 1};
  const std::vector<int64_t> dilations = {1, options.dilation_height, options.dilation_width, 1};
  return Call("DepthwiseConv2dNative", {x, filter},
              {{"strides", strides},
               {"dilations", dilations},
               {"padding", options.padding == Padding::kSame ? "SAME" : "VALID"}},
              where);
}

namespace {

// Images [batch, height, width, channels], filters [height, width, channels, multiplier]: the
// output has channels * multiplier channels.
StatusOr<PartialShape> DepthwiseShape(const AttrMap& attrs, const PartialShape& x,
                                      const PartialShape& filter) {
  MR_ASSIGN_OR_RETURN(const Window w, WindowFromAttrs(attrs));
  if (x.dim_known(3) && filter.dim_known(2) && x.dim(3) != filter.dim(2)) {
    return InvalidArgument("filter ", filter.ToString(), " is for ", filter.dim(2),
                           " channels, but the input has ", x.dim(3));
  }
  MR_ASSIGN_OR_RETURN(const int64_t height, WindowCount(w, 0, x.dim(1), filter.dim(0)));
  MR_ASSIGN_OR_RETURN(const int64_t width, WindowCount(w, 1, x.dim(2), filter.dim(1)));
  const int64_t channels = x.dim_known(3) ? x.dim(3) : filter.dim(2);
  int64_t out = PartialShape::kUnknown;
  if (channels >= 0 && filter.dim_known(3) && !CheckedMul(channels, filter.dim(3), &out)) {
    return InvalidArgument("filter ", filter.ToString(), " gives too many channels");
  }
  return PartialShape{x.dim(0), height, width, out};
}

Status ForwardShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape x, c.WithRank(0, 4));
  MR_ASSIGN_OR_RETURN(const PartialShape filter, c.WithRank(1, 4));
  return SetOutput(c, 0, DepthwiseShape(c.attrs(), x, filter));
}

StatusOr<PartialShape> Sizes(const ShapeContext& c, int i, absl::string_view what) {
  MR_ASSIGN_OR_RETURN(const PartialShape sizes, ShapeOperand(c, i, what));
  if (!sizes.has_rank()) return UnknownOfRank(4);
  if (sizes.rank() == 4) return sizes;
  return InvalidArgument(what, " must have 4 elements, but has ", sizes.rank());
}

Status CheckOutBackprop(const ShapeContext& c, const PartialShape& x, const PartialShape& filter,
                        const PartialShape& dy) {
  MR_ASSIGN_OR_RETURN(const PartialShape y, DepthwiseShape(c.attrs(), x, filter));
  if (y.IsCompatibleWith(dy)) return absl::OkStatus();
  return InvalidArgument("out_backprop has shape ", dy.ToString(), ", but the convolution of ",
                         x.ToString(), " with ", filter.ToString(), " has ", y.ToString());
}

Status BackpropInputShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape sizes, Sizes(c, 0, "input_sizes"));
  MR_ASSIGN_OR_RETURN(const PartialShape filter, c.WithRank(1, 4));
  MR_ASSIGN_OR_RETURN(const PartialShape dy, c.WithRank(2, 4));
  MR_RETURN_IF_ERROR(CheckOutBackprop(c, sizes, filter, dy));
  const PartialShape told{dy.dim(0), PartialShape::kUnknown, PartialShape::kUnknown, filter.dim(2)};
  return SetOutput(c, 0, sizes.MergeWith(told));
}

Status BackpropFilterShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape x, c.WithRank(0, 4));
  MR_ASSIGN_OR_RETURN(const PartialShape sizes, Sizes(c, 1, "filter_sizes"));
  MR_ASSIGN_OR_RETURN(const PartialShape dy, c.WithRank(2, 4));
  MR_RETURN_IF_ERROR(CheckOutBackprop(c, x, sizes, dy));
  c.set_output(0, sizes);
  return absl::OkStatus();
}

AttrMap SharedAttrs(const AttrMap& attrs) {
  AttrMap shared;
  for (const char* name : {"strides", "padding", "explicit_paddings", "data_format", "dilations"}) {
    if (const AttrValue* value = attrs.Find(name)) shared.Set(name, *value);
  }
  return shared;
}

// The three ops are the derivatives of one trilinear form of image, filter and output.
Value Forward(GradientContext& c, Value x, Value filter) {
  return Call("DepthwiseConv2dNative", {x, filter}, SharedAttrs(c.attrs()),
              SourceLocation::Current());
}
Value BackpropInput(GradientContext& c, Value sizes, Value filter, Value dy) {
  return Call("DepthwiseConv2dNativeBackpropInput", {sizes, filter, dy}, SharedAttrs(c.attrs()),
              SourceLocation::Current());
}
Value BackpropFilter(GradientContext& c, Value x, Value sizes, Value dy) {
  return Call("DepthwiseConv2dNativeBackpropFilter", {x, sizes, dy}, SharedAttrs(c.attrs()),
              SourceLocation::Current());
}

Status ForwardGradient(GradientContext& c) {
  const Value x = c.input(0), filter = c.input(1), dy = c.dy(0);
  if (c.needs_dx(0)) c.set_dx(0, BackpropInput(c, ShapeValue(x), filter, dy));
  if (c.needs_dx(1)) c.set_dx(1, BackpropFilter(c, x, ShapeValue(filter), dy));
  return absl::OkStatus();
}

Status BackpropInputGradient(GradientContext& c) {
  const Value filter = c.input(1), dy = c.input(2), g = c.dy(0);
  if (c.needs_dx(1)) c.set_dx(1, BackpropFilter(c, g, ShapeValue(filter), dy));
  if (c.needs_dx(2)) c.set_dx(2, Forward(c, g, filter));
  return absl::OkStatus();
}

Status BackpropFilterGradient(GradientContext& c) {
  const Value x = c.input(0), dy = c.input(2), g = c.dy(0);
  if (c.needs_dx(0)) c.set_dx(0, BackpropInput(c, ShapeValue(x), g, dy));
  if (c.needs_dx(2)) c.set_dx(2, Forward(c, x, g));
  return absl::OkStatus();
}

// By images: the forward op and the gradient of the images, whose operand `images` is split; the
// gradient of the filter sums over them.
ShardingFn BatchSharding(int images, int sizes, bool sums) {
  return [images, sizes, sums](ShardingContext& c) -> Status {
    const Sharding batch = Sharding::Split(0);
    const bool split = c.input(images) == batch || (sums && c.input(2) == batch);
    RequireReplicated(c);
    c.set_output(0, Sharding::Replicated());
    if (!split) return absl::OkStatus();
    c.Require(images, batch);
    if (sums) c.Require(2, batch);
    if (sizes >= 0) c.LocalizeHostElement(sizes, 0);
    c.set_output(0, sums ? Sharding::PartialSum() : batch);
    return absl::OkStatus();
  };
}

OpDef Depthwise(const char* name) {
  OpDef op(name);
  op.Attr("T: {float, double}");
  op.Attr("strides: list(int)");
  op.Attr("padding: {'SAME', 'VALID', 'EXPLICIT'}");
  op.Attr("explicit_paddings: list(int) = []");
  op.Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'");
  op.Attr("dilations: list(int) = [1, 1, 1, 1]");
  return op;
}

}  // namespace

void RegisterDepthwiseConvOps(OpRegistry& registry) {
  registry.Add(Depthwise("DepthwiseConv2dNative")
                   .Input("input: T")
                   .Input("filter: T")
                   .Output("output: T")
                   .Shape(ForwardShape)
                   .Gradient(ForwardGradient)
                   .Sharding(BatchSharding(0, -1, false))
                   .Doc("The cross-correlation of each channel with filters of its own."));
  registry.Add(Depthwise("DepthwiseConv2dNativeBackpropInput")
                   .HostInput("input_sizes: int32")
                   .Input("filter: T")
                   .Input("out_backprop: T")
                   .Output("output: T")
                   .Shape(BackpropInputShape)
                   .Gradient(BackpropInputGradient)
                   .Sharding(BatchSharding(2, 0, false))
                   .Doc("The gradient of DepthwiseConv2dNative for its images."));
  registry.Add(Depthwise("DepthwiseConv2dNativeBackpropFilter")
                   .Input("input: T")
                   .HostInput("filter_sizes: int32")
                   .Input("out_backprop: T")
                   .Output("output: T")
                   .Shape(BackpropFilterShape)
                   .Gradient(BackpropFilterGradient)
                   .Sharding(BatchSharding(0, -1, true))
                   .Doc("The gradient of DepthwiseConv2dNative for its filter."));
}

}  // namespace millrace
