#include "core/base/status.h"

#include <memory>

#include "absl/strings/cord.h"
#include "core/base/checked_math.h"
#include "core/base/source_location.h"
#include "gtest/gtest.h"

namespace millrace {
namespace {

TEST(StatusTest, HelpersJoinTheirPartsIntoTheMessage) {
  const Status status = InvalidArgument("axis ", 3, " of shape ", "[2,2]");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "axis 3 of shape [2,2]");
}

TEST(AnnotateTest, PutsTheContextBeforeTheMessageAndKeepsCodeAndPayloads) {
  Status status = NotFound("no variable w");
  status.SetPayload("node", absl::Cord("MatMul_1"));
  const Status annotated = Annotate(status, "restoring /ckpt/7");
  EXPECT_EQ(annotated.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(annotated.message(), "restoring /ckpt/7: no variable w");
  EXPECT_EQ(annotated.GetPayload("node"), absl::Cord("MatMul_1"));
}

TEST(AnnotateTest, LeavesOkAlone) { EXPECT_EQ(Annotate(Status(), "anything"), Status()); }

StatusOr<std::unique_ptr<int>> Half(int n) {
  if (n % 2 != 0) return InvalidArgument(n, " is odd");
  return std::make_unique<int>(n / 2);
}

StatusOr<int> Quarter(int n) {
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<int> half, Half(n));
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<int> quarter, Half(*half));
  return *quarter;
}

Status IsQuarterable(int n) {
  MR_RETURN_IF_ERROR(Quarter(n).status());
  return Status();
}

TEST(ReturnMacrosTest, PassTheFirstErrorToTheCallerAndElseTheValue) {
  EXPECT_EQ(*Quarter(12), 3);
  EXPECT_EQ(Quarter(6).status(), InvalidArgument("3 is odd"));
  EXPECT_EQ(IsQuarterable(12), Status());
  EXPECT_EQ(IsQuarterable(7), InvalidArgument("7 is odd"));
}

TEST(CheckedMathTest, RefusesWhatOverflows) {
  int64_t result = 0;
  EXPECT_TRUE(CheckedMul(int64_t{1} << 31, int64_t{1} << 31, &result));
  EXPECT_EQ(result, int64_t{1} << 62);
  EXPECT_FALSE(CheckedMul(int64_t{1} << 32, int64_t{1} << 31, &result));
  EXPECT_FALSE(CheckedMul(INT64_MIN, -1, &result));
  EXPECT_TRUE(CheckedAdd(INT64_MAX, INT64_MIN, &result));
  EXPECT_EQ(result, -1);
  EXPECT_FALSE(CheckedAdd(INT64_MAX, 1, &result));
  EXPECT_FALSE(CheckedAdd(INT64_MIN, -1, &result));
}

SourceLocation WhereCalled(SourceLocation where = SourceLocation::Current()) { return where; }

TEST(SourceLocationTest, AsADefaultArgumentIsTheCallersLine) {
  const SourceLocation where = WhereCalled();
  EXPECT_EQ(where.line, __LINE__ - 1);
  EXPECT_STREQ(where.file, __FILE__);
}

}  // namespace
}  // namespace millrace
