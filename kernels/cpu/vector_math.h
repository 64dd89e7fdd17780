#ifndef KERNELS_CPU_VECTOR_MATH_H_
#define KERNELS_CPU_VECTOR_MATH_H_

#include <cstdint>

// Loops over contiguous floats and doubles with the widest vectors of the CPU that runs them
// (Highway's run-time dispatch). An element's result depends neither on its position nor on n, so
// a range may be cut anywhere. An output may be one of the inputs; otherwise they do not overlap.
namespace millrace::vector {

enum class Unary {
  kNeg,
  kAbs,
  kSquare,
  kSqrt,
  kRsqrt,
  kReciprocal,
  kRelu,
  kRelu6,
  kExp,
  kLog,
  kTanh,
  kSigmoid,
};

// out = op(x). kExp, kLog, kTanh and kSigmoid are within 5 units in the last place; the others are
// correctly rounded at each operation.
void Run(Unary op, const float* x, float* out, int64_t n);
void Run(Unary op, const double* x, double* out, int64_t n);

enum class Binary {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMaximum,
  kMinimum,
  kSquaredDifference,
  kReluGrad,
  kRelu6Grad,
  kEluGrad,
  kSoftplusGrad,
  kTanhGrad,
  kSigmoidGrad,
};

// kSoftplusGrad is within 5 units in the last place.

// Whether an operand is one element for all.
enum class Operands { kBothVectors, kScalarX, kScalarY };

void Run(Binary op, Operands operands, const float* x, const float* y, float* out, int64_t n);
void Run(Binary op, Operands operands, const double* x, const double* y, double* out, int64_t n);

}  // namespace millrace::vector

#endif  // KERNELS_CPU_VECTOR_MATH_H_
