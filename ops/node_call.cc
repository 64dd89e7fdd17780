#include "ops/node_call.h"

#include <utility>

namespace millrace {
namespace {

// The builder of the inputs, null if none has one.
GraphBuilder* BuilderOf(absl::Span<const Value> inputs) {
  for (const Value& input : inputs) {
    if (input.builder() != nullptr) return input.builder();
  }
  return nullptr;
}

// Whether a node can be added. What is wrong is reported unless it was when the value was poisoned.
bool CanCall(GraphBuilder* builder, absl::string_view op, absl::Span<const Value> inputs,
             SourceLocation where) {
  if (builder == nullptr) return false;
  bool ok = true;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].builder() == nullptr) {
      builder->Fail(InvalidArgument("input ", i, " of ", op, " is an empty Value, of no graph"),
                    where);
    } else if (inputs[i].builder() != builder) {
      builder->Fail(InvalidArgument("input ", i, " of ", op, " is of another builder's graph"),
                    where);
    } else if (inputs[i].ok()) {
      continue;
    }
    ok = false;
  }
  return ok;
}

}  // namespace

Operation CallForEffect(absl::string_view op, absl::Span<const Value> inputs, AttrMap attrs,
                        SourceLocation where) {
  GraphBuilder* builder = BuilderOf(inputs);
  if (!CanCall(builder, op, inputs, where)) return Operation(builder, -1);
  return builder->Add(op, inputs, std::move(attrs), where);
}

std::vector<Value> CallMany(absl::string_view op, absl::Span<const Value> inputs, AttrMap attrs,
                            int outputs, SourceLocation where) {
  GraphBuilder* builder = BuilderOf(inputs);
  if (!CanCall(builder, op, inputs, where)) {
    return std::vector<Value>(outputs, Value(builder, Port{}));
  }
  return builder->AddMany(op, inputs, std::move(attrs), outputs, where);
}

Value Call(absl::string_view op, absl::Span<const Value> inputs, AttrMap attrs,
           SourceLocation where) {
  GraphBuilder* builder = BuilderOf(inputs);
  if (!CanCall(builder, op, inputs, where)) return Value(builder, Port{});
  return builder->AddOne(op, inputs, std::move(attrs), where);
}

SourceLocation LocationOf(Value x) {
  return x.ok() ? x.builder()->graph().node(x.port().node)->location() : SourceLocation{};
}

}  // namespace millrace
