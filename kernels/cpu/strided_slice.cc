#include "core/framework/strided_slice.h"

#include <cstring>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/register.h"
#include "kernels/cpu/strided_copy.h"
#include "kernels/host_values.h"

namespace millrace {
namespace {

class StridedSliceKernelBase : public Kernel {
 public:
  explicit StridedSliceKernelBase(const KernelConstruction& c) : attrs_(c.attrs) {}

 protected:
  // The slice that operands 1 to 3 take of a tensor of shape `whole`, as a walk over it that goes
  // with one over a tensor of the slice's own shape.
  struct Walk {
    int64_t offset = 0;  // of the first element in the whole
    std::array<int64_t, kMaxRank> strides{}, part_strides{}, extents{};
    int rank = 0;
    Shape shape;  // of the slice
  };
  StatusOr<Walk> WalkOver(KernelContext& context, const Shape& whole) const {
    StridedSliceSpec::Ints operands[3];
    for (int i = 0; i < 3; ++i) {
      MR_ASSIGN_OR_RETURN(const IntVector values, HostInts(context.input(i + 1), "the slice"));
      operands[i] = std::vector<int64_t>(values.begin(), values.end());
    }
    const auto count =
        static_cast<int>(std::min<size_t>(operands[0]->size(), kMaxSliceEntries + 1));
    MR_ASSIGN_OR_RETURN(
        const StridedSliceSpec spec,
        StridedSliceSpec::Create(attrs_, std::move(operands[0]), std::move(operands[1]),
                                 std::move(operands[2]), count));
    MR_ASSIGN_OR_RETURN(const StridedSlice slice, ResolveStridedSlice(spec, whole));
    Walk walk;
    MR_ASSIGN_OR_RETURN(walk.shape, slice.shape.ToShape());
    walk.rank = whole.rank();
    const auto strides = RowMajorStrides(whole);
    int64_t part_stride = 1;
    for (int i = walk.rank - 1; i >= 0; --i) {
      const StridedSlice::Dim& dim = slice.dims[i];
      walk.extents[i] = dim.size;
      walk.part_strides[i] = part_stride;
      part_stride *= dim.size;
      if (dim.size == 0) continue;
      walk.offset += dim.begin * strides[i];
      // A stride beyond the extent leads nowhere, and might overflow.
      walk.strides[i] = dim.size > 1 ? dim.stride * strides[i] : 0;
    }
    return walk;
  }

 private:
  const AttrMap attrs_;
};

class StridedSliceKernel final : public StridedSliceKernelBase {
 public:
  using StridedSliceKernelBase::StridedSliceKernelBase;
  Status Compute(KernelContext& context) const override {
    const Tensor& x = context.input(0);
    MR_ASSIGN_OR_RETURN(const Walk walk, WalkOver(context, x.shape()));
    if (x.dtype() != DType::kString && context.output(0).shape() != walk.shape) {
      return InvalidArgument("the slice of ", x.shape().ToString(), " has shape ",
                             walk.shape.ToString(), ", not ", context.output(0).shape().ToString());
    }
    StridedCopy copy;
    for (int i = 0; i < walk.rank; ++i) {
      copy.Add(walk.extents[i], walk.strides[i], walk.part_strides[i]);
    }
    return copy.Run(context, x, walk.offset, walk.shape);
  }
};

class StridedSliceGradKernel final : public StridedSliceKernelBase {
 public:
  using StridedSliceKernelBase::StridedSliceKernelBase;
  Status Compute(KernelContext& context) const override {
    const Tensor& dy = context.input(4);
    Tensor& out = context.output(0);
    MR_ASSIGN_OR_RETURN(const Walk walk, WalkOver(context, out.shape()));
    if (dy.shape() != walk.shape) {
      return InvalidArgument("the slice of ", out.shape().ToString(), " has shape ",
                             walk.shape.ToString(), ", but dy has ", dy.shape().ToString());
    }
    StridedCopy copy;
    for (int i = 0; i < walk.rank; ++i) {
      copy.Add(walk.extents[i], walk.part_strides[i], walk.strides[i]);
    }
    const auto element = static_cast<int64_t>(SizeOf(dy.dtype()));
    if (element == 0) return Unimplemented("no slices of ", Name(dy.dtype()), " tensors");
    if (out.num_elements() == 0) return absl::OkStatus();
    char* const to = static_cast<char*>(out.mutable_raw_data());
    std::memset(to, 0, out.num_elements() * element);
    return copy.Run(context, element, dy.raw_data(), to + walk.offset * element);
  }
};

}  // namespace

void RegisterStridedSliceKernels(KernelRegistry& registry) {
  registry.Add("StridedSlice", "CPU", MakeKernel<StridedSliceKernel>);
  registry.Add("StridedSliceGrad", "CPU", MakeKernel<StridedSliceGradKernel>);
}

}  // namespace millrace
