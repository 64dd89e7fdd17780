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

}  // namespace

Operation CallForEffect(absl::string_view op, absl::Span<const Value> inputs, AttrMap attrs,
                        SourceLocation where) {
  GraphBuilder* builder = BuilderOf(inputs);
  return builder == nullptr ? Operation() : builder->Add(op, inputs, std::move(attrs), where);
}

std::vector<Value> CallMany(absl::string_view op, absl::Span<const Value> inputs, AttrMap attrs,
                            int outputs, SourceLocation where) {
  GraphBuilder* builder = BuilderOf(inputs);
  if (builder == nullptr) return std::vector<Value>(outputs);
  return builder->AddMany(op, inputs, std::move(attrs), outputs, where);
}

Value Call(absl::string_view op, absl::Span<const Value> inputs, AttrMap attrs,
           SourceLocation where) {
  GraphBuilder* builder = BuilderOf(inputs);
  return builder == nullptr ? Value() : builder->AddOne(op, inputs, std::move(attrs), where);
}

SourceLocation LocationOf(Value x) {
  return x.ok() ? x.builder()->graph().node(x.port().node)->location() : SourceLocation{};
}

}  // namespace millrace
