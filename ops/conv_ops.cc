#include "ops/array_ops.h"
#include "ops/gradient_shapes.h"
#include "ops/nn_ops.h"
#include "ops/node_call.h"
#include "ops/op_families.h"
#include "ops/shape_functions.h"
#include "ops/sharding_rules.h"
#include "ops/window.h"

namespace millrace {

Value Conv2D(Value x, Value filter, Conv2DOptions options, SourceLocation where) {
  const std::vector<int64_t> strides = {1, options.stride_height, options.stride_width, 1};
  const std::vector<int64_t> dilations = {1, options.dilation_height, options.dilation_width, 1};
  return Call("Conv2D", {x, filter},
              {{"strides", strides},
               {"dilations", dilations},
               {"padding", options.padding == Padding::kSame ? "SAME" : "VALID"}},
              where);
}

namespace {

// Images are [batch, height, width, channels], filters [height, width, in channels, out channels].
StatusOr<PartialShape> ConvShape(const AttrMap& attrs, const PartialShape& x,
                                 const PartialShape& filter) {
  MR_ASSIGN_OR_RETURN(const Window w, WindowFromAttrs(attrs));
  if (x.dim_known(3) && filter.dim_known(2) && x.dim(3) != filter.dim(2)) {
    return InvalidArgument("filter ", filter.ToString(), " expects ", filter.dim(2),
                           " input channels, but the input has ", x.dim(3));
  }
  MR_ASSIGN_OR_RETURN(const int64_t height, WindowCount(w, 0, x.dim(1), filter.dim(0)));
  MR_ASSIGN_OR_RETURN(const int64_t width, WindowCount(w, 1, x.dim(2), filter.dim(1)));
  return PartialShape{x.dim(0), height, width, filter.dim(3)};
}

Status Conv2DShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape x, c.WithRank(0, 4));
  MR_ASSIGN_OR_RETURN(const PartialShape filter, c.WithRank(1, 4));
  return SetOutput(c, 0, ConvShape(c.attrs(), x, filter));
}

// The shape that host operand i gives, of rank 4.
StatusOr<PartialShape> Sizes(const ShapeContext& c, int i, absl::string_view what) {
  MR_ASSIGN_OR_RETURN(const PartialShape sizes, ShapeOperand(c, i, what));
  if (!sizes.has_rank()) return UnknownOfRank(4);
  if (sizes.rank() == 4) return sizes;
  return InvalidArgument(what, " must have 4 elements, but has ", sizes.rank());
}

// That the incoming gradient has the shape of the convolution of x with `filter`.
Status CheckOutBackprop(const ShapeContext& c, const PartialShape& x, const PartialShape& filter,
                        const PartialShape& dy) {
  MR_ASSIGN_OR_RETURN(const PartialShape y, ConvShape(c.attrs(), x, filter));
  if (y.IsCompatibleWith(dy)) return absl::OkStatus();
  return InvalidArgument("out_backprop has shape ", dy.ToString(), ", but the convolution of ",
                         x.ToString(), " with ", filter.ToString(), " has ", y.ToString());
}

Status Conv2DBackpropInputShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape sizes, Sizes(c, 0, "input_sizes"));
  MR_ASSIGN_OR_RETURN(const PartialShape filter, c.WithRank(1, 4));
  MR_ASSIGN_OR_RETURN(const PartialShape dy, c.WithRank(2, 4));
  MR_RETURN_IF_ERROR(CheckOutBackprop(c, sizes, filter, dy));
  const PartialShape told{dy.dim(0), PartialShape::kUnknown, PartialShape::kUnknown, filter.dim(2)};
  return SetOutput(c, 0, sizes.MergeWith(told));
}

Status Conv2DBackpropFilterShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape x, c.WithRank(0, 4));
  MR_ASSIGN_OR_RETURN(const PartialShape sizes, Sizes(c, 1, "filter_sizes"));
  MR_ASSIGN_OR_RETURN(const PartialShape dy, c.WithRank(2, 4));
  MR_RETURN_IF_ERROR(CheckOutBackprop(c, x, sizes, dy));
  const PartialShape told{PartialShape::kUnknown, PartialShape::kUnknown, x.dim(3), dy.dim(3)};
  return SetOutput(c, 0, sizes.MergeWith(told));
}

