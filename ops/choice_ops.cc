#include "ops/array_ops.h"
#include "ops/gradient_shapes.h"
#include "ops/math_ops.h"
#include "ops/node_call.h"
#include "ops/op_families.h"
#include "ops/shape_functions.h"
#include "ops/sharding_rules.h"

// Choices between tensors, element by element: by a condition, or by bounds.
namespace millrace {

Value Select(Value condition, Value x, Value y, Where where) {
  return Call("SelectV2", {condition, x, y}, {}, where);
}
Value ClipByValue(Value x, Value low, Value high, Where where) {
  return Call("ClipByValue", {x, low, high}, {}, where);
}

namespace {

// ---- SelectV2 ----

Status SelectShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape branches, BroadcastShapes(c.input(1), c.input(2)));
  return SetOutput(c, 0, BroadcastShapes(c.input(0), branches));
}

Status SelectGradient(GradientContext& c) {
  if (!c.dy(0).ok()) return absl::OkStatus();  // poisoned: the builder knows why
  const Value condition = c.input(0), y = c.output(0);
  const Value zero = Scalar(c.builder(), 0, c.dy(0).dtype());
  if (c.needs_dx(1)) {
    c.set_dx(1, SumToShapeOf(Select(condition, c.dy(0), zero), c.input(1), y));
  }
  if (c.needs_dx(2)) {
    c.set_dx(2, SumToShapeOf(Select(condition, zero, c.dy(0)), c.input(2), y));
  }
  return absl::OkStatus();
}

// Linear in both branches together, under one condition.
bool KeepsPartialSums(ShardingContext& c) {
  if (c.input(0).kind != Sharding::kReplicated || c.input(1).kind != Sharding::kPartialSum ||
      c.input(2).kind != Sharding::kPartialSum) {
    return false;
  }
  c.set_output(0, Sharding::PartialSum());
  return true;
}

Status SelectSharding(ShardingContext& c) {
  if (KeepsPartialSums(c)) return absl::OkStatus();
  return ElementwiseSharding(Linearity::kNone)(c);
}

// ---- Select, the older form: equal branches, and a condition that is a scalar, a vector that
// picks rows, or of their shape ----

Status RowSelectShape(ShapeContext& c) {
  auto merged = c.input(1).MergeWith(c.input(2));
  if (!merged.ok()) {
    return InvalidArgument("t and e must have one shape, but have ", c.input(1).ToString(), " and ",
                           c.input(2).ToString());
  }
  PartialShape branches = *merged;
  const PartialShape& condition = c.input(0);
  if (!condition.has_rank() || condition.rank() == 0) return SetOutput(c, 0, branches);
  const bool rows = condition.rank() == 1 && (!branches.has_rank() || branches.rank() != 1);
  if (!rows) {
    merged = branches.MergeWith(condition);
    if (merged.ok()) return SetOutput(c, 0, merged);
  } else if (!branches.has_rank()) {
    return absl::OkStatus();
  } else if (branches.rank() > 0) {
    std::vector<int64_t> dims = Extents(branches);
    if (dims[0] < 0) dims[0] = condition.dim(0);
    if (!condition.dim_known(0) || condition.dim(0) == dims[0]) {
      return SetOutput(c, 0, PartialShape::Create(dims));
    }
  }
  return InvalidArgument("the condition ", condition.ToString(),
                         " must be a scalar, a vector with an element for each row, or have the "
                         "shape ",
                         branches.ToString(), " of t and e; use SelectV2 to broadcast");
}

Status RowSelectGradient(GradientContext& c) {
  const Value zero = ZerosLike(c.dy(0));
  const auto select = [&](Value t, Value e) {
    return Call("Select", {c.input(0), t, e}, {}, Where::Current());
  };
  if (c.needs_dx(1)) c.set_dx(1, select(c.dy(0), zero));
  if (c.needs_dx(2)) c.set_dx(2, select(zero, c.dy(0)));
  return absl::OkStatus();
}

