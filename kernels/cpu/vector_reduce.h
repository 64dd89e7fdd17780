#ifndef KERNELS_CPU_VECTOR_REDUCE_H_
#define KERNELS_CPU_VECTOR_REDUCE_H_

#include <cstdint>

// Reductions of contiguous floats and doubles. The order of the additions depends on n alone (and
// on the instruction set), and is a tree over blocks, so that errors grow with log n.
namespace millrace::vector {

float Sum(const float* x, int64_t n);
double Sum(const double* x, int64_t n);
float SumOfSquares(const float* x, int64_t n);
double SumOfSquares(const double* x, int64_t n);
// The largest element; NaN if there is one, -infinity if n is 0.
float Max(const float* x, int64_t n);
double Max(const double* x, int64_t n);

// sums[j] = the sum over i < rows of x[i * stride + j], for j < width.
void SumRows(const float* x, int64_t rows, int64_t stride, int64_t width, float* sums);
void SumRows(const double* x, int64_t rows, int64_t stride, int64_t width, double* sums);

// out[i] = exp(x[i] - shift); gives their sum. `out` may be x, or null if only the sum is wanted.
float ExpShifted(const float* x, float shift, float* out, int64_t n);
double ExpShifted(const double* x, double shift, double* out, int64_t n);

}  // namespace millrace::vector

#endif  // KERNELS_CPU_VECTOR_REDUCE_H_
