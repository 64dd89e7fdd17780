#include "ops/gradient_shapes.h"
#include "ops/math_ops.h"
#include "ops/node_call.h"
#include "ops/op_families.h"
#include "ops/shape_functions.h"
#include "ops/sharding_rules.h"

// The public gradient ops of elementwise functions: f'(x) dy, written with y = f(x) where that is
// cheaper. Users do not call them. Their own gradients, with g the gradient of the result, are
// those of a product: linear in dy, and a second derivative for y.
namespace millrace {
namespace {

Value Again(const char* op, Value y, Value g) { return Call(op, {y, g}, {}, Where::Current()); }

// z = dy (1 - y^2)
Status TanhGradGradient(GradientContext& c) {
  const Value y = c.input(0), dy = c.input(1), g = c.dy(0);
  if (c.needs_dx(0)) c.set_dx(0, Mul(Mul(g, dy), y * -2.0));
  if (c.needs_dx(1)) c.set_dx(1, Again("TanhGrad", y, g));
  return absl::OkStatus();
}

// z = dy y (1 - y)
Status SigmoidGradGradient(GradientContext& c) {
  const Value y = c.input(0), dy = c.input(1), g = c.dy(0);
  if (c.needs_dx(0)) c.set_dx(0, Mul(Mul(g, dy), 1.0 - y * 2.0));
  if (c.needs_dx(1)) c.set_dx(1, Again("SigmoidGrad", y, g));
  return absl::OkStatus();
}

// z = dy / (2 y)
Status SqrtGradGradient(GradientContext& c) {
  const Value y = c.input(0), g = c.dy(0);
  if (c.needs_dx(0)) c.set_dx(0, Neg(Div(Mul(g, c.output(0)), y)));
  if (c.needs_dx(1)) c.set_dx(1, Again("SqrtGrad", y, g));
  return absl::OkStatus();
}

// z = -dy y^3 / 2
Status RsqrtGradGradient(GradientContext& c) {
  const Value y = c.input(0), dy = c.input(1), g = c.dy(0);
  if (c.needs_dx(0)) c.set_dx(0, Mul(Mul(g, dy), Square(y) * -1.5));
  if (c.needs_dx(1)) c.set_dx(1, Again("RsqrtGrad", y, g));
  return absl::OkStatus();
}

// z = -dy y^2, of ReciprocalGrad and of InvGrad.
Status ReciprocalGradGradient(GradientContext& c) {
  const Value y = c.input(0), dy = c.input(1), g = c.dy(0);
  if (c.needs_dx(0)) c.set_dx(0, Mul(Mul(g, dy), y * -2.0));
  if (c.needs_dx(1)) c.set_dx(1, Again("ReciprocalGrad", y, g));
  return absl::OkStatus();
}

}  // namespace

void RegisterUnaryGradientOps(OpRegistry& registry) {
  const struct {
    const char* name;
    GradientFn gradient;
    const char* doc;
  } ops[] = {
      {"TanhGrad", TanhGradGradient, "dy (1 - y^2): the gradient of y = tanh(x)."},
      {"SigmoidGrad", SigmoidGradGradient, "dy y (1 - y): the gradient of y = sigmoid(x)."},
      {"SqrtGrad", SqrtGradGradient, "dy / (2 y): the gradient of y = sqrt(x)."},
      {"RsqrtGrad", RsqrtGradGradient, "-dy y^3 / 2: the gradient of y = 1/sqrt(x)."},
      {"ReciprocalGrad", ReciprocalGradGradient, "-dy y^2: the gradient of y = 1/x."},
      {"InvGrad", ReciprocalGradGradient, "-dy y^2: the older ReciprocalGrad."},
  };
  for (const auto& op : ops) {
    registry.Add(OpDef(op.name)
                     .Input("y: T")
                     .Input("dy: T")
                     .Output("z: T")
                     .Attr("T: {float, double}")
                     .Shape(EqualShapes)
                     .Gradient(op.gradient)
                     .Sharding(ElementwiseSharding(Linearity::kEach, {1}))
                     .Traits({Trait::kElementwise, Trait::kInPlace, Trait::kCheap})
                     .Doc(op.doc));
  }
}

}  // namespace millrace
