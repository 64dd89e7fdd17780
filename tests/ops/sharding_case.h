#ifndef TESTS_OPS_SHARDING_CASE_H_
#define TESTS_OPS_SHARDING_CASE_H_

#include "absl/types/span.h"

// Sharding rules as tables, one line a case.
namespace millrace::testing {

struct ShardingCase {
  const char* op;
  const char* attrs;
  const char* inputs;          // see op_text.h
  const char* given;           // a sharding for each input: "S(0) B P"
  const char* expected;        // as required and given out, "S(0) B -> S(0)"; or '!' and an error
  const char* wish = nullptr;  // what the caller would like output 0 to be
};

absl::Span<const ShardingCase> MathShardingCases();
absl::Span<const ShardingCase> ArrayShardingCases();
absl::Span<const ShardingCase> NnShardingCases();  // and state

}  // namespace millrace::testing

#endif  // TESTS_OPS_SHARDING_CASE_H_
