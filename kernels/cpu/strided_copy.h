#ifndef KERNELS_CPU_STRIDED_COPY_H_
#define KERNELS_CPU_STRIDED_COPY_H_

#include <array>
#include <cstdint>

#include "core/framework/kernel.h"

namespace millrace {

// A walk over elements in memory: for all indices i, out[sum i*out_stride] = in[sum i*in_stride].
// Transpose, slices, padding, tiles and broadcasts are such walks. Strides are in elements.
class StridedCopy {
 public:
  // Dimensions are added from the outermost to the innermost.
  void Add(int64_t extent, int64_t in_stride, int64_t out_stride);

  // Runs it for elements of `size` bytes (1, 2, 4 or 8), on the kernel's pool.
  Status Run(KernelContext& context, size_t size, const void* in, void* out) const;

  // Runs it from the elements of x, from number `offset` on, to all of output 0, which has that
  // shape. Of strings, too, for which the executor allocates no output.
  Status Run(KernelContext& context, const Tensor& x, int64_t offset, const Shape& shape) const;

 private:
  friend struct StridedCopyRunner;
  struct Dim {
    int64_t extent, in, out;
  };
  static constexpr int kMaxDims = 2 * kMaxRank;  // Tile has two a dimension
  int rank_ = 0;
  bool empty_ = false;
  std::array<Dim, kMaxDims> dims_;
};

// Row-major strides of a shape, in elements.
std::array<int64_t, kMaxRank> RowMajorStrides(const Shape& shape);

}  // namespace millrace

#endif  // KERNELS_CPU_STRIDED_COPY_H_
