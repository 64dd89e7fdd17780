#include <algorithm>
#include <vector>

#include "kernels/cpu/onednn.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/register.h"
#include "kernels/cpu/vector_gemm.h"

namespace millrace {
namespace {

// One dimension of the result, cut into tiles of equal size but for a smaller last one.
struct Tiles {
  int64_t extent = 0;
  int64_t size = 1;
  Tiles() = default;
  // Tiles of about `wanted`, in multiples of 16, which keep the register tiles full.
  Tiles(int64_t n, int64_t wanted) : extent(n) {
    constexpr int64_t kUnit = 16;
    const int64_t units = std::max<int64_t>(1, CeilDiv(n, kUnit));
    const int64_t count = std::max<int64_t>(1, CeilDiv(n, wanted));
    size = CeilDiv(units, count) * kUnit;
  }
  int64_t count() const { return CeilDiv(extent, size); }
  int64_t begin(int64_t i) const { return i * size; }
  int64_t length(int64_t i) const { return std::min(size, extent - i * size); }
};

// a[m,k] b[k,n], and the grid of tiles into which the result is cut; each is a task. By shapes
// alone.
struct Product {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  Tiles rows, columns;

  int64_t stride_a_row() const { return transpose_a ? 1 : k; }
  int64_t stride_a_column() const { return transpose_a ? m : 1; }
  int64_t stride_b_row() const { return transpose_b ? 1 : n; }
  int64_t stride_b_column() const { return transpose_b ? k : 1; }
  int64_t tiles() const { return rows.count() * columns.count(); }
  double flops_per_tile() const {
    return 2.0 * static_cast<double>(std::min(m, rows.size)) *
           static_cast<double>(std::min(n, columns.size)) * static_cast<double>(k);
  }
  void Cut();
};

void Product::Cut() {
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

StatusOr<Product> MakeProduct(const Shape& a, const Shape& b, bool transpose_a, bool transpose_b) {
  if (a.rank() != 2 || b.rank() != 2) {
    return InvalidArgument("matrices are needed, not ", a.ToString(), " and ", b.ToString());
  }
  Product p;
  p.transpose_a = transpose_a;
  p.transpose_b = transpose_b;
  p.m = transpose_a ? a[1] : a[0];
  p.k = transpose_a ? a[0] : a[1];
  p.n = transpose_b ? b[0] : b[1];
  const int64_t kb = transpose_b ? b[1] : b[0];
  if (p.k != kb) {
    return InvalidArgument("inner extents differ: ", p.k, " of ", a.ToString(),
                           transpose_a ? " (transposed)" : "", " and ", kb, " of ", b.ToString(),
                           transpose_b ? " (transposed)" : "");
  }
  p.Cut();
  return p;
}

// ---- float: oneDNN, a primitive for each size of a tile: full or last in either dimension ----

struct PreparedMatMul final : public PreparedShapes {
  struct Part {
    dnnl::memory::desc a, b, c;
    OneDnnPrimitive primitive;
  };
  Product product;
  Part parts[2][2];  // [last row of tiles][last column of tiles]
};

void MakePart(const Product& p, int64_t m, int64_t n, PreparedMatMul::Part& part) {
  using Type = dnnl::memory::data_type;
  part.a = {{m, p.k}, Type::f32, dnnl::memory::dims{p.stride_a_row(), p.stride_a_column()}};
  part.b = {{p.k, n}, Type::f32, dnnl::memory::dims{p.stride_b_row(), p.stride_b_column()}};
  part.c = {{m, n}, Type::f32, dnnl::memory::dims{p.n, 1}};
  const dnnl::matmul::desc desc(part.a, part.b, part.c);
  const dnnl::matmul::primitive_desc pd(desc, UserScratchpad(), OneDnnEngine());
  part.primitive = OneDnnPrimitive(dnnl::matmul(pd), pd.scratchpad_desc());
}

class TransposeFlags {
 public:
  explicit TransposeFlags(const AttrMap& attrs)
      : a(attrs.GetOr("transpose_a", false)), b(attrs.GetOr("transpose_b", false)) {}
  const bool a;
  const bool b;
};

class FloatMatMulKernel final : public Kernel {
 public:
  explicit FloatMatMulKernel(const AttrMap& attrs) : transpose_(attrs) {}

  StatusOr<std::unique_ptr<PreparedShapes>> Prepare(const PrepareContext& c) const override {
    auto prepared = std::make_unique<PreparedMatMul>();
    MR_ASSIGN_OR_RETURN(prepared->product,
                        MakeProduct(c.inputs[0], c.inputs[1], transpose_.a, transpose_.b));
    const Product& p = prepared->product;
    if (p.m > 0 && p.n > 0 && p.k > 0) {
      MR_RETURN_IF_ERROR(CallOneDnn("matmul", [&] {
        // Tiles that are not last exist only where there is more than one.
        for (const bool last_row : {false, true}) {
          if (!last_row && p.rows.count() == 1) continue;
          for (const bool last_column : {false, true}) {
            if (!last_column && p.columns.count() == 1) continue;
            MakePart(p, p.rows.length(last_row ? p.rows.count() - 1 : 0),
                     p.columns.length(last_column ? p.columns.count() - 1 : 0),
                     prepared->parts[last_row][last_column]);
          }
        }
      }));
    }
    return std::unique_ptr<PreparedShapes>(std::move(prepared));
  }

  Status Compute(KernelContext& context) const override {
    const auto& prepared = context.prepared<PreparedMatMul>();
    const Product& p = prepared.product;
    const float* a = context.input(0).data<float>();
    const float* b = context.input(1).data<float>();
    float* c = context.output(0).mutable_data<float>();
    if (p.m == 0 || p.n == 0 || p.k == 0) {
      std::fill_n(c, p.m * p.n, 0.0f);
      return absl::OkStatus();
    }
    return ParallelBlocks(context, p.tiles(), [&](int64_t i) -> Status {
      const int64_t row = i / p.columns.count(), column = i % p.columns.count();
      const PreparedMatMul::Part& part =
          prepared.parts[row == p.rows.count() - 1][column == p.columns.count() - 1];
      Tensor scratch;
      void* scratchpad = nullptr;
      if (const int64_t bytes = part.primitive.scratchpad_bytes(); bytes > 0) {
        MR_ASSIGN_OR_RETURN(scratch, context.AllocateScratch(DType::kUint8, Shape({bytes})));
        scratchpad = scratch.mutable_raw_data();
      }
      const int64_t y = p.rows.begin(row), x = p.columns.begin(column);
      return part.primitive.Run({{DNNL_ARG_SRC, &part.a, a + y * p.stride_a_row()},
                                 {DNNL_ARG_WEIGHTS, &part.b, b + x * p.stride_b_column()},
                                 {DNNL_ARG_DST, &part.c, c + y * p.n + x}},
                                scratchpad);
    });
  }

 private:
  const TransposeFlags transpose_;
};

// ---- double: our own product ----

struct PreparedProduct final : public PreparedShapes {
  explicit PreparedProduct(const Product& p) : product(p) {}
  const Product product;
};

template <typename T>
class OwnMatMulKernel final : public Kernel {
 public:
  explicit OwnMatMulKernel(const AttrMap& attrs) : transpose_(attrs) {}

  StatusOr<std::unique_ptr<PreparedShapes>> Prepare(const PrepareContext& c) const override {
    MR_ASSIGN_OR_RETURN(Product product,
                        MakeProduct(c.inputs[0], c.inputs[1], transpose_.a, transpose_.b));
    return std::unique_ptr<PreparedShapes>(std::make_unique<PreparedProduct>(product));
  }

  Status Compute(KernelContext& context) const override {
    const Product& p = context.prepared<PreparedProduct>().product;
    if (p.m == 0 || p.n == 0) return absl::OkStatus();
    const T* a = context.input(0).data<T>();
    const T* b = context.input(1).data<T>();
    T* c = context.output(0).mutable_data<T>();
    return ParallelBlocks(context, p.tiles(), [&](int64_t i) -> Status {
      const int64_t row = i / p.columns.count(), column = i % p.columns.count();
      const int64_t m = p.rows.length(row), n = p.columns.length(column);
      MR_ASSIGN_OR_RETURN(
          Tensor scratch,
          context.AllocateScratch(DTypeOf<T>::value, Shape({vector::GemmWorkspace(m, n, p.k)})));
      const int64_t y = p.rows.begin(row), x = p.columns.begin(column);
      vector::Gemm(
          m, n, p.k,
          vector::Matrix<T>{a + y * p.stride_a_row(), p.stride_a_row(), p.stride_a_column()},
          vector::Matrix<T>{b + x * p.stride_b_column(), p.stride_b_row(), p.stride_b_column()},
          /*accumulate=*/false, c + y * p.n + x, p.n, scratch.mutable_data<T>());
      return absl::OkStatus();
    });
  }

 private:
  const TransposeFlags transpose_;
};

template <typename K>
StatusOr<std::unique_ptr<Kernel>> Create(const KernelConstruction& c) {
  return std::unique_ptr<Kernel>(std::make_unique<K>(c.attrs));
}

}  // namespace

void RegisterMatMulKernels(KernelRegistry& registry) {
  registry.Add(KernelDef{"MatMul", "CPU", {{"T", {DType::kFloat}}}}, Create<FloatMatMulKernel>);
  registry.Add(KernelDef{"MatMul", "CPU", {{"T", {DType::kDouble}}}},
               Create<OwnMatMulKernel<double>>);
}

}  // namespace millrace
