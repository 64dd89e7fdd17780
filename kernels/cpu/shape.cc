#include <algorithm>

#include "absl/strings/str_join.h"
#include "core/base/checked_math.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/register.h"
#include "kernels/host_values.h"

// Shapes as values, and the same elements under another shape. No element is touched, so all of
// these run inline.
namespace millrace {
namespace {

class MetadataKernel : public Kernel {
 public:
  bool IsExpensive() const override { return false; }
};

class IdentityKernel final : public MetadataKernel {
 public:
  Status Compute(KernelContext& context) const override {
    for (int i = 0; i < context.num_inputs(); ++i) context.set_output(i, context.input(i));
    return absl::OkStatus();
  }
};

// The default that no step replaced. Its shape may have been unknown until now.
class PlaceholderWithDefaultKernel final : public MetadataKernel {
 public:
  explicit PlaceholderWithDefaultKernel(const KernelConstruction& c)
      : shape_(c.attrs.GetOr<PartialShape>("shape", PartialShape())) {}

  Status Compute(KernelContext& context) const override {
    const Tensor& x = context.input(0);
    if (!shape_.IsCompatibleWith(x.shape())) {
      return InvalidArgument("the default has shape ", x.shape().ToString(),
                             ", but the attribute 'shape' is ", shape_.ToString());
    }
    context.set_output(0, x);
    return absl::OkStatus();
  }

 private:
  const PartialShape shape_;
};

// Shape, and ShapeN of several inputs.
class ShapeKernel final : public MetadataKernel {
 public:
  Status Compute(KernelContext& context) const override {
    for (int k = 0; k < context.num_inputs(); ++k) {
      const Shape& shape = context.input(k).shape();
      for (int i = 0; i < shape.rank(); ++i) {
        MR_RETURN_IF_ERROR(SetHostInt(context.output(k), i, shape[i]));
      }
    }
    return absl::OkStatus();
  }
};

// Where each input of a concatenation begins: 0, but along the axis.
class ConcatOffsetKernel final : public MetadataKernel {
 public:
  Status Compute(KernelContext& context) const override {
    MR_ASSIGN_OR_RETURN(const int64_t given, HostInt(context.input(0), "concat_dim"));
    MR_ASSIGN_OR_RETURN(const IntVector first, HostInts(context.input(1), "shape 0"));
    const int rank = static_cast<int>(first.size());
    MR_ASSIGN_OR_RETURN(const int axis, ResolveAxis(given, rank));
    int64_t offset = 0;
    for (int k = 0; k < context.num_outputs(); ++k) {
      MR_ASSIGN_OR_RETURN(const IntVector shape, HostInts(context.input(k + 1), "a shape"));
      bool fits = static_cast<int>(shape.size()) == rank;
      for (int i = 0; fits && i < rank; ++i) fits = i == axis || shape[i] == first[i];
      if (!fits) {
        return InvalidArgument("shape ", k, " (", absl::StrJoin(shape, ","),
                               ") does not fit shape 0 (", absl::StrJoin(first, ","), "), axis ",
                               axis, " aside");
      }
      for (int i = 0; i < rank; ++i) {
        MR_RETURN_IF_ERROR(SetHostInt(context.output(k), i, i == axis ? offset : 0));
      }
      if (!CheckedAdd(offset, shape[axis], &offset)) {
        return InvalidArgument("the extents along axis ", axis, " add up to too much");
      }
    }
    return absl::OkStatus();
  }
};

class SizeKernel final : public MetadataKernel {
 public:
  Status Compute(KernelContext& context) const override {
    return SetHostInt(context.output(0), 0, context.input(0).num_elements());
  }
};

class RankKernel final : public MetadataKernel {
 public:
  Status Compute(KernelContext& context) const override {
    return SetHostInt(context.output(0), 0, context.input(0).shape().rank());
  }
};

// Passes on the input's elements under `shape`.
Status OutputReshaped(KernelContext& context, absl::Span<const int64_t> dims) {
  const Tensor& x = context.input(0);
  MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  if (shape.num_elements() != x.num_elements()) {
    return InvalidArgument("a tensor of shape ", x.shape().ToString(), " has ", x.num_elements(),
                           " elements, but the shape ", shape.ToString(), " needs ",
                           shape.num_elements());
  }
  context.set_output(0, x.Reshaped(shape));
  return absl::OkStatus();
}

class ReshapeKernel final : public MetadataKernel {
 public:
  Status Compute(KernelContext& context) const override {
    MR_ASSIGN_OR_RETURN(IntVector dims, HostInts(context.input(1), "the new shape"));
    const int64_t total = context.input(0).num_elements();
    int open = -1;  // the dimension that is -1
    int64_t known = 1;
    for (size_t i = 0; i < dims.size(); ++i) {
      if (dims[i] == -1) {
        if (open >= 0) return InvalidArgument("only one extent of a new shape may be -1");
        open = static_cast<int>(i);
      } else if (dims[i] < 0) {
        return InvalidArgument("the new shape's extent ", i, " is ", dims[i]);
      } else if (dims[i] > 0 && known > total / dims[i] && total > 0) {
        return InvalidArgument("a tensor of shape ", context.input(0).shape().ToString(),
                               " is too small for the new shape");
      } else {
        known = total > 0 ? known * dims[i] : (dims[i] == 0 ? 0 : known);
      }
    }
    if (open >= 0) {
      if (total == 0) {
        // The open extent of an empty tensor: what is left of 0 elements.
        MR_ASSIGN_OR_RETURN(dims[open], OpenExtentOfEmpty(dims));
      } else if (known == 0 || total % known != 0) {
        return InvalidArgument("the -1 of the new shape cannot be solved: ", total,
                               " elements are no multiple of ", known);
      } else {
        dims[open] = total / known;
      }
    }
    return OutputReshaped(context, dims);
  }

