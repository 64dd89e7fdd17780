#include "ops/array_ops.h"
#include "ops/gradient_shapes.h"
#include "ops/math_ops.h"
#include "ops/nn_ops.h"
#include "ops/node_call.h"
#include "ops/op_families.h"
#include "ops/shape_functions.h"
#include "ops/sharding_rules.h"

namespace millrace {

Value BiasAdd(Value x, Value bias, SourceLocation where) {
  return Call("BiasAdd", {x, bias}, {}, where);
}

namespace {

// The axis that the bias goes along, of a value of that rank.
int ChannelAxis(const AttrMap& attrs, int rank) {
  const std::string format = attrs.GetOr("data_format", std::string("NHWC"));
  return format == "NCHW" ? 1 : rank - 1;
}

AttrMap FormatOf(const AttrMap& attrs) {
  return {{"data_format", attrs.GetOr("data_format", std::string("NHWC"))}};
}

Status BiasAddShape(ShapeContext& c) {
  const PartialShape& value = c.input(0);
  MR_ASSIGN_OR_RETURN(const PartialShape bias, c.WithRank(1, 1));
  c.set_output(0, value);
  if (!value.has_rank()) return absl::OkStatus();
  if (value.rank() < 2) {
    return InvalidArgument("the value to add a bias to must have rank 2 or more, but has shape ",
                           value.ToString());
  }
  const int axis = ChannelAxis(c.attrs(), value.rank());
  if (!bias.dim_known(0)) return absl::OkStatus();
  if (value.dim_known(axis) && value.dim(axis) != bias.dim(0)) {
    return InvalidArgument("the bias has ", bias.dim(0), " elements, but axis ", axis,
                           " of the value ", value.ToString(), " has ", value.dim(axis));
  }
  std::vector<int64_t> dims = Extents(value);
  dims[axis] = bias.dim(0);
  return SetOutput(c, 0, PartialShape::Create(dims));
}

Status BiasAddGradient(GradientContext& c) {
  c.set_dx(0, c.dy(0));
  if (c.needs_dx(1)) {
    c.set_dx(1, Call("BiasAddGrad", {c.dy(0)}, FormatOf(c.attrs()), SourceLocation::Current()));
  }
  return absl::OkStatus();
}

Status BiasAddSharding(ShardingContext& c) {
  const PartialShape& value = c.input_shape(0);
  const Sharding x = c.input(0), bias = c.input(1);
  if (x.kind == Sharding::kPartialSum && bias.kind == Sharding::kPartialSum) return SameSharding(c);
  if (!value.has_rank()) {
    RequireReplicated(c);
    c.set_output(0, Sharding::Replicated());
    return absl::OkStatus();
  }
  const Sharding channels = Sharding::Split(ChannelAxis(c.attrs(), value.rank()));
  if (x == channels || (x.kind != Sharding::kSplit && bias.kind == Sharding::kSplit)) {
    c.Require(0, channels);
    c.Require(1, Sharding::Split(0));
  } else {
    // Every part would add the bias to its partial sum, so that one needs the whole.
    if (x.kind == Sharding::kPartialSum) c.Require(0, Sharding::Replicated());
    c.Require(1, Sharding::Replicated());
  }
  return SameSharding(c);
}

Status BiasAddGradShape(ShapeContext& c) {
  const PartialShape& dy = c.input(0);
  c.set_output(0, PartialShape{PartialShape::kUnknown});
  if (!dy.has_rank()) return absl::OkStatus();
  if (dy.rank() < 2) {
    return InvalidArgument("out_backprop must have rank 2 or more, but has shape ", dy.ToString());
  }
  c.set_output(0, PartialShape{dy.dim(ChannelAxis(c.attrs(), dy.rank()))});
  return absl::OkStatus();
}

Status BiasAddGradGradient(GradientContext& c) {
  Value g = c.dy(0);
  const Value dy = c.input(0);
  if (c.attrs().GetOr("data_format", std::string("NHWC")) == "NCHW") {
    if (!dy.shape().has_rank()) {
      return Unimplemented("the gradient of BiasAddGrad in NCHW needs the rank of its input");
    }
    for (int i = 2; i < dy.shape().rank(); ++i) g = ExpandDims(g, -1);
  }
  c.set_dx(0, BroadcastTo(g, ShapeValue(dy)));
  return absl::OkStatus();
}

Status BiasAddGradSharding(ShardingContext& c) {
  const PartialShape& dy = c.input_shape(0);
  if (c.input(0).kind != Sharding::kSplit) return SameSharding(c);
  if (!dy.has_rank()) {
    c.Require(0, Sharding::Replicated());
    return absl::OkStatus();
  }
  const bool channels = c.input(0).dim == ChannelAxis(c.attrs(), dy.rank());
  c.set_output(0, channels ? Sharding::Split(0) : Sharding::PartialSum());
  return absl::OkStatus();
}

}  // namespace

void RegisterBiasOps(OpRegistry& registry) {
  registry.Add(OpDef("BiasAdd")
                   .Input("value: T")
                   .Input("bias: T")
                   .Output("output: T")
                   .Attr("T: {float, double}")
                   .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
                   .Shape(BiasAddShape)
                   .Gradient(BiasAddGradient)
                   .Sharding(BiasAddSharding)
                   .Traits({Trait::kInPlace, Trait::kCheap})
                   .Doc("The value plus a vector along its last axis, or axis 1 in NCHW."));
  registry.Add(OpDef("BiasAddGrad")
                   .Input("out_backprop: T")
                   .Output("output: T")
                   .Attr("T: {float, double}")
                   .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
                   .Shape(BiasAddGradShape)
                   .Gradient(BiasAddGradGradient)
                   .Sharding(BiasAddGradSharding)
                   .Cost([](const ShapeContext& c) {
                     return OpCost{Elements(c.input(0)), TouchedBytes(c)};
                   })
                   .Doc("The gradient of BiasAdd for its bias: the sum over all other axes."));
}

}  // namespace millrace
