#include "kernels/cpu/matrix_product.h"
#include "kernels/cpu/register.h"

namespace millrace {
namespace {

StatusOr<ProductSizes> MatMulSizes(const Shape& a, const Shape& b, bool transpose_a,
                                   bool transpose_b) {
  if (a.rank() != 2 || b.rank() != 2) {
    return InvalidArgument("matrices are needed, not ", a.ToString(), " and ", b.ToString());
  }
  const int64_t k = transpose_a ? a[0] : a[1];
  const int64_t kb = transpose_b ? b[1] : b[0];
  if (k != kb) {
    return InvalidArgument("inner extents differ: ", k, " of ", a.ToString(),
                           transpose_a ? " (transposed)" : "", " and ", kb, " of ", b.ToString(),
                           transpose_b ? " (transposed)" : "");
  }
  return ProductSizes(transpose_a ? a[1] : a[0], transpose_b ? b[0] : b[1], k, transpose_a,
                      transpose_b);
}

template <typename T>
class MatMulKernel final : public Kernel {
 public:
  explicit MatMulKernel(const AttrMap& attrs)
      : transpose_a_(attrs.GetOr("transpose_a", false)),
        transpose_b_(attrs.GetOr("transpose_b", false)) {}

  static StatusOr<std::unique_ptr<Kernel>> Create(const KernelConstruction& c) {
    return std::unique_ptr<Kernel>(std::make_unique<MatMulKernel>(c.attrs));
  }

  StatusOr<std::unique_ptr<PreparedShapes>> Prepare(const PrepareContext& c) const override {
    MR_ASSIGN_OR_RETURN(const ProductSizes sizes,
                        MatMulSizes(c.inputs[0], c.inputs[1], transpose_a_, transpose_b_));
    MR_ASSIGN_OR_RETURN(MatrixProduct<T> product, MatrixProduct<T>::Create(sizes));
    return std::unique_ptr<PreparedShapes>(std::make_unique<Prepared>(std::move(product)));
  }

  Status Compute(KernelContext& context) const override {
    const MatrixProduct<T>& product = context.prepared<Prepared>().product;
    const T* a = context.input(0).data<T>();
    const T* b = context.input(1).data<T>();
    T* c = context.output(0).mutable_data<T>();
    return ParallelBlocks(context, product.sizes().tiles(),
                          [&](int64_t tile) { return product.RunTile(context, a, b, c, tile); });
  }

 private:
  struct Prepared final : public PreparedShapes {
    explicit Prepared(MatrixProduct<T> p) : product(std::move(p)) {}
    const MatrixProduct<T> product;
  };
  const bool transpose_a_;
  const bool transpose_b_;
};

}  // namespace

void RegisterMatMulKernels(KernelRegistry& registry) {
  AddTyped<MatMulKernel, float, double, int32_t, int64_t>(registry, "MatMul", "CPU");
}

}  // namespace millrace
