#include <gtest/gtest.h>

#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/framework/op_def.h"
#include "core/framework/sharding.h"
#include "tests/ops/sharding_case.h"
#include "tests/testing/op_text.h"

namespace millrace::testing {
namespace {

StatusOr<Sharding> Parse(absl::string_view text) {
  if (text == "B") return Sharding::Replicated();
  if (text == "P") return Sharding::PartialSum();
  if (text.size() == 4 && text[0] == 'S') return Sharding::Split(text[2] - '0');
  return InvalidArgument("not a sharding: ", text);
}

StatusOr<std::vector<Sharding>> ParseAll(absl::string_view text) {
  std::vector<Sharding> all;
  if (text.empty()) return all;
  for (absl::string_view part : absl::StrSplit(text, ' ')) {
    MR_ASSIGN_OR_RETURN(const Sharding one, Parse(part));
    all.push_back(one);
  }
  return all;
}

std::string Join(const std::vector<std::string>& parts) { return absl::StrJoin(parts, " "); }

// What the rule says: "S(0) B -> S(0)", then "local 1:0" for each localised element, "mean 0".
StatusOr<std::string> Apply(const ShardingCase& c) {
  MR_ASSIGN_OR_RETURN(const Graph graph, OpGraph(c.op, c.attrs, c.inputs));
  MR_ASSIGN_OR_RETURN(const std::vector<Sharding> given, ParseAll(c.given));
  const Node& node = *graph.Find("y");
  if (given.size() != node.inputs().size()) return InvalidArgument("a sharding for each input");
  std::vector<PartialShape> inputs, outputs;
  std::vector<const Tensor*> values;
  for (const Port& port : node.inputs()) {
    inputs.push_back(graph.shape(port));
    values.push_back(graph.ConstantValue(port));
  }
  for (int i = 0; i < node.num_outputs(); ++i) outputs.push_back(node.output_shape(i));
  ShardingContext context(node.attrs(), given, inputs, values, outputs);
  if (c.wish != nullptr) {
    MR_ASSIGN_OR_RETURN(const Sharding wish, Parse(c.wish));
    context.set_output(0, wish);
  }
  const ShardingFn& rule = node.op().sharding_fn();
  MR_RETURN_IF_ERROR(rule != nullptr ? rule(context) : ReplicatedSharding(context));
  std::vector<std::string> said;
  for (int i = 0; i < context.num_inputs(); ++i) said.push_back(context.input(i).ToString());
  said.push_back("->");
  for (int i = 0; i < context.num_outputs(); ++i) said.push_back(context.output(i).ToString());
  for (const auto& local : context.localized()) {
    said.push_back(StrCat("local ", local.input, ":", local.element));
  }
  for (int i = 0; i < context.num_outputs(); ++i) {
    if (context.mean_over_parts(i)) said.push_back(StrCat("mean ", i));
  }
  return Join(said);
}

void Check(absl::Span<const ShardingCase> cases) {
  for (const ShardingCase& c : cases) {
    SCOPED_TRACE(StrCat(OpText(c.op, c.attrs, c.inputs), "given ", c.given));
    const StatusOr<std::string> said = Apply(c);
    if (c.expected[0] == '!') {
      ASSERT_FALSE(said.ok()) << *said;
      EXPECT_TRUE(absl::StrContains(said.status().message(), c.expected + 1))
          << said.status().message();
      continue;
    }
    ASSERT_TRUE(said.ok()) << said.status();
    EXPECT_EQ(*said, c.expected);
  }
}

TEST(ShardingRules, Math) { Check(MathShardingCases()); }
TEST(ShardingRules, Array) { Check(ArrayShardingCases()); }
TEST(ShardingRules, Nn) { Check(NnShardingCases()); }

// Whatever an op is given whole, its rule leaves whole.
TEST(ShardingRules, ReplicatedStaysReplicated) {
  for (const auto& cases : {MathShardingCases(), ArrayShardingCases(), NnShardingCases()}) {
    for (const ShardingCase& c : cases) {
      SCOPED_TRACE(OpText(c.op, c.attrs, c.inputs));
      const StatusOr<std::vector<Sharding>> given = ParseAll(c.given);
      ASSERT_TRUE(given.ok()) << given.status();
      ShardingCase whole = c;
      const std::string all = Join(std::vector<std::string>(given->size(), "B"));
      whole.given = all.c_str();
      whole.wish = nullptr;
      const StatusOr<std::string> said = Apply(whole);
      ASSERT_TRUE(said.ok()) << said.status();
      EXPECT_FALSE(absl::StrContains(*said, "S(")) << *said;
      EXPECT_FALSE(absl::StrContains(*said, "P")) << *said;
      EXPECT_FALSE(absl::StrContains(*said, "local")) << *said;
      EXPECT_FALSE(absl::StrContains(*said, "mean")) << *said;
    }
  }
}

TEST(ShardingRules, EveryRuleHasACase) {
  std::set<std::string> with_case;
  for (const auto& cases : {MathShardingCases(), ArrayShardingCases(), NnShardingCases()}) {
    for (const ShardingCase& c : cases) with_case.insert(c.op);
  }
  for (const OpDef* op : AllOps()->All()) {
    if (op->sharding_fn() != nullptr) {
      EXPECT_EQ(with_case.count(op->name()), 1u) << op->name();
    }
  }
}

}  // namespace
}  // namespace millrace::testing
