#include <gtest/gtest.h>

#include <set>

#include "absl/strings/match.h"
#include "core/framework/op_def.h"
#include "tests/ops/shape_case.h"
#include "tests/testing/op_text.h"

namespace millrace::testing {
namespace {

void Check(absl::Span<const ShapeCase> cases) {
  for (const ShapeCase& c : cases) {
    SCOPED_TRACE(OpText(c.op, c.attrs, c.inputs));
    const StatusOr<Graph> graph = OpGraph(c.op, c.attrs, c.inputs);
    if (c.expected[0] == '!') {
      ASSERT_FALSE(graph.ok()) << "gave " << OutputShapes(*graph->Find("y"));
      EXPECT_TRUE(absl::StrContains(graph.status().message(), c.expected + 1))
          << graph.status().message();
      EXPECT_TRUE(absl::StrContains(graph.status().message(), StrCat(c.op, " 'y'")))
          << graph.status().message();
      continue;
    }
    ASSERT_TRUE(graph.ok()) << graph.status();
    EXPECT_EQ(OutputShapes(*graph->Find("y")), c.expected);
  }
}

TEST(ShapeInference, Math) { Check(MathShapeCases()); }
TEST(ShapeInference, Array) { Check(ArrayShapeCases()); }
TEST(ShapeInference, Movement) { Check(MovementShapeCases()); }
TEST(ShapeInference, Nn) { Check(NnShapeCases()); }
TEST(ShapeInference, State) { Check(StateShapeCases()); }

// The registry's own rules, and that no op is forgotten here.
TEST(OpRegistryAudit, EveryOpIsComplete) {
  const OpRegistry& ops = *AllOps();
  ASSERT_TRUE(ops.status().ok()) << ops.status();
  std::set<std::string> with_case;
  for (const auto& cases : {MathShapeCases(), ArrayShapeCases(), MovementShapeCases(),
                            NnShapeCases(), StateShapeCases()}) {
    for (const ShapeCase& c : cases) with_case.insert(c.op);
  }
  for (const OpDef* op : ops.All()) {
    SCOPED_TRACE(op->name());
    EXPECT_TRUE(op->status().ok()) << op->status();
    EXPECT_TRUE(op->shape_fn() != nullptr);
    EXPECT_NE(op->gradient_fn() != nullptr, !op->not_differentiable().empty())
        << "must have a gradient or a reason for having none";
    EXPECT_FALSE(op->doc().empty());
    EXPECT_EQ(with_case.count(op->name()), 1u) << "has no row in a shape table";
  }
}

// Traits that must go together, or with a signature of some form.
TEST(OpRegistryAudit, TraitsAgreeWithSignatures) {
  for (const OpDef* op : AllOps()->All()) {
    SCOPED_TRACE(op->name());
    const bool reads = op->Has(Trait::kReadsVariable), writes = op->Has(Trait::kWritesVariable);
    if (reads || writes) {
      ASSERT_FALSE(op->inputs().empty());
      EXPECT_EQ(op->inputs()[0].dtype, DType::kResource);
    }
    EXPECT_TRUE(op->Has(Trait::kStateful) || !(reads || writes));
    EXPECT_TRUE(writes || !op->Has(Trait::kOptimizerUpdate));
    EXPECT_TRUE(op->FindAttr("value") != nullptr || !op->Has(Trait::kConstant));
    if (op->Has(Trait::kCommutative)) {
      ASSERT_GE(op->inputs().size(), 2u);
      EXPECT_EQ(op->inputs()[0].type_attr, op->inputs()[1].type_attr);
    }
    if (op->Has(Trait::kInPlace)) {
      EXPECT_FALSE(op->Has(Trait::kAllocatesOutputs));
      ASSERT_EQ(op->outputs().size(), 1u);
      EXPECT_FALSE(op->outputs()[0].host_memory);
    }
  }
}

}  // namespace
}  // namespace millrace::testing
