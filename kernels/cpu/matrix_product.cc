#include "kernels/cpu/matrix_product.h"

#include <type_traits>

#include "kernels/cpu/vector_gemm.h"

namespace millrace {

Tiles::Tiles(int64_t n, int64_t wanted) : extent(n) {
  constexpr int64_t kUnit = 16;
  const int64_t units = std::max<int64_t>(1, CeilDiv(n, kUnit));
  const int64_t count = std::max<int64_t>(1, CeilDiv(n, wanted));
  size = CeilDiv(units, count) * kUnit;
}

ProductSizes::ProductSizes(int64_t m, int64_t n, int64_t k, bool transpose_a, bool transpose_b)
    : m(m), n(n), k(k), transpose_a(transpose_a), transpose_b(transpose_b) {
  // Squares of 256 run at full speed (measured); smaller ones where there would be few tasks,
  // larger ones where a task would be small.
  constexpr int64_t kSide = 256, kFewestRows = 64, kFewestColumns = 128, kTasks = 8;
  constexpr double kSmallestTask = 6e6, kWorthATask = 4e6;
  int64_t row_side = kSide, column_side = kSide;
  rows = Tiles(m, row_side);
  columns = Tiles(n, column_side);
  while (tiles() < kTasks && flops_per_tile() >= 2 * kSmallestTask) {
    if (rows.size >= columns.size && rows.size >= 2 * kFewestRows) {
      rows = Tiles(m, rows.size / 2);
    } else if (columns.size >= 2 * kFewestColumns) {
      columns = Tiles(n, columns.size / 2);
    } else if (rows.size >= 2 * kFewestRows) {
      rows = Tiles(m, rows.size / 2);
    } else {
      break;
    }
  }
  while (tiles() > 1 && flops_per_tile() < kWorthATask) {
    if (rows.count() > 1) {
      row_side *= 2;
      rows = Tiles(m, row_side);
    } else {
      column_side *= 2;
      columns = Tiles(n, column_side);
    }
  }
}

namespace {

// Where a tile is, and how large.
struct Place {
  Place(const ProductSizes& s, int64_t tile)
      : row(tile / s.columns.count()),
        column(tile % s.columns.count()),
        y(s.rows.begin(row)),
        x(s.columns.begin(column)),
        m(s.rows.length(row)),
        n(s.columns.length(column)) {}
  int64_t row, column, y, x, m, n;
};

// c = a b, modulo 2^bits.
template <typename T>
void MultiplyIntegers(int64_t m, int64_t n, int64_t k, vector::Matrix<T> a, vector::Matrix<T> b,
                      T* c, int64_t ldc) {
  using U = std::make_unsigned_t<T>;
  for (int64_t i = 0; i < m; ++i) {
    T* row = c + i * ldc;
    std::fill_n(row, n, T(0));
    if (b.column_stride == 1) {
      for (int64_t p = 0; p < k; ++p) {
        const U factor = static_cast<U>(a.at(i, p));
        const T* from = b.data + p * b.row_stride;
        for (int64_t j = 0; j < n; ++j) {
          row[j] = static_cast<T>(static_cast<U>(row[j]) + factor * static_cast<U>(from[j]));
        }
      }
    } else {
      for (int64_t j = 0; j < n; ++j) {
        U sum = 0;
        for (int64_t p = 0; p < k; ++p) {
          sum += static_cast<U>(a.at(i, p)) * static_cast<U>(b.at(p, j));
        }
        row[j] = static_cast<T>(sum);
      }
    }
  }
}

}  // namespace

template <typename T>
Status MatrixProduct<T>::RunTile(KernelContext& context, const T* a, const T* b, T* c,
                                 int64_t tile) const {
  const ProductSizes& s = sizes_;
  const Place at(s, tile);
  const vector::Matrix<T> ma{a + at.y * s.stride_a_row(), s.stride_a_row(), s.stride_a_column()};
  const vector::Matrix<T> mb{b + at.x * s.stride_b_column(), s.stride_b_row(), s.stride_b_column()};
  T* out = c + at.y * s.n + at.x;
  if constexpr (std::is_integral_v<T>) {
    MultiplyIntegers(at.m, at.n, s.k, ma, mb, out, s.n);
  } else {
    MR_ASSIGN_OR_RETURN(Tensor scratch,
                        context.AllocateScratch(DTypeOf<T>::value,
                                                Shape({vector::GemmWorkspace(at.m, at.n, s.k)})));
    vector::Gemm(at.m, at.n, s.k, ma, mb, /*accumulate=*/false, out, s.n,
                 scratch.mutable_data<T>());
  }
  return absl::OkStatus();
}

template class MatrixProduct<double>;
template class MatrixProduct<int32_t>;
template class MatrixProduct<int64_t>;

void MatrixProduct<float>::MakePart(int64_t m, int64_t n, Part& part) {
  using Type = dnnl::memory::data_type;
  const ProductSizes& s = sizes_;
  part.a = {{m, s.k}, Type::f32, dnnl::memory::dims{s.stride_a_row(), s.stride_a_column()}};
  part.b = {{s.k, n}, Type::f32, dnnl::memory::dims{s.stride_b_row(), s.stride_b_column()}};
  part.c = {{m, n}, Type::f32, dnnl::memory::dims{s.n, 1}};
  const dnnl::matmul::desc desc(part.a, part.b, part.c);
  const dnnl::matmul::primitive_desc pd(desc, UserScratchpad(), OneDnnEngine());
  part.primitive = OneDnnPrimitive(dnnl::matmul(pd), pd.scratchpad_desc());
}

StatusOr<MatrixProduct<float>> MatrixProduct<float>::Create(const ProductSizes& sizes) {
  MatrixProduct product(sizes);
  if (sizes.m == 0 || sizes.n == 0 || sizes.k == 0) return product;
  MR_RETURN_IF_ERROR(CallOneDnn("matmul", [&] {
    // Tiles that are not last exist only where there is more than one.
    for (const bool last_row : {false, true}) {
      if (!last_row && sizes.rows.count() == 1) continue;
      for (const bool last_column : {false, true}) {
        if (!last_column && sizes.columns.count() == 1) continue;
        product.MakePart(sizes.rows.length(last_row ? sizes.rows.count() - 1 : 0),
                         sizes.columns.length(last_column ? sizes.columns.count() - 1 : 0),
                         product.parts_[last_row][last_column]);
      }
    }
  }));
  return product;
}

Status MatrixProduct<float>::RunTile(KernelContext& context, const float* a, const float* b,
                                     float* c, int64_t tile) const {
  const ProductSizes& s = sizes_;
  const Place at(s, tile);
  float* out = c + at.y * s.n + at.x;
  if (s.k == 0) {  // oneDNN has no sums of nothing
    for (int64_t i = 0; i < at.m; ++i) std::fill_n(out + i * s.n, at.n, 0.0f);
    return absl::OkStatus();
  }
  const Part& part = parts_[at.row == s.rows.count() - 1][at.column == s.columns.count() - 1];
  Tensor scratch;
  void* scratchpad = nullptr;
  if (const int64_t bytes = part.primitive.scratchpad_bytes(); bytes > 0) {
    MR_ASSIGN_OR_RETURN(scratch, context.AllocateScratch(DType::kUint8, Shape({bytes})));
    scratchpad = scratch.mutable_raw_data();
  }
  return part.primitive.Run({{DNNL_ARG_SRC, &part.a, a + at.y * s.stride_a_row()},
                             {DNNL_ARG_WEIGHTS, &part.b, b + at.x * s.stride_b_column()},
                             {DNNL_ARG_DST, &part.c, out}},
                            scratchpad);
}

}  // namespace millrace