// The attributes that all three ops share.
AttrMap ConvAttrs(const AttrMap& attrs) {
  AttrMap shared;
  for (const char* name : {"strides", "padding", "explicit_paddings", "data_format", "dilations",
                           "use_cudnn_on_gpu"}) {
    if (const AttrValue* value = attrs.Find(name)) shared.Set(name, *value);
  }
  return shared;
}

// The three ops are the derivatives of one trilinear form of image, filter and output.
Value Forward(GradientContext& c, Value x, Value filter) {
  return Call("Conv2D", {x, filter}, ConvAttrs(c.attrs()), SourceLocation::Current());
}
Value BackpropInput(GradientContext& c, Value sizes, Value filter, Value dy) {
  return Call("Conv2DBackpropInput", {sizes, filter, dy}, ConvAttrs(c.attrs()),
              SourceLocation::Current());
}
Value BackpropFilter(GradientContext& c, Value x, Value sizes, Value dy) {
  return Call("Conv2DBackpropFilter", {x, sizes, dy}, ConvAttrs(c.attrs()),
              SourceLocation::Current());
}

Status Conv2DGradient(GradientContext& c) {
  const Value x = c.input(0), filter = c.input(1), dy = c.dy(0);
  if (c.needs_dx(0)) c.set_dx(0, BackpropInput(c, ShapeValue(x), filter, dy));
  if (c.needs_dx(1)) c.set_dx(1, BackpropFilter(c, x, ShapeValue(filter), dy));
  return absl::OkStatus();
}

Status Conv2DBackpropInputGradient(GradientContext& c) {
  const Value filter = c.input(1), dy = c.input(2), g = c.dy(0);
  if (c.needs_dx(1)) c.set_dx(1, BackpropFilter(c, g, ShapeValue(filter), dy));
  if (c.needs_dx(2)) c.set_dx(2, Forward(c, g, filter));
  return absl::OkStatus();
}

Status Conv2DBackpropFilterGradient(GradientContext& c) {
  const Value x = c.input(0), dy = c.input(2), g = c.dy(0);
  if (c.needs_dx(0)) c.set_dx(0, BackpropInput(c, ShapeValue(x), g, dy));
  if (c.needs_dx(2)) c.set_dx(2, Forward(c, x, g));
  return absl::OkStatus();
}

// One way to split a convolution: what each of two operands and the output are, and which element
// of the host operand, if any, is the split extent.
struct ConvSplit {
  Sharding first, second, output;
  int element = -1;
};

// The first way that operand `first` or, failing that, `second` is already split for; else whole
// operands, of which one may be a partial sum, as all three ops are bilinear.
Status SplitConv(ShardingContext& c, int first, int second, int sizes,
                 absl::Span<const ConvSplit> ways) {
  if (sizes >= 0) c.Require(sizes, Sharding::Replicated());
  for (int operand : {first, second}) {
    for (const ConvSplit& way : ways) {
      const Sharding& wanted = operand == first ? way.first : way.second;
      if (wanted.kind != Sharding::kSplit || c.input(operand) != wanted) continue;
      c.Require(first, way.first);
      c.Require(second, way.second);
      if (sizes >= 0 && way.element >= 0) c.LocalizeHostElement(sizes, way.element);
      c.set_output(0, way.output);
      return absl::OkStatus();
    }
  }
  Sharding output = Sharding::Replicated();
  for (int operand : {first, second}) {
    if (c.input(operand).kind == Sharding::kPartialSum && output.kind == Sharding::kReplicated) {
      output = Sharding::PartialSum();
    } else {
      c.Require(operand, Sharding::Replicated());
    }
  }
  c.set_output(0, output);
  return absl::OkStatus();
}

