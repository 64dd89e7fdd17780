#include "core/graph/gradients.h"
#include "ops/nn_ops.h"
#include "ops/node_call.h"
#include "ops/op_families.h"
#include "ops/shape_functions.h"
#include "ops/sharding_rules.h"

namespace millrace {

BatchNormalized FusedBatchNorm(Value x, Value scale, Value offset, Value mean, Value variance,
                               BatchNormOptions options, SourceLocation where) {
  const std::vector<Value> y = CallMany("FusedBatchNormV3", {x, scale, offset, mean, variance},
                                        {{"epsilon", options.epsilon},
                                         {"exponential_avg_factor", options.average_factor},
                                         {"is_training", options.training}},
                                        6, where);
  return {y[0], y[1], y[2]};
}

namespace {

// The axis of the channels.
int ChannelAxis(const AttrMap& attrs) {
  const std::string format = attrs.GetOr("data_format", std::string("NHWC"));
  return format == "NCHW" ? 1 : 3;
}

// Merges the channels of x with those of the vectors first..last; the shape of one such vector.
StatusOr<PartialShape> Channels(const ShapeContext& c, const PartialShape& x, int first, int last) {
  const int axis = ChannelAxis(c.attrs());
  PartialShape vector{x.dim(axis)};
  for (int i = first; i <= last; ++i) {
    const auto merged = vector.MergeWith(c.input(i));
    if (!merged.ok()) {
      return InvalidArgument("input ", i, " has shape ", c.input(i).ToString(), ", but x ",
                             x.ToString(), " has ", vector.ToString(), " channels");
    }
    vector = *merged;
  }
  return vector;
}

Status BatchNormShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape x, c.WithRank(0, 4));
  const bool training = c.attrs().GetOr("is_training", true);
  // In training without a running average, the given statistics do not count, and may be empty.
  const bool uses_statistics = !training || c.attrs().GetOr("exponential_avg_factor", 1.0f) != 1.0f;
  MR_ASSIGN_OR_RETURN(const PartialShape vector, Channels(c, x, 1, uses_statistics ? 4 : 2));
  const int axis = ChannelAxis(c.attrs());
  std::vector<int64_t> dims = Extents(x);
  dims[axis] = vector.dim(0);
  MR_RETURN_IF_ERROR(SetOutput(c, 0, PartialShape::Create(dims)));
  for (int i = 1; i < 5; ++i) c.set_output(i, vector);
  c.set_output(5, PartialShape{0});
  return absl::OkStatus();
}

Status BatchNormGradShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape dy, c.WithRank(0, 4));
  MR_ASSIGN_OR_RETURN(PartialShape x, c.WithRank(1, 4));
  const auto merged = x.MergeWith(dy);
  if (!merged.ok()) {
    return InvalidArgument("y_backprop has shape ", dy.ToString(), ", but x has ", x.ToString());
  }
  MR_ASSIGN_OR_RETURN(const PartialShape vector, Channels(c, *merged, 2, 4));
  c.set_output(0, *merged);
  c.set_output(1, vector);
  c.set_output(2, vector);
  c.set_output(3, PartialShape{0});
  c.set_output(4, PartialShape{0});
  return absl::OkStatus();
}

// The statistics that come out carry no gradient.
Status BatchNormGradient(GradientContext& c) {
  const bool training = c.attrs().GetOr("is_training", true);
  AttrMap attrs;
  for (const char* name : {"epsilon", "data_format", "is_training"}) {
    if (const AttrValue* value = c.attrs().Find(name)) attrs.Set(name, *value);
  }
  const std::vector<Value> dx =
      CallMany("FusedBatchNormGradV3",
               {c.dy(0), c.input(0), c.input(1), training ? c.output(3) : c.input(3),
                training ? c.output(4) : c.input(4), c.output(5)},
               std::move(attrs), 5, SourceLocation::Current());
  for (int i = 0; i < 3; ++i) c.set_dx(i, dx[i]);
  return absl::OkStatus();
}

// Statistics over a split batch would be those of the parts: whole inputs only.
Status Whole(ShardingContext& c) {
  RequireReplicated(c);
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, Sharding::Replicated());
  return absl::OkStatus();
}

OpDef WithAttrs(OpDef op) {
  op.Attr("T: {float, double}");
  op.Attr("U: {float, double}");
  op.Attr("epsilon: float = 0.0001");
  op.Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'");
  op.Attr("is_training: bool = true");
  return op;
}

}  // namespace

void RegisterBatchNormOps(OpRegistry& registry) {
  registry.Add(WithAttrs(OpDef("FusedBatchNormV3")
                             .Input("x: T")
                             .Input("scale: U")
                             .Input("offset: U")
                             .Input("mean: U")
                             .Input("variance: U")
                             .Output("y: T")
                             .Output("batch_mean: U")
                             .Output("batch_variance: U")
                             .Output("reserve_space_1: U")
                             .Output("reserve_space_2: U")
                             .Output("reserve_space_3: U")
                             .Attr("exponential_avg_factor: float = 1"))
                   .Shape(BatchNormShape)
                   .Gradient(BatchNormGradient)
                   .Sharding(Whole)
                   .Doc("Each channel shifted and scaled to mean 0 and variance 1 (of the batch in "
                        "training, else as given), then by scale and offset (Ioffe & Szegedy "
                        "2015)."));
  registry.Add(WithAttrs(OpDef("FusedBatchNormGradV3")
                             .Input("y_backprop: T")
                             .Input("x: T")
                             .Input("scale: U")
                             .Input("reserve_space_1: U")
                             .Input("reserve_space_2: U")
                             .Input("reserve_space_3: U")
                             .Output("x_backprop: T")
                             .Output("scale_backprop: U")
                             .Output("offset_backprop: U")
                             .Output("reserve_space_4: U")
                             .Output("reserve_space_5: U"))
                   .Shape(BatchNormGradShape)
                   .NotDifferentiable("second derivatives are not provided; compose the "
                                      "normalisation of Mean, Rsqrt and Mul where they are needed")
                   .Sharding(Whole)
                   .Doc("The gradients of FusedBatchNormV3 for x, scale and offset."));
}

}  // namespace millrace
