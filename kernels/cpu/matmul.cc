#include <algorithm>
#include <vector>

#include "kernels/cpu/onednn.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/register.h"
#include "kernels/cpu/vector_gemm.h"

namespace millrace {
namespace {

// Work worth a task: some 100 microseconds.
constexpr double kFlopsPerTask = 1e7;
constexpr int64_t kMaxTasks = 64;

// a[m,k] b[k,n], and how the result is cut into blocks: along rows or along columns, whichever
// there are more of.
struct Product {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  bool by_rows = true;
  int64_t block = 0;  // rows or columns in one
  int64_t blocks = 0;

  int64_t stride_a_row() const { return transpose_a ? 1 : k; }
  int64_t stride_a_column() const { return transpose_a ? m : 1; }
  int64_t stride_b_row() const { return transpose_b ? 1 : n; }
  int64_t stride_b_column() const { return transpose_b ? k : 1; }
  int64_t extent() const { return by_rows ? m : n; }
  int64_t begin(int64_t i) const { return i * block; }
  int64_t size(int64_t i) const { return std::min(block, extent() - i * block); }
};

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
  p.by_rows = p.m >= p.n;
  // Multiples of 16 keep the library's register tiles full.
  constexpr int64_t kUnit = 16;
  const int64_t units = CeilDiv(p.extent(), kUnit);
  const int64_t other = p.by_rows ? p.n : p.m;
  const double cost =
      2.0 * static_cast<double>(kUnit) * static_cast<double>(other) * static_cast<double>(p.k);
  p.block = ItemsPerBlock(units, cost, kFlopsPerTask, kMaxTasks) * kUnit;
  p.blocks = CeilDiv(p.extent(), p.block);
  return p;
}

// ---- float: oneDNN, one primitive for the blocks and one for a smaller last block ----

struct PreparedMatMul final : public PreparedShapes {
  struct Part {
    dnnl::memory::desc a, b, c;
    OneDnnPrimitive primitive;
  };
  Product product;
  Part parts[2];
  const Part& part(int64_t block) const {
    return parts[product.size(block) == product.block ? 0 : 1];
  }
};

void MakePart(const Product& p, int64_t size, PreparedMatMul::Part& part) {
  using Type = dnnl::memory::data_type;
  const int64_t m = p.by_rows ? size : p.m;
  const int64_t n = p.by_rows ? p.n : size;
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
        MakePart(p, p.size(0), prepared->parts[0]);
        const int64_t last = p.size(p.blocks - 1);
        if (last != p.block && p.blocks > 1) MakePart(p, last, prepared->parts[1]);
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
    return ParallelBlocks(context, p.blocks, [&](int64_t i) -> Status {
      const PreparedMatMul::Part& part = i == 0 ? prepared.parts[0] : prepared.part(i);
      const int64_t begin = p.begin(i);
      Tensor scratch;
      void* scratchpad = nullptr;
      if (const int64_t bytes = part.primitive.scratchpad_bytes(); bytes > 0) {
        MR_ASSIGN_OR_RETURN(scratch, context.AllocateScratch(DType::kUint8, Shape({bytes})));
        scratchpad = scratch.mutable_raw_data();
      }
      const float* from_a = p.by_rows ? a + begin * p.stride_a_row() : a;
      const float* from_b = p.by_rows ? b : b + begin * p.stride_b_column();
      float* to = p.by_rows ? c + begin * p.n : c + begin;
      return part.primitive.Run({{DNNL_ARG_SRC, &part.a, from_a},
                                 {DNNL_ARG_WEIGHTS, &part.b, from_b},
                                 {DNNL_ARG_DST, &part.c, to}},
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
    return ParallelBlocks(context, p.blocks, [&](int64_t i) -> Status {
      const int64_t begin = p.begin(i);
      const int64_t m = p.by_rows ? p.size(i) : p.m;
      const int64_t n = p.by_rows ? p.n : p.size(i);
      MR_ASSIGN_OR_RETURN(
          Tensor scratch,
          context.AllocateScratch(DTypeOf<T>::value, Shape({vector::GemmWorkspace(m, n, p.k)})));
      const int64_t row = p.by_rows ? begin : 0;
      const int64_t column = p.by_rows ? 0 : begin;
      vector::Gemm(
          m, n, p.k,
          vector::Matrix<T>{a + row * p.stride_a_row(), p.stride_a_row(), p.stride_a_column()},
          vector::Matrix<T>{b + column * p.stride_b_column(), p.stride_b_row(),
                            p.stride_b_column()},
          /*accumulate=*/false, c + row * p.n + column, p.n, scratch.mutable_data<T>());
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
