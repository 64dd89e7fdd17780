#include "ops/array_ops.h"
#include "ops/gradient_shapes.h"
#include "ops/node_call.h"
#include "ops/op_families.h"
#include "ops/sharding_rules.h"

// Ops that hand values on. What they differ in is what they do to gradients.
namespace millrace {

Value Identity(Value x, SourceLocation where) { return Call("Identity", {x}, {}, where); }
std::vector<Value> IdentityN(absl::Span<const Value> values, SourceLocation where) {
  return CallMany("IdentityN", values, {}, static_cast<int>(values.size()), where);
}
Value PlaceholderWithDefault(Value fallback, PartialShape shape, absl::string_view name,
                             SourceLocation where) {
  if (!fallback.ok()) return fallback;
  return fallback.builder()->AddOne("PlaceholderWithDefault", {fallback}, {{"shape", shape}}, where,
                                    name);
}
Value StopGradient(Value x, SourceLocation where) { return Call("StopGradient", {x}, {}, where); }
Value PreventGradient(Value x, absl::string_view message, SourceLocation where) {
  return Call("PreventGradient", {x}, {{"message", std::string(message)}}, where);
}

namespace {

Status IdentityGradient(GradientContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (c.needs_dx(i) && c.has_dy(i)) c.set_dx(i, c.dy(i));
  }
  return absl::OkStatus();
}

Status RefusedGradient(GradientContext& c) {
  return InvalidArgument("a gradient is refused here: ",
                         c.attrs().GetOr<std::string>("message", ""));
}

Status EachShape(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) c.set_output(i, c.input(i));
  return absl::OkStatus();
}

Status EachSharding(ShardingContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) c.set_output(i, c.input(i));
  return absl::OkStatus();
}

// The attribute says what may be fed; the default must be of it.
Status PlaceholderWithDefaultShape(ShapeContext& c) {
  const auto shape = c.attrs().GetOr<PartialShape>("shape", PartialShape());
  if (const auto merged = shape.MergeWith(c.input(0)); !merged.ok()) {
    return InvalidArgument("the default has shape ", c.input(0).ToString(),
                           ", but the attribute 'shape' is ", shape.ToString());
  }
  c.set_output(0, shape);
  return absl::OkStatus();
}

}  // namespace

void RegisterIdentityOps(OpRegistry& registry) {
  registry.Add(
      OpDef("Identity")
          .Input("input: T")
          .Output("output: T")
          .Attr("T: type")
          .Shape(ShapeOfInput0)
          .Gradient(IdentityGradient)
          .Sharding(SameSharding)
          .Traits({Trait::kIdentity, Trait::kElementwise, Trait::kAllocatesOutputs, Trait::kCheap})
          .Doc("Its input."));
  registry.Add(OpDef("PlaceholderWithDefault")
                   .Input("input: dtype")
                   .Output("output: dtype")
                   .Attr("dtype: type")
                   .Attr("shape: shape")
                   .Shape(PlaceholderWithDefaultShape)
                   .Gradient(IdentityGradient)
                   .Sharding(SameSharding)
                   .Traits({Trait::kAllocatesOutputs, Trait::kCheap})
                   .Doc("Its input, unless a step feeds something else."));
  registry.Add(OpDef("StopGradient")
                   .Input("input: T")
                   .Output("output: T")
                   .Attr("T: type")
                   .Shape(ShapeOfInput0)
                   .Gradient(ZeroGradient)
                   .Sharding(SameSharding)
                   .Traits({Trait::kIdentity, Trait::kNoGradientStop, Trait::kElementwise,
                            Trait::kAllocatesOutputs, Trait::kCheap})
                   .Doc("Its input, through which no gradient flows."));
  registry.Add(OpDef("IdentityN")
                   .Input("input: T")
                   .Output("output: T")
                   .Attr("T: list(type) >= 1")
                   .Shape(EachShape)
                   .Gradient(IdentityGradient)
                   .Sharding(EachSharding)
                   .Traits({Trait::kAllocatesOutputs, Trait::kCheap})
                   .Doc("Its inputs, each as an output."));
  registry.Add(
      OpDef("PreventGradient")
          .Input("input: T")
          .Output("output: T")
          .Attr("T: type")
          .Attr("message: string = ''")
          .Shape(ShapeOfInput0)
          .Gradient(RefusedGradient)
          .Sharding(SameSharding)
          .Traits({Trait::kIdentity, Trait::kElementwise, Trait::kAllocatesOutputs, Trait::kCheap})
          .Doc("Its input; a gradient through it is an error, which gives the message."));
}

}  // namespace millrace
