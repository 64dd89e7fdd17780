#include "ops/array_ops.h"
#include "ops/gradient_shapes.h"
#include "ops/math_ops.h"
#include "ops/node_call.h"
#include "ops/op_families.h"
#include "ops/sharding_rules.h"

// Arithmetic of two tensors, with broadcasting.
namespace millrace {

Value Add(Value x, Value y, Where where) { return Call("AddV2", {x, y}, {}, where); }
Value Sub(Value x, Value y, Where where) { return Call("Sub", {x, y}, {}, where); }
Value Mul(Value x, Value y, Where where) { return Call("Mul", {x, y}, {}, where); }
Value Div(Value x, Value y, Where where) {
  return Call(IsFloating(x.dtype()) ? "RealDiv" : "Div", {x, y}, {}, where);
}
Value DivNoNan(Value x, Value y, Where where) { return Call("DivNoNan", {x, y}, {}, where); }
Value FloorDiv(Value x, Value y, Where where) { return Call("FloorDiv", {x, y}, {}, where); }
Value FloorMod(Value x, Value y, Where where) { return Call("FloorMod", {x, y}, {}, where); }
Value Maximum(Value x, Value y, Where where) { return Call("Maximum", {x, y}, {}, where); }
Value Minimum(Value x, Value y, Where where) { return Call("Minimum", {x, y}, {}, where); }
Value Pow(Value x, Value y, Where where) { return Call("Pow", {x, y}, {}, where); }
Value SquaredDifference(Value x, Value y, Where where) {
  return Call("SquaredDifference", {x, y}, {}, where);
}

namespace {

Status AddGradient(GradientContext& c) {
  BroadcastGradients dx(c);
  dx.Set(0, c.dy(0));
  dx.Set(1, c.dy(0));
  return absl::OkStatus();
}

Status SubGradient(GradientContext& c) {
  BroadcastGradients dx(c);
  dx.Set(0, c.dy(0));
  if (dx.needs(1)) dx.Set(1, Neg(c.dy(0)));
  return absl::OkStatus();
}

Status MulGradient(GradientContext& c) {
  BroadcastGradients dx(c);
  if (dx.needs(0)) dx.Set(0, Mul(c.dy(0), c.input(1)));
  if (dx.needs(1)) dx.Set(1, Mul(c.input(0), c.dy(0)));
  return absl::OkStatus();
}

// d(x/y) = dx/y - (x/y)/y dy
Status DivGradient(GradientContext& c) {
  BroadcastGradients dx(c);
  const Value y = c.input(1);
  if (dx.needs(0)) dx.Set(0, Div(c.dy(0), y));
  if (dx.needs(1)) dx.Set(1, Neg(Mul(c.dy(0), Div(c.output(0), y))));
  return absl::OkStatus();
}

Status DivNoNanGradient(GradientContext& c) {
  BroadcastGradients dx(c);
  const Value y = c.input(1);
  if (dx.needs(0)) dx.Set(0, DivNoNan(c.dy(0), y));
  if (dx.needs(1)) dx.Set(1, Neg(Mul(c.dy(0), DivNoNan(c.output(0), y))));
  return absl::OkStatus();
}

// x - floor(x/y) y, where the floor is constant almost everywhere.
Status FloorModGradient(GradientContext& c) {
  BroadcastGradients dx(c);
  dx.Set(0, c.dy(0));
  if (dx.needs(1)) dx.Set(1, Neg(Mul(c.dy(0), FloorDiv(c.input(0), c.input(1)))));
  return absl::OkStatus();
}

// Where the operands are equal, the first one gets all of it.
Status PickGradient(GradientContext& c, Value first) {
  BroadcastGradients dx(c);
  if (!c.dy(0).ok()) return absl::OkStatus();  // poisoned: the builder knows why
  const Value zero = Scalar(c.builder(), 0, c.dy(0).dtype());
  if (dx.needs(0)) dx.Set(0, Select(first, c.dy(0), zero));
  if (dx.needs(1)) dx.Set(1, Select(first, zero, c.dy(0)));
  return absl::OkStatus();
}

Status MaximumGradient(GradientContext& c) {
  return PickGradient(c, GreaterEqual(c.input(0), c.input(1)));
}

Status MinimumGradient(GradientContext& c) {
  return PickGradient(c, LessEqual(c.input(0), c.input(1)));
}

// d(x^y) = y x^(y-1) dx + x^y log(x) dy; the second term is taken as 0 where x has no logarithm.
Status PowGradient(GradientContext& c) {
  BroadcastGradients dx(c);
  const Value x = c.input(0), y = c.input(1);
  if (dx.needs(0)) dx.Set(0, Mul(c.dy(0), Mul(y, Pow(x, y - 1.0))));
  if (dx.needs(1)) {
    const Value positive = Greater(x, ZerosLike(x));
    const Value log_x = Select(positive, Log(Select(positive, x, OnesLike(x))), ZerosLike(x));
    dx.Set(1, Mul(c.dy(0), Mul(c.output(0), log_x)));
  }
  return absl::OkStatus();
}

Status SquaredDifferenceGradient(GradientContext& c) {
  BroadcastGradients dx(c);
  const Value twice = Mul(c.dy(0), Sub(c.input(0), c.input(1)) * 2.0);
  dx.Set(0, twice);
  if (dx.needs(1)) dx.Set(1, Neg(twice));
  return absl::OkStatus();
}

constexpr char kNumbers[] =
    "T: {float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64}";
constexpr char kSigned[] = "T: {float, double, int8, int16, int32, int64}";
constexpr char kWide[] = "T: {float, double, int32, int64}";
constexpr char kFloats[] = "T: {float, double}";

OpDef Arithmetic(const char* name, const char* types, GradientFn gradient, ShardingFn sharding,
                 bool commutative) {
  OpDef op(name);
  op.Input("x: T").Input("y: T").Output("z: T").Attr(types).Shape(BroadcastShape);
  op.Gradient(std::move(gradient)).Sharding(std::move(sharding));
  if (commutative) {
    op.Traits({Trait::kElementwise, Trait::kInPlace, Trait::kCheap, Trait::kCommutative});
  } else {
    op.Traits({Trait::kElementwise, Trait::kInPlace, Trait::kCheap});
  }
  return op;
}

}  // namespace

void RegisterBinaryOps(OpRegistry& registry) {
  const ShardingFn sum = ElementwiseSharding(Linearity::kTogether);
  const ShardingFn product = ElementwiseSharding(Linearity::kEach, {0, 1});
  const ShardingFn quotient = ElementwiseSharding(Linearity::kEach, {0});
  const ShardingFn none = ElementwiseSharding(Linearity::kNone);
  registry.Add(Arithmetic("AddV2", kNumbers, AddGradient, sum, true).Doc("x + y, elementwise."));
  registry.Add(
      Arithmetic("Add", kNumbers, AddGradient, sum, true).Doc("x + y: the older form of AddV2."));
  registry.Add(Arithmetic("Sub", kNumbers, SubGradient, sum, false).Doc("x - y, elementwise."));
  registry.Add(Arithmetic("Mul", kNumbers, MulGradient, product, true).Doc("x * y, elementwise."));
  registry.Add(Arithmetic("RealDiv", kFloats, DivGradient, quotient, false)
                   .Doc("x / y of floating numbers, elementwise."));
  registry.Add(Arithmetic("Div", kNumbers, DivGradient, none, false)
                   .Doc("x / y, elementwise; of integers rounded towards zero."));
  registry.Add(Arithmetic("DivNoNan", kFloats, DivNoNanGradient, quotient, false)
                   .Doc("x / y, elementwise; 0 where y is 0."));
  registry.Add(Arithmetic("FloorDiv", kNumbers, ZeroGradient, none, false)
                   .Doc("x / y rounded towards minus infinity, elementwise."));
  registry.Add(Arithmetic("FloorMod", kNumbers, FloorModGradient, none, false)
                   .Doc("x - FloorDiv(x, y) * y, elementwise: it has the sign of y."));
  registry.Add(
      Arithmetic("Maximum", kNumbers, MaximumGradient, none, true).Doc("The larger, elementwise."));
  registry.Add(Arithmetic("Minimum", kNumbers, MinimumGradient, none, true)
                   .Doc("The smaller, elementwise."));
  registry.Add(
      Arithmetic("Pow", kSigned, PowGradient, none, false).Doc("x to the power y, elementwise."));
  registry.Add(Arithmetic("SquaredDifference", kWide, SquaredDifferenceGradient, none, true)
                   .Doc("(x - y)^2, elementwise."));
}

}  // namespace millrace
