#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/graph/graph_def.h"
#include "core/graph/graph_text.h"
#include "core/graph/verify.h"
#include "ops/register.h"
#include "tests/fuzz/require.h"

namespace millrace::testing {
namespace {

// Of one graph: constants are written out in the input, so there are few bytes of them.
constexpr int64_t kBudget = 1 << 22;

std::shared_ptr<const OpRegistry> AllOps() {
  auto ops = std::make_shared<OpRegistry>();
  RegisterAllOps(*ops);
  return ops;
}

// Any text is a graph of the ops that there are, or refused: by their shape functions, too. It is
// valid then, and goes out and in as GraphDef as it was.
void RunOne(absl::string_view text) {
  static const auto& ops = *new auto(AllOps());
  const StatusOr<Graph> graph = GraphFromText(text, ops);
  if (!graph.ok()) {
    Require(absl::IsInvalidArgument(graph.status()), "a refusal is InvalidArgument");
    return;
  }
  Require(Verify(*graph).ok(), "what is read is valid");
  const std::string written = GraphToText(*graph);
  const StatusOr<Graph> read = GraphFromText(written, ops);
  Require(read.ok() && GraphToText(*read) == written, "a graph's text reads back");
  GraphDef def;
  ExportGraphDef(*graph, &def);
  Graph imported(ops);
  const Status status = ImportGraphDef(def, imported, ProtoBudget(kBudget));
  Require(status.ok(), status.message());
  Require(imported.num_nodes() == graph->num_nodes(), "a graph goes out and in as GraphDef");
}

}  // namespace
}  // namespace millrace::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  millrace::testing::RunOne({reinterpret_cast<const char*>(data), size});
  return 0;
}
