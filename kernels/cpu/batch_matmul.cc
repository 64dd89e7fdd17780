#include <algorithm>

#include "kernels/broadcast.h"
#include "kernels/cpu/matrix_product.h"
#include "kernels/cpu/register.h"

namespace millrace {
namespace {

// The dimensions before the last two.
StatusOr<Shape> BatchOf(const Shape& shape) {
  if (shape.rank() < 2) {
    return InvalidArgument("batches of matrices are needed, not a tensor of shape ",
                           shape.ToString());
  }
  return Shape::Create(shape.dims().subspan(0, shape.rank() - 2));
}

// All batches have one size of matrix, so that one product serves them.
template <typename T>
struct PreparedBatches final : public PreparedShapes {
  PreparedBatches(MatrixProduct<T> p, std::unique_ptr<BroadcastPlan<2>> b)
      : product(std::move(p)), batches(std::move(b)) {}
  const MatrixProduct<T> product;
  const std::unique_ptr<BroadcastPlan<2>> batches;  // in matrices

  // Which matrices of the operands make matrix i of the result.
  std::array<int64_t, 2> MatricesOf(int64_t i) const {
    std::array<int64_t, 2> at{};
    for (int d = batches->rank - 1; d >= 0; --d) {
      const int64_t index = i % batches->dims[d];
      i /= batches->dims[d];
      for (int k = 0; k < 2; ++k) at[k] += index * batches->strides[d][k];
    }
    return at;
  }
};

template <typename T>
class BatchMatMulKernel final : public Kernel {
 public:
  explicit BatchMatMulKernel(const AttrMap& attrs)
      : adj_x_(attrs.GetOr("adj_x", false)), adj_y_(attrs.GetOr("adj_y", false)) {}

  static StatusOr<std::unique_ptr<Kernel>> Create(const KernelConstruction& c) {
    return std::unique_ptr<Kernel>(std::make_unique<BatchMatMulKernel>(c.attrs));
  }

  StatusOr<std::unique_ptr<PreparedShapes>> Prepare(const PrepareContext& c) const override {
    const Shape &x = c.inputs[0], &y = c.inputs[1], &out = c.outputs[0];
    MR_ASSIGN_OR_RETURN(const Shape batch_x, BatchOf(x));
    MR_ASSIGN_OR_RETURN(const Shape batch_y, BatchOf(y));
    MR_ASSIGN_OR_RETURN(Shape batch, BatchOf(out));
    int64_t m = x[x.rank() - (adj_x_ ? 1 : 2)];
    const int64_t k = x[x.rank() - (adj_x_ ? 2 : 1)];
    const int64_t ky = y[y.rank() - (adj_y_ ? 1 : 2)];
    const int64_t n = y[y.rank() - (adj_y_ ? 2 : 1)];
    if (k != ky || out[out.rank() - 2] != m || out[out.rank() - 1] != n) {
      return InvalidArgument("x ", x.ToString(), adj_x_ ? " (transposed)" : "", " and y ",
                             y.ToString(), adj_y_ ? " (transposed)" : "",
                             " do not give a product of shape ", out.ToString());
    }
    // One y for all: the matrices of x are the rows of a single one.
    Shape operand_x = batch_x;
    if (!adj_x_ && batch_y.num_elements() == 1 && batch_x.num_elements() == batch.num_elements() &&
        out.num_elements() > 0) {
      m *= batch.num_elements();
      batch = Shape();
      operand_x = Shape();
    }
    MR_ASSIGN_OR_RETURN(
        auto batches,
        MakeBroadcastPlan<2>({&operand_x, batch.rank() == 0 ? &batch : &batch_y}, batch));
    MR_ASSIGN_OR_RETURN(MatrixProduct<T> product,
                        MatrixProduct<T>::Create(ProductSizes(m, n, k, adj_x_, adj_y_)));
    return std::unique_ptr<PreparedShapes>(
        std::make_unique<PreparedBatches<T>>(std::move(product), std::move(batches)));
  }

  Status Compute(KernelContext& context) const override {
    const auto& prepared = context.prepared<PreparedBatches<T>>();
    const MatrixProduct<T>& product = prepared.product;
    const ProductSizes& s = product.sizes();
    const T* x = context.input(0).data<T>();
    const T* y = context.input(1).data<T>();
    T* out = context.output(0).mutable_data<T>();
    if (context.output(0).num_elements() == 0) return absl::OkStatus();
    // A task is several products where they are small.
    constexpr double kWorthATask = 4e6;
    constexpr int64_t kMostTasks = 256;
    const int64_t tiles = s.tiles();
    const int64_t units = prepared.batches->num_elements * tiles;
    const int64_t per_task = ItemsPerBlock(units, s.flops_per_tile(), kWorthATask, kMostTasks);
    return ParallelBlocks(context, CeilDiv(units, per_task), [&](int64_t task) -> Status {
      const int64_t end = std::min(units, (task + 1) * per_task);
      for (int64_t unit = task * per_task; unit < end; ++unit) {
        const int64_t i = unit / tiles;
        const std::array<int64_t, 2> from = prepared.MatricesOf(i);
        MR_RETURN_IF_ERROR(product.RunTile(context, x + from[0] * s.m * s.k,
                                           y + from[1] * s.k * s.n, out + i * s.m * s.n,
                                           unit % tiles));
      }
      return absl::OkStatus();
    });
  }

 private:
  const bool adj_x_;
  const bool adj_y_;
};

}  // namespace

void RegisterBatchMatMulKernels(KernelRegistry& registry) {
  for (const char* op : {"BatchMatMul", "BatchMatMulV2"}) {
    AddTyped<BatchMatMulKernel, float, double, int32_t, int64_t>(registry, op, "CPU");
  }
  // Its shape function refuses other dtypes of y and of the output.
  AddTyped<BatchMatMulKernel, float, double, int32_t, int64_t>(registry, "BatchMatMulV3", "CPU",
                                                               "Ta");
}

}  // namespace millrace
