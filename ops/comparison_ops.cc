#include "ops/math_ops.h"
#include "ops/node_call.h"
#include "ops/op_families.h"
#include "ops/sharding_rules.h"

// Comparisons and logic.
namespace millrace {

Value Equal(Value x, Value y, Where where) { return Call("Equal", {x, y}, {}, where); }
Value NotEqual(Value x, Value y, Where where) { return Call("NotEqual", {x, y}, {}, where); }
Value Less(Value x, Value y, Where where) { return Call("Less", {x, y}, {}, where); }
Value LessEqual(Value x, Value y, Where where) { return Call("LessEqual", {x, y}, {}, where); }
Value Greater(Value x, Value y, Where where) { return Call("Greater", {x, y}, {}, where); }
Value GreaterEqual(Value x, Value y, Where where) {
  return Call("GreaterEqual", {x, y}, {}, where);
}
Value LogicalAnd(Value x, Value y, Where where) { return Call("LogicalAnd", {x, y}, {}, where); }
Value LogicalOr(Value x, Value y, Where where) { return Call("LogicalOr", {x, y}, {}, where); }
Value LogicalNot(Value x, Where where) { return Call("LogicalNot", {x}, {}, where); }

namespace {

constexpr char kBoolean[] = "its output is boolean";
constexpr char kNumbers[] =
    "T: {float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64";

// The public ops may answer `false` to shapes that do not broadcast instead of refusing them.
Status EqualityShape(ShapeContext& c) {
  if (!c.attrs().GetOr("incompatible_shape_error", true)) {
    return InvalidArgument("incompatible_shape_error = false is not supported");
  }
  return BroadcastShape(c);
}

}  // namespace

void RegisterComparisonOps(OpRegistry& registry) {
  const ShardingFn sharding = ElementwiseSharding(Linearity::kNone);
  for (const char* name : {"Equal", "NotEqual"}) {
    registry.Add(OpDef(name)
                     .Input("x: T")
                     .Input("y: T")
                     .Output("z: bool")
                     .Attr(StrCat(kNumbers, ", bool, string}"))
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
                     .Attr(StrCat(kNumbers, "}"))
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
}

}  // namespace millrace
