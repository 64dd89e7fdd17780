#ifndef TESTS_OPS_SHAPE_CASE_H_
#define TESTS_OPS_SHAPE_CASE_H_

#include "absl/types/span.h"

// Shape inference as tables, one line a case.
namespace millrace::testing {

struct ShapeCase {
  const char* op;
  const char* attrs;     // as in the text form, without braces
  const char* inputs;    // see op_text.h
  const char* expected;  // "[2];[?,3]", or a part of the error after '!'
};

absl::Span<const ShapeCase> MathShapeCases();
absl::Span<const ShapeCase> ArrayShapeCases();
absl::Span<const ShapeCase> MovementShapeCases();
absl::Span<const ShapeCase> NnShapeCases();
absl::Span<const ShapeCase> StateShapeCases();

}  // namespace millrace::testing

#endif  // TESTS_OPS_SHAPE_CASE_H_
