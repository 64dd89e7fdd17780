#include <set>
#include <string>
#include <vector>

#include "core/framework/op_def.h"
#include "gtest/gtest.h"
#include "ops/register.h"
#include "tests/kernels/kernel_harness.h"

namespace millrace {
namespace {

// All choices of the type attributes of an op; a free one is float.
std::vector<AttrMap> TypeChoices(const OpDef& op) {
  std::vector<AttrMap> choices(1);
  for (const AttrDef& attr : op.attrs()) {
    if (attr.kind != "type") continue;
    const std::vector<DType> dtypes =
        attr.allowed_types.empty() ? std::vector<DType>{DType::kFloat} : attr.allowed_types;
    std::vector<AttrMap> next;
    for (const AttrMap& choice : choices) {
      for (DType dtype : dtypes) {
        next.push_back(choice);
        next.back().Set(attr.name, dtype);
      }
    }
    choices = std::move(next);
  }
  return choices;
}

TEST(CoverageTest, EveryOpHasAKernelForEachOfItsDtypes) {
  OpRegistry ops;
  RegisterAllOps(ops);
  ASSERT_TRUE(ops.status().ok()) << ops.status();
  KernelHarness h;
  for (const OpDef* op : ops.All()) {
    if (op->Has(Trait::kPlaceholder)) continue;  // fed
    for (const AttrMap& attrs : TypeChoices(*op)) {
      const Status status = h.registry().Check(op->name(), "CPU", attrs);
      EXPECT_TRUE(status.ok()) << op->name() << ": " << status;
    }
  }
}

TEST(CoverageTest, EveryKernelHasAnOp) {
  OpRegistry ops;
  RegisterAllOps(ops);
  KernelHarness h;
  for (const KernelDef* kernel : h.registry().All()) {
    EXPECT_NE(ops.Find(kernel->op), nullptr) << kernel->op;
  }
}

}  // namespace
}  // namespace millrace
