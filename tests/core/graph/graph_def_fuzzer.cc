#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "core/graph/graph_def.h"
#include "core/graph/graph_text.h"
#include "core/graph/verify.h"
#include "tests/core/graph/test_ops.h"

// Any bytes are read, within the budget, or refused; what is read is a valid graph, and goes out
// and in as it was, as GraphDef and as text.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto& ops = *new auto(millrace::TestOps());
  constexpr int64_t kBudget = 1 << 20;
  const auto graph = millrace::ParseGraph({reinterpret_cast<const char*>(data), size}, "input", ops,
                                          millrace::ProtoBudget(kBudget));
  if (!graph.ok()) return 0;
  if (!millrace::Verify(*graph).ok()) std::abort();
  millrace::GraphDef def;
  millrace::ExportGraphDef(*graph, &def);
  const auto again = millrace::ParseGraph(def.SerializeAsString(), "export", ops);
  const std::string text = millrace::GraphToText(*graph);
  if (!again.ok() || millrace::GraphToText(*again) != text) std::abort();
  const auto read = millrace::GraphFromText(text, ops);
  if (!read.ok() || millrace::GraphToText(*read) != text) std::abort();
  return 0;
}