Status RowSelectSharding(ShardingContext& c) {
  if (KeepsPartialSums(c)) return absl::OkStatus();
  const PartialShape& condition = c.input_shape(0);
  const PartialShape& branches = c.output_shape(0);
  // What the branches are split along, or the condition tells.
  int dim = -1;
  for (const int i : {1, 2, 0}) {
    if (dim < 0 && c.input(i).kind == Sharding::kSplit) dim = c.input(i).dim;
  }
  if (dim < 0 || !condition.has_rank() || !branches.has_rank()) {
    RequireReplicated(c);
    c.set_output(0, Sharding::Replicated());
    return absl::OkStatus();
  }
  c.Require(0, dim < condition.rank() ? Sharding::Split(dim) : Sharding::Replicated());
  c.Require(1, Sharding::Split(dim));
  c.Require(2, Sharding::Split(dim));
  c.set_output(0, Sharding::Split(dim));
  return absl::OkStatus();
}

// ---- ClipByValue ----

// A bound is a scalar or has the shape of t.
Status ClipShape(ShapeContext& c) {
  PartialShape t = c.input(0);
  for (int i = 1; i < 3; ++i) {
    const PartialShape& bound = c.input(i);
    if (!bound.has_rank() || bound.rank() == 0) continue;
    auto merged = t.MergeWith(bound);
    if (!merged.ok()) {
      return InvalidArgument(i == 1 ? "clip_value_min" : "clip_value_max",
                             " must be a scalar or have the shape ", t.ToString(),
                             " of t, but has ", bound.ToString());
    }
    t = *merged;
  }
  c.set_output(0, t);
  return absl::OkStatus();
}

// To the bound that holds the element, or else to the element.
Status ClipGradient(GradientContext& c) {
  if (!c.dy(0).ok()) return absl::OkStatus();  // poisoned: the builder knows why
  const Value t = c.input(0), low = c.input(1), high = c.input(2), dy = c.dy(0);
  const Value zero = Scalar(c.builder(), 0, dy.dtype());
  const Value below = Less(t, low), above = Greater(t, high);
  if (c.needs_dx(0)) {
    c.set_dx(0, Select(below, zero, Select(above, zero, dy)));
  }
  if (c.needs_dx(1)) c.set_dx(1, SumToShapeOf(Select(below, dy, zero), low, c.output(0)));
  if (c.needs_dx(2)) c.set_dx(2, SumToShapeOf(Select(above, dy, zero), high, c.output(0)));
  return absl::OkStatus();
}

}  // namespace

void RegisterChoiceOps(OpRegistry& registry) {
  registry.Add(OpDef("SelectV2")
                   .Input("condition: bool")
                   .Input("t: T")
                   .Input("e: T")
                   .Output("output: T")
                   .Attr("T: type")
                   .Shape(SelectShape)
                   .Gradient(SelectGradient)
                   .Sharding(SelectSharding)
                   .Traits({Trait::kElementwise, Trait::kInPlace, Trait::kCheap})
                   .Doc("t where the condition is true, else e; all three broadcast."));
  registry.Add(OpDef("Select")
                   .Input("condition: bool")
                   .Input("t: T")
                   .Input("e: T")
                   .Output("output: T")
                   .Attr("T: type")
                   .Shape(RowSelectShape)
                   .Gradient(RowSelectGradient)
                   .Sharding(RowSelectSharding)
                   .Traits({Trait::kInPlace, Trait::kCheap})
                   .Doc("t where the condition is true, else e; a vector of conditions is for "
                        "their rows."));
  registry.Add(OpDef("ClipByValue")
                   .Input("t: T")
                   .Input("clip_value_min: T")
                   .Input("clip_value_max: T")
                   .Output("output: T")
                   .Attr("T: {float, double, int8, int16, int32, int64, uint8, uint16}")
                   .Shape(ClipShape)
                   .Gradient(ClipGradient)
                   .Sharding(ElementwiseSharding(Linearity::kNone))
                   .Traits({Trait::kElementwise, Trait::kInPlace, Trait::kCheap})
                   .Doc("Each element of t, but at most the one bound and at least the other."));
}

}  // namespace millrace
