#include <algorithm>
#include <cstring>

#include "core/base/checked_math.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/register.h"
#include "kernels/cpu/strided_copy.h"
#include "kernels/host_values.h"

// Elements that move without being changed: any dtype of a fixed size.
namespace millrace {
namespace {

// The shape that the operands ask for. The executor allocated the output from the inferred shape,
// but of strings: they must agree.
StatusOr<Shape> OutputShape(KernelContext& context, absl::Span<const int64_t> expected) {
  MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(expected));
  const Shape& output = context.output(0).shape();
  if (output == shape || context.input(0).dtype() == DType::kString) return shape;
  return InvalidArgument("the operands ask for an output of shape ", shape.ToString(),
                         ", but it has ", output.ToString());
}

class TransposeKernel final : public Kernel {
 public:
  Status Compute(KernelContext& context) const override {
    const Tensor& x = context.input(0);
    const int rank = x.shape().rank();
    MR_ASSIGN_OR_RETURN(const IntVector permutation, HostInts(context.input(1), "perm"));
    if (static_cast<int>(permutation.size()) != rank) {
      return InvalidArgument("perm has ", permutation.size(), " entries, but the input has shape ",
                             x.shape().ToString());
    }
    const auto in_strides = RowMajorStrides(x.shape());
    std::array<bool, kMaxRank> seen{};
    IntVector dims;
    StridedCopy copy;
    for (int i = 0; i < rank; ++i) {
      MR_ASSIGN_OR_RETURN(const int from, ResolveAxis(permutation[i], rank));
      if (seen[from]) return InvalidArgument("perm names axis ", from, " twice");
      seen[from] = true;
      dims.push_back(x.shape()[from]);
    }
    MR_ASSIGN_OR_RETURN(const Shape shape, OutputShape(context, dims));
    const auto out_strides = RowMajorStrides(shape);
    for (int i = 0; i < rank; ++i) {
      const auto from =
          static_cast<int>(permutation[i] < 0 ? permutation[i] + rank : permutation[i]);
      copy.Add(shape[i], in_strides[from], out_strides[i]);
    }
    return copy.Run(context, x, 0, shape);
  }
};

class SliceKernel final : public Kernel {
 public:
  Status Compute(KernelContext& context) const override {
    const Tensor& x = context.input(0);
    const int rank = x.shape().rank();
    MR_ASSIGN_OR_RETURN(const IntVector begin, HostInts(context.input(1), "begin"));
    MR_ASSIGN_OR_RETURN(const IntVector size, HostInts(context.input(2), "size"));
    if (static_cast<int>(begin.size()) != rank || static_cast<int>(size.size()) != rank) {
      return InvalidArgument("begin has ", begin.size(), " and size ", size.size(),
                             " entries, but the input has shape ", x.shape().ToString());
    }
    const auto in_strides = RowMajorStrides(x.shape());
    StridedCopy copy;
    IntVector dims;
    int64_t offset = 0;
    for (int i = 0; i < rank; ++i) {
      const int64_t extent = x.shape()[i];
      if (begin[i] < 0 || begin[i] > extent || size[i] < -1 || size[i] > extent - begin[i]) {
        return InvalidArgument("begin ", begin[i], " and size ", size[i], " leave dimension ", i,
                               " of ", x.shape().ToString());
      }
      dims.push_back(size[i] == -1 ? extent - begin[i] : size[i]);
      offset += begin[i] * in_strides[i];
    }
    MR_ASSIGN_OR_RETURN(const Shape shape, OutputShape(context, dims));
    const auto out_strides = RowMajorStrides(shape);
    for (int i = 0; i < rank; ++i) copy.Add(shape[i], in_strides[i], out_strides[i]);
    return copy.Run(context, x, offset, shape);
  }
};

// Pad and PadV2; without a third operand, by zeros.
class PadKernel final : public Kernel {
 public:
  Status Compute(KernelContext& context) const override {
    const Tensor& x = context.input(0);
    Tensor& out = context.output(0);
    const int rank = x.shape().rank();
    MR_ASSIGN_OR_RETURN(const IntVector paddings, HostInts(context.input(1), "paddings"));
    if (static_cast<int>(paddings.size()) != 2 * rank) {
      return InvalidArgument("paddings have ", paddings.size(), " elements, but the input ",
                             x.shape().ToString(), " needs ", 2 * rank);
    }
    const auto in_strides = RowMajorStrides(x.shape());
    const auto out_strides = RowMajorStrides(out.shape());
    StridedCopy copy;
    int64_t offset = 0;
    for (int i = 0; i < rank; ++i) {
      const int64_t before = paddings[2 * i], after = paddings[2 * i + 1];
      const int64_t extent = x.shape()[i];
      // Differences of extents cannot overflow; sums of paddings could.
      if (before < 0 || after < 0 || out.shape().rank() != rank ||
          before > out.shape()[i] - extent || after != out.shape()[i] - extent - before) {
        return InvalidArgument("paddings ", before, " and ", after, " of dimension ", i,
                               " do not lead from ", x.shape().ToString(), " to ",
                               out.shape().ToString());
      }
      offset += before * out_strides[i];
      copy.Add(extent, in_strides[i], out_strides[i]);
    }
    const auto element = static_cast<int64_t>(SizeOf(out.dtype()));
    if (element == 0) return Unimplemented("no padding of ", Name(out.dtype()), " tensors");
    if (out.num_elements() == 0) return absl::OkStatus();
    char* to = static_cast<char*>(out.mutable_raw_data());
    if (context.num_inputs() < 3) {
      std::memset(to, 0, out.num_elements() * element);
    } else {
      const Tensor& value = context.input(2);
      if (value.num_elements() != 1) {
        return InvalidArgument("constant_values must be a scalar, but has shape ",
                               value.shape().ToString());
      }
      StridedCopy fill;
      fill.Add(out.num_elements(), 0, 1);
      MR_RETURN_IF_ERROR(fill.Run(context, element, value.raw_data(), to));
    }
    return copy.Run(context, element, x.raw_data(), to + offset * element);
  }
};

class TileKernel final : public Kernel {
 public:
  Status Compute(KernelContext& context) const override {
    const Tensor& x = context.input(0);
    const int rank = x.shape().rank();
    MR_ASSIGN_OR_RETURN(const IntVector multiples, HostInts(context.input(1), "multiples"));
    if (static_cast<int>(multiples.size()) != rank) {
      return InvalidArgument("multiples has ", multiples.size(), " entries, but the input has ",
                             "shape ", x.shape().ToString());
    }
    IntVector dims(rank);
    for (int i = 0; i < rank; ++i) {
      if (multiples[i] < 0 || !CheckedMul(x.shape()[i], multiples[i], &dims[i])) {
        return InvalidArgument("dimension ", i, " of ", x.shape().ToString(), " cannot be had ",
                               multiples[i], " times");
      }
    }
    MR_ASSIGN_OR_RETURN(const Shape shape, OutputShape(context, dims));
    const auto in_strides = RowMajorStrides(x.shape());
    const auto out_strides = RowMajorStrides(shape);
    StridedCopy copy;
    for (int i = 0; i < rank; ++i) {
      // The way to a repetition that is not there might overflow.
      copy.Add(multiples[i], 0, multiples[i] > 1 ? x.shape()[i] * out_strides[i] : 0);
      copy.Add(x.shape()[i], in_strides[i], out_strides[i]);
    }
    return copy.Run(context, x, 0, shape);
  }
};

class BroadcastToKernel final : public Kernel {
 public:
  Status Compute(KernelContext& context) const override {
    const Tensor& x = context.input(0);
    MR_ASSIGN_OR_RETURN(const IntVector dims, HostInts(context.input(1), "the shape"));
    MR_ASSIGN_OR_RETURN(const Shape shape, OutputShape(context, dims));
    const int lead = shape.rank() - x.shape().rank();
    const auto in_strides = RowMajorStrides(x.shape());
    const auto out_strides = RowMajorStrides(shape);
    bool fits = lead >= 0;
    StridedCopy copy;
    for (int i = 0; fits && i < shape.rank(); ++i) {
      const int64_t own = i < lead ? 1 : x.shape()[i - lead];
      fits = own == 1 || own == shape[i];
      copy.Add(shape[i], own == 1 ? 0 : in_strides[i - lead], out_strides[i]);
    }
    if (!fits) {
      return InvalidArgument("shape ", x.shape().ToString(), " does not broadcast to ",
                             shape.ToString());
    }
    return copy.Run(context, x, 0, shape);
  }
};

}  // namespace

void RegisterMovementKernels(KernelRegistry& registry) {
  registry.Add("Transpose", "CPU", MakeKernel<TransposeKernel>);
  registry.Add("Slice", "CPU", MakeKernel<SliceKernel>);
  registry.Add("Pad", "CPU", MakeKernel<PadKernel>);
  registry.Add("PadV2", "CPU", MakeKernel<PadKernel>);
  registry.Add("Tile", "CPU", MakeKernel<TileKernel>);
  registry.Add("BroadcastTo", "CPU", MakeKernel<BroadcastToKernel>);
}

}  // namespace millrace
