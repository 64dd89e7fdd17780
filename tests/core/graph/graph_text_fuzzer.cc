#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "core/graph/graph_text.h"
#include "core/graph/verify.h"
#include "tests/core/graph/test_ops.h"

// Any text is read or refused; what is read is a valid graph, and its text reads back as it was.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto& ops = *new auto(millrace::TestOps());
  const auto graph = millrace::GraphFromText({reinterpret_cast<const char*>(data), size}, ops);
  if (!graph.ok()) return 0;
  if (!millrace::Verify(*graph).ok()) std::abort();
  const std::string text = millrace::GraphToText(*graph);
  const auto again = millrace::GraphFromText(text, ops);
  if (!again.ok() || millrace::GraphToText(*again) != text) std::abort();
  return 0;
}
