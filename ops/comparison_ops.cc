#include "ops/array_ops.h"
#include "ops/gradient_shapes.h"
#include "ops/math_ops.h"
#include "ops/node_call.h"
#include "ops/op_families.h"
#include "ops/shape_functions.h"
#include "ops/sharding_rules.h"

// Comparisons, logic, and the choice by a condition.
namespace millrace {

Value Equal(Value x, Value y, Where where) { return Call("Equal", {x, y}, {}, where); }
Value NotEqual(Value x, Value y, Where where) { return Call("NotEqual", {x, y}, {}, where); }
Value Less(Value x, Value y, Where where) { return Call("Less", {x, y}, {}, where); }
Value LessEqual(Value x, Value y, Where where) { return Call("LessEqual", {x, y}, {}, where); }
Value Greater(Value x, Value y, Where where) { return Call("Greater", {x, y}, {}, where); }
Value GreaterEqual(Value x, Value y, Where where) {
  return Call("GreaterEqual", {x, y}, {}, where);
}
Value Select(Value condition, Value x, Value y, Where where) {
  return Call("SelectV2", {condition, x, y}, {}, where);
}

namespace {

constexpr char kBoolean[] = "its output is boolean";

// The public ops may answer `false` to shapes that do not broadcast instead of refusing them.
Status EqualityShape(ShapeContext& c) {
  if (!c.attrs().GetOr("incompatible_shape_error", true)) {
    return InvalidArgument("incompatible_shape_error = false is not supported");
  }
  return BroadcastShape(c);
}

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
Status SelectSharding(ShardingContext& c) {
  if (c.input(0).kind == Sharding::kReplicated && c.input(1).kind == Sharding::kPartialSum &&
      c.input(2).kind == Sharding::kPartialSum) {
    c.set_output(0, Sharding::PartialSum());
    return absl::OkStatus();
  }
  return ElementwiseSharding(Linearity::kNone)(c);
}

}  // namespace

void RegisterComparisonOps(OpRegistry& registry) {
  const ShardingFn sharding = ElementwiseSharding(Linearity::kNone);
  for (const char* name : {"Equal", "NotEqual"}) {
    registry.Add(OpDef(name)
                     .Input("x: T")
                     .Input("y: T")
                     .Output("z: bool")
                     .Attr("T: {float, double, int32, int64, uint8, int8, bool}")
                     .Attr("incompatible_shape_error: bool = true")
                     .Shape(EqualityShape)
                     .NotDifferentiable(kBoolean)
                     .Sharding(sharding)
                     .Traits({Trait::kElementwise, Trait::kCheap, Trait::kCommutative})
                     .Doc(name == absl::string_view("Equal") ? "x == y, elementwise."
                                                             : "x != y, elementwise."));
  }
  const struct {
    const char* name;
    const char* doc;
  } orders[] = {
      {"Less", "x < y, elementwise."},
      {"LessEqual", "x <= y, elementwise."},
      {"Greater", "x > y, elementwise."},
      {"GreaterEqual", "x >= y, elementwise."},
  };
  for (const auto& op : orders) {
    registry.Add(OpDef(op.name)
                     .Input("x: T")
                     .Input("y: T")
                     .Output("z: bool")
                     .Attr("T: {float, double, int32, int64, uint8, int8}")
                     .Shape(BroadcastShape)
                     .NotDifferentiable(kBoolean)
                     .Sharding(sharding)
                     .Traits({Trait::kElementwise, Trait::kCheap})
                     .Doc(op.doc));
  }
  for (const char* name : {"LogicalAnd", "LogicalOr"}) {
    registry.Add(
        OpDef(name)
            .Input("x: bool")
            .Input("y: bool")
            .Output("z: bool")
            .Shape(BroadcastShape)
            .NotDifferentiable(kBoolean)
            .Sharding(sharding)
            .Traits({Trait::kElementwise, Trait::kInPlace, Trait::kCheap, Trait::kCommutative})
            .Doc(name == absl::string_view("LogicalAnd") ? "x and y, elementwise."
                                                         : "x or y, elementwise."));
  }
  registry.Add(OpDef("LogicalNot")
                   .Input("x: bool")
                   .Output("y: bool")
                   .Shape(ShapeOfInput0)
                   .NotDifferentiable(kBoolean)
                   .Sharding(sharding)
                   .Traits({Trait::kElementwise, Trait::kInPlace, Trait::kCheap})
                   .Doc("not x, elementwise."));
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
}

}  // namespace millrace
