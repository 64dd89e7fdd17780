#include <vector>

#include "ops/array_ops.h"
#include "ops/gradient_shapes.h"
#include "ops/math_ops.h"
#include "ops/node_call.h"
#include "ops/op_families.h"
#include "ops/sharding_rules.h"

// Elementwise functions of one tensor.
namespace millrace {

Value Neg(Value x, Where where) { return Call("Neg", {x}, {}, where); }
Value Abs(Value x, Where where) { return Call("Abs", {x}, {}, where); }
Value Sign(Value x, Where where) { return Call("Sign", {x}, {}, where); }
Value Square(Value x, Where where) { return Call("Square", {x}, {}, where); }
Value Sqrt(Value x, Where where) { return Call("Sqrt", {x}, {}, where); }
Value Rsqrt(Value x, Where where) { return Call("Rsqrt", {x}, {}, where); }
Value Reciprocal(Value x, Where where) { return Call("Reciprocal", {x}, {}, where); }
Value Exp(Value x, Where where) { return Call("Exp", {x}, {}, where); }
Value Log(Value x, Where where) { return Call("Log", {x}, {}, where); }
Value Tanh(Value x, Where where) { return Call("Tanh", {x}, {}, where); }
Value Sigmoid(Value x, Where where) { return Call("Sigmoid", {x}, {}, where); }
Value Relu(Value x, Where where) { return Call("Relu", {x}, {}, where); }
Value IsFinite(Value x, Where where) { return Call("IsFinite", {x}, {}, where); }
Value Cast(Value x, DType dtype, Where where) {
  return Call("Cast", {x}, {{"DstT", dtype}}, where);
}

namespace {

Status NegGradient(GradientContext& c) {
  c.set_dx(0, Neg(c.dy(0)));
  return absl::OkStatus();
}

Status AbsGradient(GradientContext& c) {
  c.set_dx(0, Mul(c.dy(0), Sign(c.input(0))));
  return absl::OkStatus();
}

Status SquareGradient(GradientContext& c) {
  c.set_dx(0, Mul(c.dy(0), c.input(0) * 2.0));
  return absl::OkStatus();
}

Status ExpGradient(GradientContext& c) {
  c.set_dx(0, Mul(c.dy(0), c.output(0)));
  return absl::OkStatus();
}

Status LogGradient(GradientContext& c) {
  c.set_dx(0, Div(c.dy(0), c.input(0)));
  return absl::OkStatus();
}

Status ReluGradient(GradientContext& c) {
  c.set_dx(0, Call("ReluGrad", {c.dy(0), c.output(0)}, {}, Where::Current()));
  return absl::OkStatus();
}

Status CastGradient(GradientContext& c) {
  const DType from = c.input(0).dtype();
  if (IsFloating(from) && IsFloating(c.output(0).dtype())) c.set_dx(0, Cast(c.dy(0), from));
  return absl::OkStatus();
}

// For f with a public gradient op `op`(y, dy).
GradientFn GradientOp(const char* op) {
  return [op](GradientContext& c) {
    c.set_dx(0, Call(op, {c.output(0), c.dy(0)}, {}, Where::Current()));
    return absl::OkStatus();
  };
}

// A sum of real numbers is kept by a change of floating dtype, but not by rounding to integers.
Status CastSharding(ShardingContext& c) {
  const bool floating = IsFloating(c.attrs().GetOr("SrcT", DType::kInvalid)) &&
                        IsFloating(c.attrs().GetOr("DstT", DType::kInvalid));
  if (c.input(0).kind == Sharding::kPartialSum && !floating) {
    c.Require(0, Sharding::Replicated());
  }
  return SameSharding(c);
}

struct UnaryOp {
  const char* name;
  const char* types;
  GradientFn gradient;
  const char* doc;
};

constexpr char kNumbers[] = "T: {float, double, int32, int64}";
constexpr char kFloats[] = "T: {float, double}";

}  // namespace

void RegisterUnaryOps(OpRegistry& registry) {
  const UnaryOp ops[] = {
      {"Neg", kNumbers, NegGradient, "The negative of each element."},
      {"Abs", kNumbers, AbsGradient, "The absolute value of each element."},
      {"Sign", kNumbers, ZeroGradient, "-1, 0 or 1: the sign of each element."},
      {"Square", kNumbers, SquareGradient, "The square of each element."},
      {"Sqrt", kFloats, GradientOp("SqrtGrad"), "The square root of each element."},
      {"Rsqrt", kFloats, GradientOp("RsqrtGrad"), "1 over the square root of each element."},
      {"Reciprocal", kFloats, GradientOp("ReciprocalGrad"), "1 over each element."},
      {"Exp", kFloats, ExpGradient, "e to the power of each element."},
      {"Log", kFloats, LogGradient, "The natural logarithm of each element."},
      {"Tanh", kFloats, GradientOp("TanhGrad"), "The hyperbolic tangent of each element."},
      {"Sigmoid", kFloats, GradientOp("SigmoidGrad"), "1/(1+e^-x) of each element."},
  };
  for (const UnaryOp& op : ops) {
    const bool linear = op.name == absl::string_view("Neg");
    registry.Add(
        OpDef(op.name)
            .Input("x: T")
            .Output("y: T")
            .Attr(op.types)
            .Shape(ShapeOfInput0)
            .Gradient(op.gradient)
            .Sharding(ElementwiseSharding(linear ? Linearity::kTogether : Linearity::kNone))
            .Traits({Trait::kElementwise, Trait::kInPlace, Trait::kCheap})
            .Doc(op.doc));
  }
  // The public op calls its ports otherwise.
  registry.Add(OpDef("Relu")
                   .Input("features: T")
                   .Output("activations: T")
                   .Attr(kNumbers)
                   .Shape(ShapeOfInput0)
                   .Gradient(ReluGradient)
                   .Sharding(ElementwiseSharding(Linearity::kNone))
                   .Traits({Trait::kElementwise, Trait::kInPlace, Trait::kCheap})
                   .Doc("The larger of each element and 0."));
  registry.Add(OpDef("IsFinite")
                   .Input("x: T")
                   .Output("y: bool")
                   .Attr(kFloats)
                   .Shape(ShapeOfInput0)
                   .NotDifferentiable("its output is boolean")
                   .Sharding(ElementwiseSharding(Linearity::kNone))
                   .Traits({Trait::kElementwise, Trait::kCheap})
                   .Doc("Whether each element is neither infinite nor NaN."));
  registry.Add(OpDef("Cast")
                   .Input("x: SrcT")
                   .Output("y: DstT")
                   .Attr("SrcT: type")
                   .Attr("DstT: type")
                   .Attr("Truncate: bool = false")
                   .Shape(ShapeOfInput0)
                   .Gradient(CastGradient)
                   .Sharding(CastSharding)
                   .Traits({Trait::kElementwise, Trait::kCheap})
                   .Doc("The same numbers as another dtype."));
}

}  // namespace millrace
