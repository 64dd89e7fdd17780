#include "distributed/strategy/sharding_propagation.h"

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "core/graph/graph_text.h"
#include "gtest/gtest.h"
#include "tests/testing/op_text.h"

namespace millrace::testing {
namespace {

struct PropagationCase {
  const char* name;
  const char* graph;
  const char* split;  // nodes whose output is split along dimension 0, separated by blanks
  const char*
      expected;  // "node: inputs -> outputs" of each that runs once a part; or '!' and an error
};

constexpr PropagationCase kCases[] = {
    {"WhatIsNotReachedIsWhole",
     R"(x = Placeholder() {dtype=float, shape=[8,4]}
        z = Placeholder() {dtype=float, shape=[8,4]}
        y = Neg(x)
        u = Neg(z))",
     "x", "x: -> S(0); y: S(0) -> S(0)"},
    {"ProductsOfRowsAreRowsAndSumsOverRowsArePartial",
     R"(x = Placeholder() {dtype=float, shape=[8,4]}
        w = Placeholder() {dtype=float, shape=[4,3]}
        y = MatMul(x, w)
        g = MatMul(x, y) {transpose_a=true})",
     "x", "x: -> S(0); y: S(0) B -> S(0); g: S(0) S(0) -> P"},
    {"AMeanOverRowsIsPartial",
     R"(x = Placeholder() {dtype=float, shape=[8]}
        a = Const() {dtype=int32, value=tensor(int32[1]: 0)}
        y = Mean(x, a)
        z = Neg(y))",
     "x", "x: -> S(0); y: S(0) B -> P mean; z: P -> P"},
    {"WhatIsNotLinearNeedsTheSum",
     R"(x = Placeholder() {dtype=float, shape=[8]}
        a = Const() {dtype=int32, value=tensor(int32[1]: 0)}
        y = Sum(x, a)
        z = Tanh(y))",
     "x", "x: -> S(0); y: S(0) B -> P"},
    {"ShapeOperandsAreLocalised",
     R"(x = Placeholder() {dtype=float, shape=[8,2,3]}
        s = Const() {dtype=int32, value=tensor(int32[2]: 8 6)}
        y = Reshape(x, s))",
     "x", "x: -> S(0); y: S(0) B -> S(0) local 1:0"},
    {"AShapeThatIsLeftIsRefused",
     R"(x = Placeholder() {dtype=float, shape=[8,4]}
        y = Neg(x)
        s = Shape(y))",
     "x", "!splitting Shape 's': shape unresolved along a split dimension"},
    {"ARuleThatCannotTellIsRefused",
     R"(x = Placeholder() {dtype=float, shape=[?,6]}
        s = Const() {dtype=int32, value=tensor(int32[3]: -1 2 3)}
        y = Reshape(x, s))",
     "x", "!splitting Reshape 'y': the shape [?,6] of input 0 is unresolved"},
};

std::string Describe(const Graph& graph, const std::vector<NodeSharding>& shardings) {
  std::vector<std::string> lines;
  for (NodeId id = 0; id < graph.num_ids(); ++id) {
    const NodeSharding& s = shardings[id];
    if (!s.OncePerPart()) continue;
    std::string line = StrCat(graph.node(id)->name(), ":");
    for (const Sharding& input : s.inputs) absl::StrAppend(&line, " ", input.ToString());
    absl::StrAppend(&line, " ->");
    for (size_t i = 0; i < s.outputs.size(); ++i) {
      absl::StrAppend(&line, " ", s.outputs[i].ToString(), s.mean_over_parts[i] ? " mean" : "");
    }
    for (const auto& e : s.localized) absl::StrAppend(&line, " local ", e.input, ":", e.element);
    lines.push_back(line);
  }
  std::string text;
  for (const std::string& line : lines) absl::StrAppend(&text, text.empty() ? "" : "; ", line);
  return text;
}

class ShardingPropagationTest : public ::testing::TestWithParam<PropagationCase> {};

TEST_P(ShardingPropagationTest, GivesTheText) {
  const PropagationCase& c = GetParam();
  StatusOr<Graph> graph = GraphFromText(c.graph, AllOps());
  ASSERT_TRUE(graph.ok()) << graph.status();
  absl::flat_hash_map<Port, Sharding> given;
  for (absl::string_view name : absl::StrSplit(c.split, ' ', absl::SkipWhitespace())) {
    given[graph->FindPort(name).value()] = Sharding::Split(0);
  }
  const StatusOr<std::vector<NodeSharding>> result = PropagateShardings(*graph, given);
  if (c.expected[0] == '!') {
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(result.status().message().find(c.expected + 1), std::string::npos) << result.status();
    return;
  }
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(Describe(*graph, *result), c.expected);
}

INSTANTIATE_TEST_SUITE_P(Cases, ShardingPropagationTest, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace millrace::testing
