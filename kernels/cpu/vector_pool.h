#ifndef KERNELS_CPU_VECTOR_POOL_H_
#define KERNELS_CPU_VECTOR_POOL_H_

#include <cstdint>

// Windows of a max-pool over an NHWC image, vectorised over the channels.
namespace millrace::vector {

// `count` windows side by side, `step` elements apart, each of rows x columns pixels of `channels`
// numbers, row_step elements from row to row. Their outputs are next to each other.
struct PoolWindows {
  int64_t count, step;
  int64_t rows, columns, row_step, channels;
};

// out[count, channels] = the largest of each window; NaN if there is one, -infinity if it is empty.
void MaxWindow(const PoolWindows& w, const float* first, float* out);
void MaxWindow(const PoolWindows& w, const double* first, double* out);

// Adds each of d_out[count, channels] to the gradient of the first element, row by row, that is
// equal to its out; or is NaN, as then the output was. d_first is laid out as first.
void MaxWindowGradient(const PoolWindows& w, const float* first, const float* out,
                       const float* d_out, float* d_first);
void MaxWindowGradient(const PoolWindows& w, const double* first, const double* out,
                       const double* d_out, double* d_first);

}  // namespace millrace::vector

#endif  // KERNELS_CPU_VECTOR_POOL_H_
