#ifndef KERNELS_CPU_VECTOR_GEMM_H_
#define KERNELS_CPU_VECTOR_GEMM_H_

#include <cstdint>

// A matrix product of our own: for doubles, which oneDNN has not, and for the narrow products of
// small convolutions, at which it is slow.
namespace millrace::vector {

template <typename T>
struct Matrix {
  const T* data;
  int64_t row_stride;  // in elements
  int64_t column_stride;
  const T& at(int64_t row, int64_t column) const {
    return data[row * row_stride + column * column_stride];
  }
};

// Blocks of the product (Goto & van de Geijn 2008): kKc rows of b and kMc rows of a are packed so
// that the innermost loop reads both in order, from the caches.
struct GemmBlocks {
  static constexpr int64_t kKc = 256;
  static constexpr int64_t kMc = 120;
  static constexpr int64_t kNc = 512;
  static constexpr int64_t kMaxTile = 64;  // rows or columns of a register tile, at most
};

// Elements of workspace that Gemm needs at most for these sizes.
int64_t GemmWorkspace(int64_t m, int64_t n, int64_t k);

// c[m,n] = a[m,k] b[k,n], or c += a b with `accumulate`; rows of c are ldc elements apart. Runs on
// the calling thread. An element of c depends on its row of a and column of b alone, not on m and
// n, so rows or columns may be cut anywhere.
void Gemm(int64_t m, int64_t n, int64_t k, Matrix<float> a, Matrix<float> b, bool accumulate,
          float* c, int64_t ldc, float* workspace);
void Gemm(int64_t m, int64_t n, int64_t k, Matrix<double> a, Matrix<double> b, bool accumulate,
          double* c, int64_t ldc, double* workspace);

}  // namespace millrace::vector

#endif  // KERNELS_CPU_VECTOR_GEMM_H_
