#ifndef TESTS_GOLDEN_GOLDEN_COMPARE_H_
#define TESTS_GOLDEN_GOLDEN_COMPARE_H_

#include <string>

#include "core/framework/tensor.h"
#include "tests/golden/golden.pb.h"

namespace millrace::golden {

// How far a float may be from what TensorFlow computed, as a part of the largest finite magnitude
// of the tensor. README.md says why.
struct Tolerance {
  double relative = 0;      // 0: equal in every bit, but that one NaN is as good as another
  bool signed_zero = true;  // whether 0 and -0 differ
};
Tolerance ForwardTolerance(Precision precision, DType dtype);
Tolerance GradientTolerance(Precision precision, DType dtype);

// OK, or the first element (by its indices) that differs, and both values.
Status Compare(const Tensor& got, const Tensor& want, Tolerance tolerance);

}  // namespace millrace::golden

#endif  // TESTS_GOLDEN_GOLDEN_COMPARE_H_
