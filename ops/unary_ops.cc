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
Value Expm1(Value x, Where where) { return Call("Expm1", {x}, {}, where); }
Value Log1p(Value x, Where where) { return Call("Log1p", {x}, {}, where); }
Value Erf(Value x, Where where) { return Call("Erf", {x}, {}, where); }
Value IsFinite(Value x, Where where) { return Call("IsFinite", {x}, {}, where); }
Value IsNan(Value x, Where where) { return Call("IsNan", {x}, {}, where); }
Value IsInf(Value x, Where where) { return Call("IsInf", {x}, {}, where); }
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

// Not y + 1, which is 0 where e^x is small.
Status Expm1Gradient(GradientContext& c) {
  c.set_dx(0, Mul(c.dy(0), Exp(c.input(0))));
  return absl::OkStatus();
}

Status Log1pGradient(GradientContext& c) {
  c.set_dx(0, Div(c.dy(0), c.input(0) + 1.0));
  return absl::OkStatus();
}

// 2/sqrt(pi) e^(-x^2)
Status ErfGradient(GradientContext& c) {
  constexpr double kSlopeAtZero = 1.1283791670955126;
  c.set_dx(0, Mul(c.dy(0), Exp(Neg(Square(c.input(0)))) * kSlopeAtZero));
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

constexpr char kNumbers[] =
    "T: {float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64}";
constexpr char kSigned[] = "T: {float, double, int8, int16, int32, int64}";
constexpr char kFloats[] = "T: {float, double}";

}  // namespace

void RegisterUnaryOps(OpRegistry& registry) {
  const UnaryOp ops[] = {
      {"Neg", kSigned, NegGradient, "The negative of each element."},
      {"Abs", kSigned, AbsGradient, "The absolute value of each element."},
      {"Sign", kSigned, ZeroGradient, "-1, 0 or 1: the sign of each element."},
      {"Square", kNumbers, SquareGradient, "The square of each element."},
      {"Sqrt", kFloats, GradientOp("SqrtGrad"), "The square root of each element."},
      {"Rsqrt", kFloats, GradientOp("RsqrtGrad"), "1 over the square root of each element."},
      {"Reciprocal", kFloats, GradientOp("ReciprocalGrad"), "1 over each element."},
      {"Inv", kFloats, GradientOp("InvGrad"), "1 over each element: the older Reciprocal."},
      {"Exp", kFloats, ExpGradient, "e to the power of each element."},
      {"Log", kFloats, LogGradient, "The natural logarithm of each element."},
      {"Expm1", kFloats, Expm1Gradient, "e^x - 1 of each element, exact for small ones."},
      {"Log1p", kFloats, Log1pGradient, "log(1 + x) of each element, exact for small ones."},
      {"Erf", kFloats, ErfGradient, "The error function of each element."},
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
  const struct {
    const char* name;
    const char* doc;
  } tests[] = {
      {"IsFinite", "Whether each element is neither infinite nor NaN."},
      {"IsNan", "Whether each element is NaN."},
      {"IsInf", "Whether each element is infinite, of either sign."},
  };
  for (const auto& op : tests) {
    registry.Add(OpDef(op.name)
                     .Input("x: T")
                     .Output("y: bool")
                     .Attr(kFloats)
                     .Shape(ShapeOfInput0)
                     .NotDifferentiable("its output is boolean")
                     .Sharding(ElementwiseSharding(Linearity::kNone))
                     .Traits({Trait::kElementwise, Trait::kCheap})
                     .Doc(op.doc));
  }
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
                   .Doc("The same numbers as another dtype; Truncate rounds floats towards zero."));
}

}  // namespace millrace
