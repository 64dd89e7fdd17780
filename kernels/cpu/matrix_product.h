#ifndef KERNELS_CPU_MATRIX_PRODUCT_H_
#define KERNELS_CPU_MATRIX_PRODUCT_H_

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/onednn.h"
#include "kernels/cpu/parallel.h"

namespace millrace {

// One dimension of a result, cut into tiles of equal size but for a smaller last one.
struct Tiles {
  int64_t extent = 0;
  int64_t size = 1;
  Tiles() = default;
  // Tiles of about `wanted`, in multiples of 16, which keep the register tiles full.
  Tiles(int64_t n, int64_t wanted);
  int64_t count() const { return CeilDiv(extent, size); }
  int64_t begin(int64_t i) const { return i * size; }
  int64_t length(int64_t i) const { return std::min(size, extent - i * size); }
};

// The sizes of c[m,n] = a[m,k] b[k,n], of contiguous row-major matrices of which a and b may be
// given transposed, and the grid of tiles into which c is cut; each is worth a task. By shapes
// alone.
struct ProductSizes {
  ProductSizes() = default;
  ProductSizes(int64_t m, int64_t n, int64_t k, bool transpose_a, bool transpose_b);

  int64_t stride_a_row() const { return transpose_a ? 1 : k; }
  int64_t stride_a_column() const { return transpose_a ? m : 1; }
  int64_t stride_b_row() const { return transpose_b ? 1 : n; }
  int64_t stride_b_column() const { return transpose_b ? k : 1; }
  int64_t tiles() const { return rows.count() * columns.count(); }
  double flops_per_tile() const {
    return 2.0 * static_cast<double>(std::min(m, rows.size)) *
           static_cast<double>(std::min(n, columns.size)) * static_cast<double>(k);
  }

  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  Tiles rows, columns;
};

// Computes the tiles of products of one size. Immutable once made; its runs are thread-safe. For
// int32 and int64, which wrap around, and double; float is below.
template <typename T>
class MatrixProduct {
 public:
  static StatusOr<MatrixProduct> Create(const ProductSizes& sizes) { return MatrixProduct(sizes); }
  const ProductSizes& sizes() const { return sizes_; }
  // Writes tile `tile`, of sizes().tiles(), of the matrix c; all three are whole matrices.
  Status RunTile(KernelContext& context, const T* a, const T* b, T* c, int64_t tile) const;

 private:
  explicit MatrixProduct(const ProductSizes& sizes) : sizes_(sizes) {}
  ProductSizes sizes_;
};

// By oneDNN, with a primitive for each size of a tile: full or last in either dimension.
template <>
class MatrixProduct<float> {
 public:
  static StatusOr<MatrixProduct> Create(const ProductSizes& sizes);
  const ProductSizes& sizes() const { return sizes_; }
  Status RunTile(KernelContext& context, const float* a, const float* b, float* c,
                 int64_t tile) const;

 private:
  struct Part {
    dnnl::memory::desc a, b, c;
    OneDnnPrimitive primitive;
  };
  explicit MatrixProduct(const ProductSizes& sizes) : sizes_(sizes) {}
  void MakePart(int64_t m, int64_t n, Part& part);

  ProductSizes sizes_;
  Part parts_[2][2];  // [last row of tiles][last column of tiles]
};

}  // namespace millrace

#endif  // KERNELS_CPU_MATRIX_PRODUCT_H_
