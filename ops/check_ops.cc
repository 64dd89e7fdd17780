#include "core/graph/gradients.h"
#include "ops/array_ops.h"
#include "ops/node_call.h"
#include "ops/op_families.h"
#include "ops/shape_functions.h"
#include "ops/sharding_rules.h"

// Ops that look at values and stop the step, or tell of them.
namespace millrace {

Operation Assert(Value condition, absl::Span<const Value> data, SourceLocation where) {
  std::vector<Value> inputs = {condition};
  inputs.insert(inputs.end(), data.begin(), data.end());
  return CallForEffect("Assert", inputs, {}, where);
}
Value Print(Value x, absl::Span<const Value> data, absl::string_view message,
            SourceLocation where) {
  std::vector<Value> inputs = {x};
  inputs.insert(inputs.end(), data.begin(), data.end());
  return Call("Print", inputs, {{"message", std::string(message)}}, where);
}
Value CheckNumerics(Value x, absl::string_view message, SourceLocation where) {
  return Call("CheckNumerics", {x}, {{"message", std::string(message)}}, where);
}

namespace {

Status AssertShape(ShapeContext& c) { return CheckScalar(c, 0, "condition"); }

Status PassGradient(GradientContext& c) {
  c.set_dx(0, c.dy(0));
  return absl::OkStatus();
}

Status CheckNumericsGradient(GradientContext& c) {
  const std::string message = c.attrs().GetOr<std::string>("message", "");
  c.set_dx(0, CheckNumerics(c.dy(0), StrCat("in the gradient of: ", message)));
  return absl::OkStatus();
}

}  // namespace

void RegisterCheckOps(OpRegistry& registry) {
  registry.Add(OpDef("Assert")
                   .Input("condition: bool")
                   .Input("data: T")
                   .Attr("T: list(type) >= 1")
                   .Attr("summarize: int = 3")
                   .Shape(AssertShape)
                   .NotDifferentiable("it has no outputs")
                   .Traits({Trait::kStateful, Trait::kCheap})
                   .Doc("Ends the step with an error that shows data, unless condition is true."));
  registry.Add(OpDef("Print")
                   .Input("input: T")
                   .Input("data: U")
                   .Output("output: T")
                   .Attr("T: type")
                   .Attr("U: list(type) >= 0")
                   .Attr("message: string = ''")
                   .Attr("first_n: int = -1")
                   .Attr("summarize: int = 3")
                   .Shape(ShapeOfInput0)
                   .Gradient(PassGradient)
                   .Traits({Trait::kStateful, Trait::kAllocatesOutputs, Trait::kCheap})
                   .Doc("Its input; logs the message and data, the first first_n times."));
  registry.Add(
      OpDef("CheckNumerics")
          .Input("tensor: T")
          .Output("output: T")
          .Attr("T: {float, double}")
          .Attr("message: string")
          .Shape(ShapeOfInput0)
          .Gradient(CheckNumericsGradient)
          .Sharding(SameSharding)
          .Traits({Trait::kStateful, Trait::kAllocatesOutputs, Trait::kCheap})
          .Doc("Its input; an error, with the message, if an element is infinite or NaN."));
}

}  // namespace millrace
