#include "ops/math_ops.h"

#include "core/graph/gradients.h"
#include "ops/array_ops.h"
#include "ops/node_call.h"
#include "ops/op_families.h"
#include "ops/shape_functions.h"
#include "ops/sharding_rules.h"

namespace millrace {

Value AddN(absl::Span<const Value> values, Where where) {
  return Call("AddN", values, {{"N", static_cast<int64_t>(values.size())}}, where);
}

namespace {

// A number beside x.
Value Number(Value x, double value) {
  if (!x.ok()) return x;
  return Scalar(*x.builder(), value, x.dtype(), LocationOf(x));
}

Where LineOf(Value x, Value y) { return LocationOf(x.ok() ? x : y); }

}  // namespace

Value operator+(Value x, Value y) { return Add(x, y, LineOf(x, y)); }
Value operator-(Value x, Value y) { return Sub(x, y, LineOf(x, y)); }
Value operator*(Value x, Value y) { return Mul(x, y, LineOf(x, y)); }
Value operator/(Value x, Value y) { return Div(x, y, LineOf(x, y)); }
Value operator-(Value x) { return Neg(x, LocationOf(x)); }
Value operator+(Value x, double y) { return x + Number(x, y); }
Value operator-(Value x, double y) { return x - Number(x, y); }
Value operator*(Value x, double y) { return x * Number(x, y); }
Value operator/(Value x, double y) { return x / Number(x, y); }
Value operator+(double x, Value y) { return Number(y, x) + y; }
Value operator-(double x, Value y) { return Number(y, x) - y; }
Value operator*(double x, Value y) { return Number(y, x) * y; }
Value operator/(double x, Value y) { return Number(y, x) / y; }

namespace {

Status AddNShape(ShapeContext& c) {
  PartialShape merged;
  for (int i = 0; i < c.num_inputs(); ++i) {
    auto next = merged.MergeWith(c.input(i));
    if (!next.ok()) {
      return InvalidArgument("all inputs must have one shape, but input ", i, " has ",
                             c.input(i).ToString(), " and those before ", merged.ToString());
    }
    merged = *next;
  }
  c.set_output(0, merged);
  return absl::OkStatus();
}

Status AddNGradient(GradientContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) c.set_dx(i, c.dy(0));
  return absl::OkStatus();
}

}  // namespace

void RegisterMathOps(OpRegistry& registry) {
  RegisterUnaryOps(registry);
  RegisterUnaryGradientOps(registry);
  RegisterActivationOps(registry);
  RegisterBinaryOps(registry);
  RegisterComparisonOps(registry);
  RegisterChoiceOps(registry);
  RegisterReductionOps(registry);
  RegisterScanOps(registry);
  RegisterMatMulOps(registry);
  RegisterBatchMatMulOps(registry);
  registry.Add(OpDef("AddN")
                   .Input("inputs: N * T")
                   .Output("sum: T")
                   .Attr("N: int >= 1")
                   .Attr("T: {float, double, int32, int64}")
                   .Shape(AddNShape)
                   .Gradient(AddNGradient)
                   .Sharding(ElementwiseSharding(Linearity::kTogether))
                   .Traits({Trait::kElementwise, Trait::kInPlace, Trait::kCheap})
                   .Doc("The sum of equally shaped tensors, added in their order."));
}

}  // namespace millrace
