#include <algorithm>
#include <string>
#include <vector>

#include "core/framework/op_def.h"
#include "gtest/gtest.h"
#include "ops/register.h"
#include "tests/kernels/kernel_harness.h"

namespace millrace {
namespace {

std::vector<DType> AllDTypes() {
  constexpr int kHighest = 64;
  std::vector<DType> dtypes;
  for (int i = 1; i < kHighest; ++i) {
    if (IsKnownDType(i)) dtypes.push_back(static_cast<DType>(i));
  }
  return dtypes;
}

// What an op says that an attribute of kind type may be.
std::vector<DType> Promised(const AttrDef& attr) {
  return attr.allowed_types.empty() ? AllDTypes() : attr.allowed_types;
}

// All choices of the type attributes of an op.
std::vector<AttrMap> TypeChoices(const OpDef& op) {
  std::vector<AttrMap> choices(1);
  for (const AttrDef& attr : op.attrs()) {
    if (attr.kind != "type") continue;
    const std::vector<DType> dtypes = Promised(attr);
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

TEST(CoverageTest, EveryKernelIsForDtypesThatItsOpHas) {
  OpRegistry ops;
  RegisterAllOps(ops);
  KernelHarness h;
  EXPECT_FALSE(h.registry().All().empty());
  for (const KernelDef* kernel : h.registry().All()) {
    const OpDef* op = ops.Find(kernel->op);
    ASSERT_NE(op, nullptr) << kernel->op;
    for (const KernelDef::TypeConstraint& constraint : kernel->types) {
      const AttrDef* attr = op->FindAttr(constraint.attr);
      ASSERT_NE(attr, nullptr) << kernel->op << ": " << constraint.attr;
      const std::vector<DType> promised = Promised(*attr);
      for (const DType dtype : constraint.allowed) {
        EXPECT_EQ(std::count(promised.begin(), promised.end(), dtype), 1)
            << kernel->op << ": " << constraint.attr << " is " << millrace::Name(dtype);
      }
    }
  }
}

}  // namespace
}  // namespace millrace
