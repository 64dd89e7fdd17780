#include <algorithm>
#include <cstring>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/register.h"
#include "kernels/cpu/strided_copy.h"
#include "kernels/host_values.h"

// Elements that move without being changed: any dtype of a fixed size.
namespace millrace {
namespace {

// The executor allocated the output from the inferred shape; what the operands say must agree.
Status CheckOutputShape(const Shape& output, absl::Span<const int64_t> expected) {
  if (output.dims() == expected) return absl::OkStatus();
  MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(expected));
  return InvalidArgument("the operands ask for an output of shape ", shape.ToString(),
                         ", but it has ", output.ToString());
}

class TransposeKernel final : public Kernel {
 public:
  Status Compute(KernelContext& context) const override {
    const Tensor& x = context.input(0);
    Tensor& out = context.output(0);
    const int rank = x.shape().rank();
    MR_ASSIGN_OR_RETURN(const IntVector permutation, HostInts(context.input(1), "perm"));
    if (static_cast<int>(permutation.size()) != rank) {
      return InvalidArgument("perm has ", permutation.size(), " entries, but the input has shape ",
                             x.shape().ToString());
    }
    const auto in_strides = RowMajorStrides(x.shape());
    const auto out_strides = RowMajorStrides(out.shape());
    std::array<bool, kMaxRank> seen{};
    IntVector dims;
    StridedCopy copy;
    for (int i = 0; i < rank; ++i) {
      MR_ASSIGN_OR_RETURN(const int from, ResolveAxis(permutation[i], rank));
      if (seen[from]) return InvalidArgument("perm names axis ", from, " twice");
      seen[from] = true;
      dims.push_back(x.shape()[from]);
      copy.Add(x.shape()[from], in_strides[from], out_strides[i]);
    }
    MR_RETURN_IF_ERROR(CheckOutputShape(out.shape(), dims));
    return copy.Run(context, SizeOf(x.dtype()), x.raw_data(), out.mutable_raw_data());
  }
};

class ConcatKernel final : public Kernel {
 public:
  Status Compute(KernelContext& context) const override {
    const int n = context.num_inputs() - 1;
    Tensor& out = context.output(0);
    const Shape& shape = out.shape();
    MR_ASSIGN_OR_RETURN(const int64_t given, HostInt(context.input(n), "the axis"));
    MR_ASSIGN_OR_RETURN(const int axis, ResolveAxis(given, shape.rank()));
    int64_t total = 0;
    for (int k = 0; k < n; ++k) {
      const Shape& own = context.input(k).shape();
      bool fits = own.rank() == shape.rank() && context.input(k).dtype() == out.dtype();
      for (int i = 0; fits && i < own.rank(); ++i) fits = i == axis || own[i] == shape[i];
      if (!fits) {
        return InvalidArgument("input ", k, " of shape ", own.ToString(),
                               " is no part of an output of shape ", shape.ToString(),
                               " along axis ", axis);
      }
      total += own[axis];
    }
    if (total != shape[axis]) {
      return InvalidArgument("the inputs have ", total, " along axis ", axis,
                             ", but the output has ", shape[axis]);
    }
    const size_t size = SizeOf(out.dtype());
    if (size == 0) return Unimplemented("no concatenation of ", Name(out.dtype()), " tensors");
    int64_t inner = static_cast<int64_t>(size);  // bytes of one step along the axis
    for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
    int64_t outer = 1;
    for (int i = 0; i < axis; ++i) outer *= shape[i];
    const int64_t row = total * inner;
    if (row == 0) return absl::OkStatus();
    char* to = static_cast<char*>(out.mutable_raw_data());
    ParallelRange(context, outer, std::max<int64_t>(1, 4 * kElementsPerTask / row),
                  [&](int64_t begin, int64_t end) {
                    int64_t at = 0;
                    for (int k = 0; k < n; ++k) {
                      const Tensor& x = context.input(k);
                      const int64_t bytes = x.shape()[axis] * inner;
                      if (bytes == 0) continue;
                      const char* from = static_cast<const char*>(x.raw_data());
                      for (int64_t i = begin; i < end; ++i) {
                        std::memcpy(to + i * row + at, from + i * bytes, bytes);
                      }
                      at += bytes;
                    }
                  });
    return absl::OkStatus();
  }
};

class SliceKernel final : public Kernel {
 public:
  Status Compute(KernelContext& context) const override {
    const Tensor& x = context.input(0);
    Tensor& out = context.output(0);
    const int rank = x.shape().rank();
    MR_ASSIGN_OR_RETURN(const IntVector begin, HostInts(context.input(1), "begin"));
    MR_ASSIGN_OR_RETURN(const IntVector size, HostInts(context.input(2), "size"));
    if (static_cast<int>(begin.size()) != rank || static_cast<int>(size.size()) != rank) {
      return InvalidArgument("begin has ", begin.size(), " and size ", size.size(),
                             " entries, but the input has shape ", x.shape().ToString());
    }
    const auto in_strides = RowMajorStrides(x.shape());
    const auto out_strides = RowMajorStrides(out.shape());
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
      copy.Add(dims.back(), in_strides[i], out_strides[i]);
    }
    MR_RETURN_IF_ERROR(CheckOutputShape(out.shape(), dims));
    const size_t element = SizeOf(x.dtype());
    return copy.Run(context, element,
                    static_cast<const char*>(x.raw_data()) + offset * static_cast<int64_t>(element),
                    out.mutable_raw_data());
  }
};

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
    std::memset(to, 0, out.num_elements() * element);
    return copy.Run(context, element, x.raw_data(), to + offset * element);
  }
};

