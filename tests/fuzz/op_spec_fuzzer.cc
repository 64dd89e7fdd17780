#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/framework/op_def.h"
#include "tests/fuzz/require.h"

namespace millrace::testing {
namespace {

// Ports are many by number attributes, which no program has many of.
constexpr int kMostLines = 16;

// Lines "<x: T", ">y: T" and "T: type" declare an op. It is refused, or what it says resolves: with
// its defaults alone, and with what its inputs determine.
void RunOne(absl::string_view text) {
  OpDef op("Fuzzed");
  for (int line = 0; line < kMostLines && !text.empty(); ++line) {
    const size_t end = std::min(text.find('\n'), text.size());
    const absl::string_view spec = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!spec.empty() && spec[0] == '<') {
      op.Input(spec.substr(1));
    } else if (!spec.empty() && spec[0] == '>') {
      op.Output(spec.substr(1));
    } else {
      op.Attr(spec);
    }
  }
  op.Shape([](ShapeContext&) { return absl::OkStatus(); }).NotDifferentiable("fuzzed");
  OpRegistry registry;
  registry.Add(std::move(op));
  const OpDef* added = registry.Find("Fuzzed");
  Require((added != nullptr) == registry.status().ok(), "an op is there or its status says why");
  if (added == nullptr) return;
  AttrMap defaults;
  const StatusOr<NodeSignature> resolved = ResolveSignature(*added, defaults);
  if (resolved.ok()) {
    AttrMap again = defaults;
    Require(ResolveSignature(*added, again).ok() && again == defaults, "resolving twice is once");
    Require(resolved->inputs.size() == resolved->host_inputs.size() &&
                resolved->outputs.size() == resolved->host_outputs.size(),
            "each port has a dtype and a place");
  }
  for (const DType dtype : {DType::kFloat, DType::kString, DType::kResource}) {
    AttrMap inferred;
    const std::vector<DType> inputs(added->inputs().size(), dtype);
    if (!InferTypeAttrs(*added, inputs, inferred).ok()) continue;
    const StatusOr<NodeSignature> signature = ResolveSignature(*added, inferred);
    Require(!signature.ok() || signature->inputs == inputs, "inferred attributes fit the inputs");
  }
}

}  // namespace
}  // namespace millrace::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  millrace::testing::RunOne({reinterpret_cast<const char*>(data), size});
  return 0;
}
