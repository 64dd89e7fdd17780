#include "ops/array_ops.h"
#include "ops/gradient_shapes.h"
#include "ops/math_ops.h"
#include "ops/node_call.h"
#include "ops/op_families.h"
#include "ops/shape_functions.h"
#include "ops/sharding_rules.h"

// Rectifiers and their kin, with their public gradient ops, which users do not call.
namespace millrace {

Value Relu(Value x, Where where) { return Call("Relu", {x}, {}, where); }
Value Relu6(Value x, Where where) { return Call("Relu6", {x}, {}, where); }
Value LeakyRelu(Value x, float alpha, Where where) {
  return Call("LeakyRelu", {x}, {{"alpha", alpha}}, where);
}
Value Elu(Value x, Where where) { return Call("Elu", {x}, {}, where); }
Value Softplus(Value x, Where where) { return Call("Softplus", {x}, {}, where); }

namespace {

// Of `op`, a public gradient op, at (dy, x), with the parameters of the node c is of.
Value GradientAt(GradientContext& c, const char* op, Value dy, Value x) {
  AttrMap attrs;
  if (const AttrValue* alpha = c.attrs().Find("alpha")) attrs.Set("alpha", *alpha);
  return Call(op, {dy, x}, std::move(attrs), Where::Current());
}

// The slope of some is told by the output, which the step has anyway: so the input may go.
GradientFn ByOutput(const char* op) {
  return [op](GradientContext& c) {
    c.set_dx(0, GradientAt(c, op, c.dy(0), c.output(0)));
    return absl::OkStatus();
  };
}

GradientFn ByInput(const char* op) {
  return [op](GradientContext& c) {
    c.set_dx(0, GradientAt(c, op, c.dy(0), c.input(0)));
    return absl::OkStatus();
  };
}

// Of the gradient of a piecewise linear function: only the incoming gradient matters.
GradientFn OfPieces(const char* op) {
  return [op](GradientContext& c) {
    if (c.needs_dx(0)) c.set_dx(0, GradientAt(c, op, c.dy(0), c.input(1)));
    return absl::OkStatus();
  };
}

// z = dy (y + 1) where y < 0, else dy
Status EluGradGradient(GradientContext& c) {
  const Value dy = c.input(0), y = c.input(1), g = c.dy(0);
  if (c.needs_dx(0)) c.set_dx(0, GradientAt(c, "EluGrad", g, y));
  if (c.needs_dx(1)) c.set_dx(1, Select(Less(y, ZerosLike(y)), Mul(g, dy), ZerosLike(y)));
  return absl::OkStatus();
}

// z = dy s, s = sigmoid(x), of which the slope is s (1 - s)
Status SoftplusGradGradient(GradientContext& c) {
  const Value dy = c.input(0), x = c.input(1), g = c.dy(0);
  if (c.needs_dx(0)) c.set_dx(0, GradientAt(c, "SoftplusGrad", g, x));
  if (c.needs_dx(1)) {
    c.set_dx(1, Call("SigmoidGrad", {Sigmoid(x), Mul(g, dy)}, {}, Where::Current()));
  }
  return absl::OkStatus();
}

constexpr char kNumbers[] =
    "T: {float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64}";
constexpr char kFloats[] = "T: {float, double}";
// A public default; others must be told by the inputs.
constexpr char kFloatsOrFloat[] = "T: {float, double} = float";

OpDef Activation(const char* name, const char* types, GradientFn gradient) {
  OpDef op(name);
  op.Input("features: T").Output("activations: T").Attr(types).Shape(ShapeOfInput0);
  op.Gradient(std::move(gradient)).Sharding(ElementwiseSharding(Linearity::kNone));
  op.Traits({Trait::kElementwise, Trait::kInPlace, Trait::kCheap});
  return op;
}

// `at`: what its second input is.
OpDef ActivationGradient(const char* name, const char* at, const char* types, GradientFn gradient) {
  OpDef op(name);
  op.Input("gradients: T").Input(at).Output("backprops: T").Attr(types).Shape(EqualShapes);
  op.Gradient(std::move(gradient)).Sharding(ElementwiseSharding(Linearity::kEach, {0}));
  op.Traits({Trait::kElementwise, Trait::kInPlace, Trait::kCheap});
  return op;
}

}  // namespace

void RegisterActivationOps(OpRegistry& registry) {
  registry.Add(
      Activation("Relu", kNumbers, ByOutput("ReluGrad")).Doc("The larger of each element and 0."));
  registry.Add(Activation("Relu6", kNumbers, ByOutput("Relu6Grad"))
                   .Doc("Each element, but at least 0 and at most 6."));
  registry.Add(Activation("LeakyRelu", kFloatsOrFloat, ByInput("LeakyReluGrad"))
                   .Attr("alpha: float = 0.2")
                   .Doc("Each positive element, and alpha times each other one."));
  registry.Add(Activation("Elu", kFloats, ByOutput("EluGrad"))
                   .Doc("Each positive element, and e^x - 1 of each other one."));
  registry.Add(Activation("Softplus", kFloats, ByInput("SoftplusGrad"))
                   .Doc("log(1 + e^x) of each element."));

  constexpr char kFeatures[] = "features: T";
  registry.Add(ActivationGradient("ReluGrad", kFeatures, kFloats, OfPieces("ReluGrad"))
                   .Doc("The gradient where the feature is positive, else 0."));
  registry.Add(ActivationGradient("Relu6Grad", kFeatures, kFloats, OfPieces("Relu6Grad"))
                   .Doc("The gradient where the feature is between 0 and 6, else 0."));
  registry.Add(
      ActivationGradient("LeakyReluGrad", kFeatures, kFloatsOrFloat, OfPieces("LeakyReluGrad"))
          .Attr("alpha: float = 0.2")
          .Doc("The gradient where the feature is positive, else alpha times it."));
  registry.Add(ActivationGradient("EluGrad", "outputs: T", kFloats, EluGradGradient)
                   .Doc("The gradient, times y + 1 where the output y of Elu is negative."));
  registry.Add(ActivationGradient("SoftplusGrad", kFeatures, kFloats, SoftplusGradGradient)
                   .Doc("The gradient times sigmoid(x)."));
}

}  // namespace millrace