class TileKernel final : public Kernel {
 public:
  Status Compute(KernelContext& context) const override {
    const Tensor& x = context.input(0);
    Tensor& out = context.output(0);
    const int rank = x.shape().rank();
    MR_ASSIGN_OR_RETURN(const IntVector multiples, HostInts(context.input(1), "multiples"));
    if (static_cast<int>(multiples.size()) != rank) {
      return InvalidArgument("multiples has ", multiples.size(), " entries, but the input has ",
                             "shape ", x.shape().ToString());
    }
    const auto in_strides = RowMajorStrides(x.shape());
    const auto out_strides = RowMajorStrides(out.shape());
    StridedCopy copy;
    for (int i = 0; i < rank; ++i) {
      const int64_t extent = x.shape()[i];
      const int64_t to = out.shape().rank() == rank ? out.shape()[i] : -1;
      const bool fits = extent == 0 ? to == 0 : to % extent == 0 && to / extent == multiples[i];
      if (multiples[i] < 0 || to < 0 || !fits) {
        return InvalidArgument("multiple ", multiples[i], " of dimension ", i,
                               " does not lead from ", x.shape().ToString(), " to ",
                               out.shape().ToString());
      }
      copy.Add(multiples[i], 0, extent * out_strides[i]);
      copy.Add(extent, in_strides[i], out_strides[i]);
    }
    return copy.Run(context, SizeOf(x.dtype()), x.raw_data(), out.mutable_raw_data());
  }
};

class BroadcastToKernel final : public Kernel {
 public:
  Status Compute(KernelContext& context) const override {
    const Tensor& x = context.input(0);
    Tensor& out = context.output(0);
    const int lead = out.shape().rank() - x.shape().rank();
    const auto in_strides = RowMajorStrides(x.shape());
    const auto out_strides = RowMajorStrides(out.shape());
    StridedCopy copy;
    for (int i = 0; i < out.shape().rank(); ++i) {
      const int64_t own = i < lead ? 1 : x.shape()[i - lead];
      if (lead < 0 || (own != 1 && own != out.shape()[i])) {
        return InvalidArgument("shape ", x.shape().ToString(), " does not broadcast to ",
                               out.shape().ToString());
      }
      copy.Add(out.shape()[i], own == 1 ? 0 : in_strides[i - lead], out_strides[i]);
    }
    return copy.Run(context, SizeOf(x.dtype()), x.raw_data(), out.mutable_raw_data());
  }
};

}  // namespace

void RegisterMovementKernels(KernelRegistry& registry) {
  registry.Add("Transpose", "CPU", MakeKernel<TransposeKernel>);
  registry.Add("ConcatV2", "CPU", MakeKernel<ConcatKernel>);
  registry.Add("Slice", "CPU", MakeKernel<SliceKernel>);
  registry.Add("Pad", "CPU", MakeKernel<PadKernel>);
  registry.Add("Tile", "CPU", MakeKernel<TileKernel>);
  registry.Add("BroadcastTo", "CPU", MakeKernel<BroadcastToKernel>);
}

}  // namespace millrace