 private:
  static StatusOr<int64_t> OpenExtentOfEmpty(absl::Span<const int64_t> dims) {
    for (int64_t d : dims) {
      if (d == 0) {
        return InvalidArgument("the -1 of the new shape may be any number, as another extent is 0");
      }
    }
    return 0;
  }
};

class ExpandDimsKernel final : public MetadataKernel {
 public:
  Status Compute(KernelContext& context) const override {
    const Shape& shape = context.input(0).shape();
    MR_ASSIGN_OR_RETURN(const int64_t given, HostInt(context.input(1), "the axis"));
    MR_ASSIGN_OR_RETURN(const int axis, ResolveAxis(given, shape.rank() + 1));
    IntVector dims(shape.dims().begin(), shape.dims().end());
    dims.insert(dims.begin() + axis, 1);
    return OutputReshaped(context, dims);
  }
};

class SqueezeKernel final : public MetadataKernel {
 public:
  explicit SqueezeKernel(std::vector<int64_t> axes) : axes_(std::move(axes)) {}

  static StatusOr<std::unique_ptr<Kernel>> Create(const KernelConstruction& c) {
    return std::unique_ptr<Kernel>(new SqueezeKernel(
        c.attrs.GetOr<std::vector<int64_t>>("squeeze_dims", std::vector<int64_t>())));
  }

  Status Compute(KernelContext& context) const override {
    const Shape& shape = context.input(0).shape();
    std::array<bool, kMaxRank> drop{};
    for (int64_t given : axes_) {
      MR_ASSIGN_OR_RETURN(const int axis, ResolveAxis(given, shape.rank()));
      if (shape[axis] != 1) {
        return InvalidArgument("axis ", given, " of ", shape.ToString(), " is not 1");
      }
      drop[axis] = true;
    }
    IntVector dims;
    for (int i = 0; i < shape.rank(); ++i) {
      if (axes_.empty() ? shape[i] != 1 : !drop[i]) dims.push_back(shape[i]);
    }
    return OutputReshaped(context, dims);
  }

 private:
  const std::vector<int64_t> axes_;
};

// The axes over which to sum the gradient of each operand of a broadcast.
class BroadcastGradientArgsKernel final : public MetadataKernel {
 public:
  Status Compute(KernelContext& context) const override {
    MR_ASSIGN_OR_RETURN(const IntVector a, HostInts(context.input(0), "shape 0"));
    MR_ASSIGN_OR_RETURN(const IntVector b, HostInts(context.input(1), "shape 1"));
    const int rank = static_cast<int>(std::max(a.size(), b.size()));
    IntVector axes[2];
    // Equal shapes need no sum.
    for (int i = 0; i < rank && a != b; ++i) {
      const int64_t in_a = Extent(a, i, rank);
      const int64_t in_b = Extent(b, i, rank);
      if (in_a != in_b && in_a != 1 && in_b != 1) {
        return InvalidArgument("extents ", in_a, " and ", in_b, " (axis ", i, ") do not broadcast");
      }
      // An axis of 1 in both is summed in both, as the public op does: it changes nothing.
      if (in_a == 1) axes[0].push_back(i);
      if (in_b == 1) axes[1].push_back(i);
    }
    const DType dtype = context.input(0).dtype();
    for (int k = 0; k < 2; ++k) {
      MR_RETURN_IF_ERROR(
          context.AllocateOutput(k, dtype, Shape({static_cast<int64_t>(axes[k].size())})));
      for (size_t i = 0; i < axes[k].size(); ++i) {
        MR_RETURN_IF_ERROR(SetHostInt(context.output(k), static_cast<int64_t>(i), axes[k][i]));
      }
    }
    return absl::OkStatus();
  }

 private:
  // At position i of the broadcast shape.
  static int64_t Extent(const IntVector& dims, int i, int rank) {
    const int j = i - (rank - static_cast<int>(dims.size()));
    return j < 0 ? 1 : dims[j];
  }
};

}  // namespace

void RegisterShapeKernels(KernelRegistry& registry) {
  registry.Add("Identity", "CPU", MakeKernel<IdentityKernel>);
  registry.Add("IdentityN", "CPU", MakeKernel<IdentityKernel>);
  registry.Add("StopGradient", "CPU", MakeKernel<IdentityKernel>);
  registry.Add("PlaceholderWithDefault", "CPU", MakeKernel<PlaceholderWithDefaultKernel>);
  registry.Add("PreventGradient", "CPU", MakeKernel<IdentityKernel>);
  registry.Add("Shape", "CPU", MakeKernel<ShapeKernel>);
  registry.Add("ShapeN", "CPU", MakeKernel<ShapeKernel>);
  registry.Add("ConcatOffset", "CPU", MakeKernel<ConcatOffsetKernel>);
  registry.Add("Size", "CPU", MakeKernel<SizeKernel>);
  registry.Add("Rank", "CPU", MakeKernel<RankKernel>);
  registry.Add("Reshape", "CPU", MakeKernel<ReshapeKernel>);
  registry.Add("ExpandDims", "CPU", MakeKernel<ExpandDimsKernel>);
  registry.Add("Squeeze", "CPU", SqueezeKernel::Create);
  registry.Add("BroadcastGradientArgs", "CPU", MakeKernel<BroadcastGradientArgsKernel>);
}

}  // namespace millrace
