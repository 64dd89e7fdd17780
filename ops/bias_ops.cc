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

Status CheckNhwc(const ShapeContext& c) {
  const std::string format = c.attrs().GetOr("data_format", std::string("NHWC"));
  if (format == "NHWC") return absl::OkStatus();
  return Unimplemented("data_format '", format, "' is not provided; use 'NHWC'");
}

Status BiasAddShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(CheckNhwc(c));
  const PartialShape& value = c.input(0);
  MR_ASSIGN_OR_RETURN(const PartialShape bias, c.WithRank(1, 1));
  c.set_output(0, value);
  if (!value.has_rank()) return absl::OkStatus();
  if (value.rank() < 2) {
    return InvalidArgument("the value to add a bias to must have rank 2 or more, but has shape ",
                           value.ToString());
  }
  const int last = value.rank() - 1;
  if (!bias.dim_known(0)) return absl::OkStatus();
  if (value.dim_known(last) && value.dim(last) != bias.dim(0)) {
    return InvalidArgument("the bias has ", bias.dim(0),
                           " elements, but the last axis of the value ", value.ToString(), " has ",
                           value.dim(last));
  }
  std::vector<int64_t> dims = Extents(value);
  dims[last] = bias.dim(0);
  return SetOutput(c, 0, PartialShape::Create(dims));
}

Status BiasAddGradient(GradientContext& c) {
  c.set_dx(0, c.dy(0));
  if (c.needs_dx(1)) c.set_dx(1, Call("BiasAddGrad", {c.dy(0)}, {}, SourceLocation::Current()));
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
  const Sharding channels = Sharding::Split(value.rank() - 1);
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
  MR_RETURN_IF_ERROR(CheckNhwc(c));
  const PartialShape& dy = c.input(0);
  c.set_output(0, PartialShape{PartialShape::kUnknown});
  if (!dy.has_rank()) return absl::OkStatus();
  if (dy.rank() < 1) return InvalidArgument("out_backprop is a scalar: it has no channels");
  c.set_output(0, PartialShape{dy.dim(dy.rank() - 1)});
  return absl::OkStatus();
}

Status BiasAddGradGradient(GradientContext& c) {
  c.set_dx(0, BroadcastTo(c.dy(0), ShapeValue(c.input(0))));
  return absl::OkStatus();
}

Status BiasAddGradSharding(ShardingContext& c) {
  const PartialShape& dy = c.input_shape(0);
  if (c.input(0).kind != Sharding::kSplit) return SameSharding(c);
  if (!dy.has_rank()) {
    c.Require(0, Sharding::Replicated());
    return absl::OkStatus();
  }
  const bool channels = c.input(0).dim == dy.rank() - 1;
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
                   .Doc("The value plus a vector along its last axis."));
  registry.Add(
      OpDef("BiasAddGrad")
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
          .Doc("The gradient of BiasAdd for its bias: the sum over all but the last axis."));
}

}  // namespace millrace
