#include "tests/ops/op_cases.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "absl/strings/match.h"
#include "core/framework/kernel.h"
#include "tests/testing/graph_runner.h"
#include "tests/testing/op_text.h"

namespace millrace::testing {
namespace {

class OpCaseTest : public ::testing::TestWithParam<OpCase> {};

TEST_P(OpCaseTest, ValuesShapesAndGradients) {
  const Status status = RunOpCase(GetParam());
  EXPECT_TRUE(status.ok()) << GetParam() << ": " << status;
}

std::string NameOf(const ::testing::TestParamInfo<OpCase>& info) {
  return StrCat(info.param.op, "_", info.index);
}

INSTANTIATE_TEST_SUITE_P(Unary, OpCaseTest, ::testing::ValuesIn(UnaryCases()), NameOf);
INSTANTIATE_TEST_SUITE_P(Binary, OpCaseTest, ::testing::ValuesIn(BinaryCases()), NameOf);
INSTANTIATE_TEST_SUITE_P(Reduction, OpCaseTest, ::testing::ValuesIn(ReductionCases()), NameOf);
INSTANTIATE_TEST_SUITE_P(Scan, OpCaseTest, ::testing::ValuesIn(ScanCases()), NameOf);
INSTANTIATE_TEST_SUITE_P(Product, OpCaseTest, ::testing::ValuesIn(ProductCases()), NameOf);
INSTANTIATE_TEST_SUITE_P(Array, OpCaseTest, ::testing::ValuesIn(ArrayCases()), NameOf);
INSTANTIATE_TEST_SUITE_P(Movement, OpCaseTest, ::testing::ValuesIn(MovementCases()), NameOf);
INSTANTIATE_TEST_SUITE_P(Join, OpCaseTest, ::testing::ValuesIn(JoinCases()), NameOf);
INSTANTIATE_TEST_SUITE_P(Scatter, OpCaseTest, ::testing::ValuesIn(ScatterCases()), NameOf);
INSTANTIATE_TEST_SUITE_P(Nn, OpCaseTest, ::testing::ValuesIn(NnCases()), NameOf);
INSTANTIATE_TEST_SUITE_P(Conv, OpCaseTest, ::testing::ValuesIn(ConvCases()), NameOf);

// The harness itself: what is wrong must be noticed.
TEST(OpCaseHarness, NoticesWrongValues) {
  OpCase c = {"Neg", "", "[3]", Unary([](double x) { return x; })};
  EXPECT_TRUE(absl::StrContains(RunOpCase(c).message(), "output 0 has element 0"));
  c.reference = Unary([](double x) { return -x * (1 + 1e-9); });
  EXPECT_TRUE(absl::StrContains(RunOpCase(c).message(), "double: output 0 has element 0"));
  c.reference = [](const std::vector<Array>&) { return std::vector<Array>{Zeros({4})}; };
  EXPECT_TRUE(absl::StrContains(RunOpCase(c).message(), "output 0 has rank 1 and 3 elements"));
}

TEST(OpCaseHarness, NoticesWrongGradients) {
  // At a kink, where the central difference is half of the slope to the right.
  const OpCase c = {"Relu", "", "[1]", nullptr, -1, 1, 1e-5, {{0}}};
  const Status status = RunOpCase(c);
  EXPECT_TRUE(absl::StrContains(status.message(), "gradient 0 has element 0 = 0, not ")) << status;
}

// Ops that no row of a table can test, and what does.
const std::map<std::string, std::string>& Exempt() {
  static const auto& exempt = *new std::map<std::string, std::string>{
      {"Placeholder", "is what every row feeds"},
      {"RandomUniform", "is no function of its inputs: random_ops_test"},
      {"RandomStandardNormal", "is no function of its inputs: random_ops_test"},
      {"TruncatedNormal", "is no function of its inputs: random_ops_test"},
      {"StatelessRandomUniform", "jumps with its inputs: random_ops_test"},
      {"StatelessRandomNormal", "jumps with its inputs: random_ops_test"},
      {"StatelessTruncatedNormal", "jumps with its inputs: random_ops_test"},
      {"VarHandleOp", "has state: state_ops_test"},
      {"ReadVariableOp", "has state: state_ops_test"},
      {"VarIsInitializedOp", "has state: state_ops_test"},
      {"AssignVariableOp", "has state: state_ops_test"},
      {"AssignAddVariableOp", "has state: state_ops_test"},
      {"AssignSubVariableOp", "has state: state_ops_test"},
      {"ResourceApplyGradientDescent", "has state: state_ops_test"},
      {"ResourceApplyMomentum", "has state: state_ops_test"},
      {"ResourceApplyAdam", "has state: state_ops_test"},
      {"ResourceApplyKerasMomentum", "has state: state_ops_test"},
      {"ResourceApplyAdagrad", "has state: state_ops_test"},
      {"ResourceApplyRMSProp", "has state: state_ops_test"},
      {"ResourceGather", "has state: state_ops_test"},
      {"ResourceScatterAdd", "has state: state_ops_test"},
      {"ResourceScatterSub", "has state: state_ops_test"},
      {"FusedBatchNormV3", "gives statistics that carry no gradient: batch_norm_test"},
      {"FusedBatchNormGradV3", "has operands of the forward op: batch_norm_test"},
      {"StringJoin", "has no numbers: tests/golden"},
      {"ShardedFilename", "has no numbers: tests/golden"},
      {"Assert", "has no outputs: check_test"},
      {"NoOp", "has no outputs: state_ops_test"},
      {"_Send", "comes from the partitioner: tests/core/runtime"},
      {"_Recv", "comes from the partitioner: tests/core/runtime"},
  };
  return exempt;
}

TEST(OpAudit, EveryOpHasARowOrAReasonForNone) {
  std::set<std::string> with_row;
  for (const auto& cases :
       {UnaryCases(), BinaryCases(), ReductionCases(), ScanCases(), ProductCases(), ArrayCases(),
        MovementCases(), JoinCases(), ScatterCases(), NnCases(), ConvCases()}) {
    for (const OpCase& c : cases) with_row.insert(c.op);
  }
  for (const OpDef* op : AllOps()->All()) {
    EXPECT_NE(with_row.count(op->name()), Exempt().count(op->name())) << op->name();
  }
  for (const auto& [op, reason] : Exempt()) {
    EXPECT_NE(AllOps()->Find(op), nullptr) << op;
    EXPECT_FALSE(reason.empty()) << op;
  }
}

TEST(OpAudit, EveryOpHasACpuKernel) {
  ASSERT_TRUE(AllKernels().status().ok()) << AllKernels().status();
  std::set<std::string> with_kernel;
  for (const KernelDef* kernel : AllKernels().All()) {
    if (kernel->device_type == "CPU") with_kernel.insert(kernel->op);
  }
  for (const OpDef* op : AllOps()->All()) {
    if (op->Has(Trait::kPlaceholder)) continue;  // it is fed, never run
    EXPECT_EQ(with_kernel.count(op->name()), 1u) << op->name();
  }
  for (const std::string& op : with_kernel) EXPECT_NE(AllOps()->Find(op), nullptr) << op;
}

}  // namespace
}  // namespace millrace::testing
