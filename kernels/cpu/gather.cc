#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/indices.h"
#include "kernels/cpu/register.h"
#include "kernels/cpu/string_output.h"
#include "kernels/cpu/variable_input.h"
#include "kernels/host_values.h"

// Slices that indices name.
namespace millrace {
namespace {

// batch_dims counted from the front.
StatusOr<int> ResolveBatchDims(int64_t given, const Shape& indices, int most) {
  const int64_t batch = given < 0 ? given + indices.rank() : given;
  if (batch < 0 || batch > most || batch > indices.rank()) {
    return InvalidArgument("batch_dims ", given, " does not fit indices ", indices.ToString(),
                           " and axis ", most);
  }
  return static_cast<int>(batch);
}

// params[batch, outer, extent, inner], indices[batch, picks], out[batch, outer, picks, inner].
Status GatherSlices(KernelContext& context, const Tensor& params, const Tensor& indices, int axis,
                    int batch_dims, Tensor& out) {
  int64_t batch = 1, outer = 1, inner = 1;
  for (int i = 0; i < batch_dims; ++i) {
    if (params.shape()[i] != indices.shape()[i]) {
      return InvalidArgument("batch dimension ", i, " of params ", params.shape().ToString(),
                             " and indices ", indices.shape().ToString(), " differ");
    }
    batch *= params.shape()[i];
  }
  for (int i = batch_dims; i < axis; ++i) outer *= params.shape()[i];
  for (int i = axis + 1; i < params.shape().rank(); ++i) inner *= params.shape()[i];
  const int64_t extent = params.shape()[axis];
  const int64_t picks = batch == 0 ? 0 : indices.num_elements() / batch;
  const bool strings = params.dtype() == DType::kString;  // no output is allocated for them
  if (!strings && out.num_elements() != batch * outer * picks * inner) {
    return InvalidArgument("params ", params.shape().ToString(), " and indices ",
                           indices.shape().ToString(), " do not give an output of shape ",
                           out.shape().ToString());
  }
  MR_RETURN_IF_ERROR(CheckIndices(indices, extent));
  // The slice of params that slice i of the output is.
  const auto slice = [&](int64_t i) {
    const int64_t row = i / picks;  // of batch and outer
    return row * extent + IndexAt(indices, row / outer * picks + i % picks);
  };
  if (strings) {
    IntVector dims(params.shape().dims().begin(), params.shape().dims().begin() + axis);
    for (int i = batch_dims; i < indices.shape().rank(); ++i) dims.push_back(indices.shape()[i]);
    for (int i = axis + 1; i < params.shape().rank(); ++i) dims.push_back(params.shape()[i]);
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
    return OutputStrings(context, 0, shape, [&](int64_t i) {
      return params.string(slice(i / inner) * inner + i % inner);
    });
  }
  const int64_t size = static_cast<int64_t>(SizeOf(params.dtype()));
  if (size == 0) return Unimplemented("no gathering of ", Name(params.dtype()), " elements");
  const int64_t bytes = inner * size;
  if (bytes == 0) return absl::OkStatus();
  const char* from = static_cast<const char*>(params.raw_data());
  char* to = static_cast<char*>(out.mutable_raw_data());
  ParallelRange(context, batch * outer * picks, std::max<int64_t>(1, 4 * kElementsPerTask / bytes),
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    std::memcpy(to + i * bytes, from + slice(i) * bytes, bytes);
                  }
                });
  return absl::OkStatus();
}

class BatchGatherKernel : public Kernel {
 public:
  explicit BatchGatherKernel(const KernelConstruction& c)
      : batch_dims_(c.attrs.GetOr<int64_t>("batch_dims", 0)) {}

 protected:
  const int64_t batch_dims_;
};

class GatherKernel final : public BatchGatherKernel {
 public:
  using BatchGatherKernel::BatchGatherKernel;
  Status Compute(KernelContext& context) const override {
    const Tensor& params = context.input(0);
    const Tensor& indices = context.input(1);
    MR_ASSIGN_OR_RETURN(const int64_t given, HostInt(context.input(2), "the axis"));
    MR_ASSIGN_OR_RETURN(const int axis, ResolveAxis(given, params.shape().rank()));
    MR_ASSIGN_OR_RETURN(const int batch, ResolveBatchDims(batch_dims_, indices.shape(), axis));
    return GatherSlices(context, params, indices, axis, batch, context.output(0));
  }
};

// Along the dimension that follows the batch dimensions of a variable.
class ResourceGatherKernel final : public BatchGatherKernel {
 public:
  explicit ResourceGatherKernel(const KernelConstruction& c)
      : BatchGatherKernel(c), dtype_(c.attrs.GetOr("dtype", DType::kInvalid)) {}
  Status Compute(KernelContext& context) const override {
    MR_ASSIGN_OR_RETURN(const Tensor params, ReadVariableInput(context, 0, dtype_));
    const Tensor& indices = context.input(1);
    const int rank = params.shape().rank();
    if (rank == 0) {
      return InvalidArgument("the variable is a scalar: it has no rows");
    }
    MR_ASSIGN_OR_RETURN(const int batch, ResolveBatchDims(batch_dims_, indices.shape(), rank - 1));
    IntVector dims(indices.shape().dims().begin(), indices.shape().dims().end());
    for (int i = batch + 1; i < rank; ++i) dims.push_back(params.shape()[i]);
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
    MR_RETURN_IF_ERROR(context.AllocateOutput(0, params.dtype(), shape));
    return GatherSlices(context, params, indices, batch, batch, context.output(0));
  }

 private:
  const DType dtype_;
};

class GatherNdKernel final : public Kernel {
 public:
  Status Compute(KernelContext& context) const override {
    const Tensor& params = context.input(0);
    Tensor& out = context.output(0);
    const auto size = static_cast<int64_t>(SizeOf(params.dtype()));
    if (size == 0) return Unimplemented("no gathering of ", Name(params.dtype()), " elements");
    MR_ASSIGN_OR_RETURN(const std::vector<int64_t> slices,
                        SlicesNamedBy(context.input(1), params.shape(), out.shape(), "the output"));
    const auto count = static_cast<int64_t>(slices.size());
    const int64_t bytes = count == 0 ? 0 : out.num_elements() / count * size;
    if (bytes == 0) return absl::OkStatus();
    const char* from = static_cast<const char*>(params.raw_data());
    char* to = static_cast<char*>(out.mutable_raw_data());
    ParallelRange(context, count, std::max<int64_t>(1, 4 * kElementsPerTask / bytes),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) {
                      std::memcpy(to + i * bytes, from + slices[i] * bytes, bytes);
                    }
                  });
    return absl::OkStatus();
  }
};

}  // namespace

void RegisterGatherKernels(KernelRegistry& registry) {
  registry.Add("GatherV2", "CPU", MakeKernel<GatherKernel>);
  registry.Add("ResourceGather", "CPU", MakeKernel<ResourceGatherKernel>);
  registry.Add("GatherNd", "CPU", MakeKernel<GatherNdKernel>);
}

}  // namespace millrace