Status Conv2DSharding(ShardingContext& c) {
  const Sharding b = Sharding::Replicated(), p = Sharding::PartialSum();
  const ConvSplit ways[] = {
      {Sharding::Split(0), b, Sharding::Split(0)},  // batch
      {b, Sharding::Split(3), Sharding::Split(3)},  // output channels
      {Sharding::Split(3), Sharding::Split(2), p},  // input channels
  };
  return SplitConv(c, 0, 1, -1, ways);
}

Status Conv2DBackpropInputSharding(ShardingContext& c) {
  const Sharding b = Sharding::Replicated(), p = Sharding::PartialSum();
  const ConvSplit ways[] = {
      {Sharding::Split(0), b, Sharding::Split(0), 0},
      {Sharding::Split(3), Sharding::Split(3), p},
      {b, Sharding::Split(2), Sharding::Split(3), 3},
  };
  return SplitConv(c, 2, 1, 0, ways);
}

Status Conv2DBackpropFilterSharding(ShardingContext& c) {
  const Sharding b = Sharding::Replicated(), p = Sharding::PartialSum();
  const ConvSplit ways[] = {
      {Sharding::Split(0), Sharding::Split(0), p},
      {b, Sharding::Split(3), Sharding::Split(3), 3},
      {Sharding::Split(3), b, Sharding::Split(2), 2},
  };
  return SplitConv(c, 0, 2, 1, ways);
}

// 2 flops for each element of the output and each of the filter that goes into it.
OpCost ConvCost(const ShapeContext& c, const PartialShape& y, const PartialShape& filter) {
  if (!filter.has_rank() || filter.rank() != 4) return {0, TouchedBytes(c)};
  const double columns = filter.dim_known(3) ? std::max<double>(1, filter.dim(3)) : 1;
  return {2 * Elements(y) * Elements(filter) / columns, TouchedBytes(c, 1)};
}

OpDef Conv(const char* name) {
  OpDef op(name);
  op.Attr("T: {float, double}");
  op.Attr("strides: list(int)");
  op.Attr("use_cudnn_on_gpu: bool = true");
  op.Attr("padding: {'SAME', 'VALID', 'EXPLICIT'}");
  op.Attr("explicit_paddings: list(int) = []");
  op.Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'");
  op.Attr("dilations: list(int) = [1, 1, 1, 1]");
  return op;
}

}  // namespace

void RegisterConvOps(OpRegistry& registry) {
  registry.Add(Conv("Conv2D")
                   .Input("input: T")
                   .Input("filter: T")
                   .Output("output: T")
                   .Shape(Conv2DShape)
                   .Gradient(Conv2DGradient)
                   .Sharding(Conv2DSharding)
                   .Cost([](const ShapeContext& c) { return ConvCost(c, c.output(0), c.input(1)); })
                   .Doc("The cross-correlation of images with filters."));
  registry.Add(Conv("Conv2DBackpropInput")
                   .HostInput("input_sizes: int32")
                   .Input("filter: T")
                   .Input("out_backprop: T")
                   .Output("output: T")
                   .Shape(Conv2DBackpropInputShape)
                   .Gradient(Conv2DBackpropInputGradient)
                   .Sharding(Conv2DBackpropInputSharding)
                   .Cost([](const ShapeContext& c) { return ConvCost(c, c.input(2), c.input(1)); })
                   .Doc("The gradient of Conv2D for its images, which have shape input_sizes."));
  registry.Add(Conv("Conv2DBackpropFilter")
                   .Input("input: T")
                   .HostInput("filter_sizes: int32")
                   .Input("out_backprop: T")
                   .Output("output: T")
                   .Shape(Conv2DBackpropFilterShape)
                   .Gradient(Conv2DBackpropFilterGradient)
                   .Sharding(Conv2DBackpropFilterSharding)
                   .Cost([](const ShapeContext& c) { return ConvCost(c, c.input(2), c.output(0)); })
                   .Doc("The gradient of Conv2D for its filter, which has shape filter_sizes."));
}

}  // namespace millrace
