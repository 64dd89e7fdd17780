#include "ops/array_ops.h"
#include "ops/gradient_shapes.h"
#include "ops/math_ops.h"
#include "ops/nn_ops.h"
#include "ops/node_call.h"
#include "ops/op_families.h"
#include "ops/shape_functions.h"
#include "ops/sharding_rules.h"

namespace millrace {

Value Softmax(Value logits, SourceLocation where) { return Call("Softmax", {logits}, {}, where); }
Value LogSoftmax(Value logits, SourceLocation where) {
  return Call("LogSoftmax", {logits}, {}, where);
}
Value SparseCrossEntropy(Value logits, Value labels, SourceLocation where) {
  return CallMany("SparseSoftmaxCrossEntropyWithLogits", {logits, labels}, {}, 2, where)[0];
}
Value CrossEntropy(Value logits, Value labels, SourceLocation where) {
  return CallMany("SoftmaxCrossEntropyWithLogits", {logits, labels}, {}, 2, where)[0];
}

namespace {

Status SoftmaxShape(ShapeContext& c) {
  if (c.input(0).has_rank() && c.input(0).rank() == 0) {
    return InvalidArgument("the logits are a scalar: there is no axis to normalise along");
  }
  c.set_output(0, c.input(0));
  return absl::OkStatus();
}

// y (dy - sum(y dy)) along the last axis.
Status SoftmaxGradient(GradientContext& c) {
  const Value y = c.output(0), dy = c.dy(0);
  c.set_dx(0, Mul(Sub(dy, ReduceSum(Mul(dy, y), {-1}, true)), y));
  return absl::OkStatus();
}

// dy - softmax sum(dy) along the last axis.
Status LogSoftmaxGradient(GradientContext& c) {
  const Value dy = c.dy(0);
  c.set_dx(0, Sub(dy, Mul(ReduceSum(dy, {-1}, true), Exp(c.output(0)))));
  return absl::OkStatus();
}

// Rows are independent; a row must be whole.
Status SoftmaxSharding(ShardingContext& c) {
  const PartialShape& logits = c.input_shape(0);
  const Sharding in = c.input(0);
  const bool rows = in.kind == Sharding::kSplit && logits.has_rank() && in.dim != logits.rank() - 1;
  if (!rows) c.Require(0, Sharding::Replicated());
  return SameSharding(c);
}

Status CrossEntropyShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape features, c.WithRank(0, 2));
  MR_ASSIGN_OR_RETURN(const PartialShape labels, c.WithRank(1, 2));
  const auto both = features.MergeWith(labels);
  if (!both.ok()) {
    return InvalidArgument("logits and labels must have one shape, but have ", features.ToString(),
                           " and ", labels.ToString());
  }
  c.set_output(0, PartialShape{both->dim(0)});
  c.set_output(1, *both);
  return absl::OkStatus();
}

Status SparseCrossEntropyShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape features, c.WithRank(0, 2));
  MR_ASSIGN_OR_RETURN(const PartialShape labels, c.WithRank(1, 1));
  const auto rows = PartialShape{features.dim(0)}.MergeWith(labels);
  if (!rows.ok()) {
    return InvalidArgument("logits ", features.ToString(), " have ", features.dim(0),
                           " rows, but there are ", labels.dim(0), " labels");
  }
  c.set_output(0, *rows);
  c.set_output(1, PartialShape{rows->dim(0), features.dim(1)});
  return absl::OkStatus();
}

// The second output is the gradient of the losses for the logits. Its own gradient, that of a
// softmax, matters where second derivatives are asked for.
Value LogitsGradient(GradientContext& c) {
  const Value logits = c.input(0);
  Value dx;
  if (c.has_dy(0)) dx = Mul(ExpandDims(c.dy(0), -1), c.output(1));
  if (c.has_dy(1)) {
    const Value g = c.dy(1), y = Softmax(logits);
    const Value second = Mul(Sub(g, ReduceSum(Mul(g, y), {-1}, true)), y);
    dx = c.has_dy(0) ? Add(dx, second) : second;
  }
  return dx;
}

Status CrossEntropyGradient(GradientContext& c) {
  if (c.needs_dx(0)) c.set_dx(0, LogitsGradient(c));
  if (!c.needs_dx(1)) return absl::OkStatus();
  Value dx;
  if (c.has_dy(0)) dx = Mul(ExpandDims(c.dy(0), -1), Neg(LogSoftmax(c.input(0))));
  if (c.has_dy(1)) dx = c.has_dy(0) ? Sub(dx, c.dy(1)) : Neg(c.dy(1));
  c.set_dx(1, dx);
  return absl::OkStatus();
}

Status SparseCrossEntropyGradient(GradientContext& c) {
  if (c.needs_dx(0)) c.set_dx(0, LogitsGradient(c));
  return absl::OkStatus();
}

Status CrossEntropySharding(ShardingContext& c) {
  const Sharding rows = Sharding::Split(0);
  const Sharding all = c.input(0) == rows || c.input(1) == rows ? rows : Sharding::Replicated();
  for (int i = 0; i < 2; ++i) {
    c.Require(i, all);
    c.set_output(i, all);
  }
  return absl::OkStatus();
}

// Largest, difference, exponential, sum, quotient.
OpCost SoftmaxCost(const ShapeContext& c) { return {5 * Elements(c.input(0)), TouchedBytes(c)}; }

}  // namespace

void RegisterSoftmaxOps(OpRegistry& registry) {
  registry.Add(OpDef("Softmax")
                   .Input("logits: T")
                   .Output("softmax: T")
                   .Attr("T: {float, double}")
                   .Shape(SoftmaxShape)
                   .Gradient(SoftmaxGradient)
                   .Sharding(SoftmaxSharding)
                   .Cost(SoftmaxCost)
                   .Doc("e^x over its sum along the last axis."));
  registry.Add(OpDef("LogSoftmax")
                   .Input("logits: T")
                   .Output("logsoftmax: T")
                   .Attr("T: {float, double}")
                   .Shape(SoftmaxShape)
                   .Gradient(LogSoftmaxGradient)
                   .Sharding(SoftmaxSharding)
                   .Cost(SoftmaxCost)
                   .Doc("The logarithm of Softmax, without its loss of precision."));
  registry.Add(OpDef("SoftmaxCrossEntropyWithLogits")
                   .Input("features: T")
                   .Input("labels: T")
                   .Output("loss: T")
                   .Output("backprop: T")
                   .Attr("T: {float, double}")
                   .Shape(CrossEntropyShape)
                   .Gradient(CrossEntropyGradient)
                   .Sharding(CrossEntropySharding)
                   .Cost(SoftmaxCost)
                   .Doc("The cross-entropy of each row of logits with a distribution, and its "
                        "gradient for the logits."));
  registry.Add(
      OpDef("SparseSoftmaxCrossEntropyWithLogits")
          .Input("features: T")
          .Input("labels: Tlabels")
          .Output("loss: T")
          .Output("backprop: T")
          .Attr("T: {float, double}")
          .Attr("Tlabels: {int32, int64} = int64")
          .Shape(SparseCrossEntropyShape)
          .Gradient(SparseCrossEntropyGradient)
          .Sharding(CrossEntropySharding)
          .Cost(SoftmaxCost)
          .Doc("The cross-entropy of each row of logits with a class, and its gradient for "
               "the logits."));
}

}  // namespace millrace
