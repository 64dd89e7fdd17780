#include "tests/graph_opt/pass_case.h"

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/graph/graph_text.h"
#include "core/graph/verify.h"
#include "gtest/gtest.h"
#include "tests/testing/op_text.h"

namespace millrace::testing {
namespace {

StepSignature SignatureOf(absl::string_view step) {
  const std::vector<std::string> parts = absl::StrSplit(step, '|');
  EXPECT_EQ(parts.size(), 3u) << step;
  auto names = [&](size_t i) -> std::vector<std::string> {
    if (i >= parts.size()) return {};
    return absl::StrSplit(parts[i], ' ', absl::SkipWhitespace());
  };
  return {names(0), names(1), names(2)};
}

}  // namespace

PrunedGraph PrunedOrFail(const PassCase& c) {
  StatusOr<Graph> graph = GraphFromText(c.graph, AllOps());
  if (!graph.ok()) {
    ADD_FAILURE() << graph.status();
    return {Graph(AllOps()), {}, {}, {}};
  }
  StatusOr<PrunedGraph> pruned = Prune(*graph, SignatureOf(c.step));
  if (!pruned.ok()) {
    ADD_FAILURE() << pruned.status();
    return {Graph(AllOps()), {}, {}, {}};
  }
  return *std::move(pruned);
}

std::string TextOf(const PrunedGraph& pruned) {
  std::string text = GraphToText(pruned.graph);
  if (!pruned.fetches.empty()) {
    std::vector<std::string> names;
    for (Port port : pruned.fetches) names.push_back(pruned.graph.PortName(port));
    absl::StrAppend(&text, "-> ", absl::StrJoin(names, ", "), "\n");
  }
  if (!pruned.targets.empty()) {
    std::vector<std::string> names;
    for (NodeId id : pruned.targets) names.push_back(pruned.graph.node(id)->name());
    absl::StrAppend(&text, "run ", absl::StrJoin(names, ", "), "\n");
  }
  return text;
}

std::string Unindented(absl::string_view text) {
  std::string result;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (!line.empty()) absl::StrAppend(&result, line, "\n");
  }
  return result;
}

void ExpectPass(const Pass& pass, const PassCase& c, bool then_prune) {
  PrunedGraph pruned = PrunedOrFail(c);
  const std::string before = TextOf(pruned);
  const StatusOr<bool> changed = pass.Run(pruned);
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_TRUE(Verify(pruned.graph).ok()) << Verify(pruned.graph);
  if (c.expected == nullptr) {
    EXPECT_FALSE(*changed);
    EXPECT_EQ(TextOf(pruned), before);
    return;
  }
  EXPECT_TRUE(*changed);
  if (then_prune) {
    ASSERT_TRUE(NewPrunePass()->Run(pruned).ok());
    EXPECT_TRUE(Verify(pruned.graph).ok()) << Verify(pruned.graph);
  }
  EXPECT_EQ(TextOf(pruned), Unindented(c.expected));
}

}  // namespace millrace::testing
