#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/register.h"
#include "kernels/cpu/string_output.h"
#include "kernels/host_values.h"

// Tensors joined along an axis, and split again: blocks of memory that lie beside each other in the
// joined tensor, row after row.
namespace millrace {
namespace {

// How a tensor is cut along an axis: `rows` times the parts one after the other. A part has its
// extent times `inner` elements in each row.
struct Rows {
  int64_t rows = 1;
  int64_t inner = 1;

  static Rows Along(const Shape& joined, int axis) {
    Rows rows;
    for (int i = 0; i < axis; ++i) rows.rows *= joined[i];
    for (int i = axis + 1; i < joined.rank(); ++i) rows.inner *= joined[i];
    return rows;
  }
};

// Calls copy(part, in_part, in_joined, n) for all blocks of n elements, in parallel by rows.
// `extents`: of the parts along the axis.
void ForBlocks(
    KernelContext& context, const Rows& rows, const IntVector& extents,
    absl::FunctionRef<void(size_t part, int64_t in_part, int64_t in_joined, int64_t n)> copy) {
  int64_t row = 0;
  for (const int64_t extent : extents) row += extent * rows.inner;
  if (row == 0) return;
  ParallelRange(context, rows.rows, std::max<int64_t>(1, kElementsPerTask / row),
                [&](int64_t begin, int64_t end) {
                  int64_t at = 0;
                  for (size_t part = 0; part < extents.size(); ++part) {
                    const int64_t n = extents[part] * rows.inner;
                    for (int64_t i = begin; n > 0 && i < end; ++i) {
                      copy(part, i * n, i * row + at, n);
                    }
                    at += n;
                  }
                });
}

// Joins `inputs` to output 0 of shape `joined`; extents[i]: of input i along the axis.
Status Join(KernelContext& context, const Shape& joined, int axis, const IntVector& extents) {
  Tensor& out = context.output(0);
  const Rows rows = Rows::Along(joined, axis);
  const DType dtype = context.input(0).dtype();
  if (dtype == DType::kString) {
    std::vector<absl::string_view> strings(joined.num_elements());
    ForBlocks(context, rows, extents, [&](size_t part, int64_t from, int64_t to, int64_t n) {
      const Tensor& x = context.input(static_cast<int>(part));
      for (int64_t i = 0; i < n; ++i) strings[to + i] = x.string(from + i);
    });
    return OutputStrings(context, 0, joined, [&](int64_t i) { return strings[i]; });
  }
  const auto size = static_cast<int64_t>(SizeOf(dtype));
  if (size == 0) return Unimplemented("no joining of ", Name(dtype), " tensors");
  char* const data = static_cast<char*>(out.mutable_raw_data());
  ForBlocks(context, rows, extents, [&](size_t part, int64_t from, int64_t to, int64_t n) {
    const Tensor& x = context.input(static_cast<int>(part));
    std::memcpy(data + to * size, static_cast<const char*>(x.raw_data()) + from * size, n * size);
  });
  return absl::OkStatus();
}

// The opposite: `joined` to all outputs, of shapes `shapes`.
Status Cut(KernelContext& context, const Tensor& joined, int axis, const IntVector& extents,
           const std::vector<Shape>& shapes) {
  const Rows rows = Rows::Along(joined.shape(), axis);
  if (joined.dtype() == DType::kString) {
    std::vector<std::vector<absl::string_view>> strings(extents.size());
    for (size_t i = 0; i < extents.size(); ++i) {
      strings[i].resize(rows.rows * extents[i] * rows.inner);
    }
    ForBlocks(context, rows, extents, [&](size_t part, int64_t to, int64_t from, int64_t n) {
      for (int64_t i = 0; i < n; ++i) strings[part][to + i] = joined.string(from + i);
    });
    for (size_t i = 0; i < extents.size(); ++i) {
      MR_RETURN_IF_ERROR(OutputStrings(context, static_cast<int>(i), shapes[i],
                                       [&](int64_t k) { return strings[i][k]; }));
    }
    return absl::OkStatus();
  }
  const auto size = static_cast<int64_t>(SizeOf(joined.dtype()));
  if (size == 0) return Unimplemented("no splitting of ", Name(joined.dtype()), " tensors");
  const char* const data = static_cast<const char*>(joined.raw_data());
  ForBlocks(context, rows, extents, [&](size_t part, int64_t to, int64_t from, int64_t n) {
    char* const out = static_cast<char*>(context.output(static_cast<int>(part)).mutable_raw_data());
    std::memcpy(out + to * size, data + from * size, n * size);
  });
  return absl::OkStatus();
}

// Outputs of strings are not allocated before the kernel runs, so that their shapes are kept here.
struct OutputShapes final : PreparedShapes {
  explicit OutputShapes(absl::Span<const Shape> s) : shapes(s.begin(), s.end()) {}
  std::vector<Shape> shapes;
};

class JoiningKernel : public Kernel {
 public:
  StatusOr<std::unique_ptr<PreparedShapes>> Prepare(const PrepareContext& c) const final {
    return std::unique_ptr<PreparedShapes>(std::make_unique<OutputShapes>(c.outputs));
  }

 protected:
  static const std::vector<Shape>& Outputs(const KernelContext& context) {
    return context.prepared<OutputShapes>().shapes;
  }
};

class ConcatKernel final : public JoiningKernel {
 public:
  Status Compute(KernelContext& context) const override {
    const int n = context.num_inputs() - 1;
    const Shape& shape = Outputs(context)[0];
    MR_ASSIGN_OR_RETURN(const int64_t given, HostInt(context.input(n), "the axis"));
    MR_ASSIGN_OR_RETURN(const int axis, ResolveAxis(given, shape.rank()));
    int64_t total = 0;
    IntVector extents;
    for (int k = 0; k < n; ++k) {
      const Shape& own = context.input(k).shape();
      bool fits = own.rank() == shape.rank();
      for (int i = 0; fits && i < own.rank(); ++i) fits = i == axis || own[i] == shape[i];
      if (!fits) {
        return InvalidArgument("input ", k, " of shape ", own.ToString(),
                               " is no part of an output of shape ", shape.ToString(),
                               " along axis ", axis);
      }
      extents.push_back(own[axis]);
      total += own[axis];
    }
    if (total != shape[axis]) {
      return InvalidArgument("the inputs have ", total, " along axis ", axis,
                             ", but the output has ", shape[axis]);
    }
    return Join(context, shape, axis, extents);
  }
};

// Base of those with an attribute `axis`.
class AxisKernel : public JoiningKernel {
 public:
  explicit AxisKernel(const KernelConstruction& c) : axis_(c.attrs.GetOr<int64_t>("axis", 0)) {}

 protected:
  const int64_t axis_;
};

class PackKernel final : public AxisKernel {
 public:
  using AxisKernel::AxisKernel;
  Status Compute(KernelContext& context) const override {
    const Shape& each = context.input(0).shape();
    const Shape& shape = Outputs(context)[0];
    MR_ASSIGN_OR_RETURN(const int axis, ResolveAxis(axis_, each.rank() + 1));
    for (int k = 1; k < context.num_inputs(); ++k) {
      if (context.input(k).shape() == each) continue;
      return InvalidArgument("input ", k, " has shape ", context.input(k).shape().ToString(),
                             ", but input 0 has ", each.ToString());
    }
    return Join(context, shape, axis, IntVector(context.num_inputs(), 1));
  }
};

class UnpackKernel final : public AxisKernel {
 public:
  using AxisKernel::AxisKernel;
  Status Compute(KernelContext& context) const override {
    const Tensor& x = context.input(0);
    MR_ASSIGN_OR_RETURN(const int axis, ResolveAxis(axis_, x.shape().rank()));
    if (x.shape()[axis] != context.num_outputs()) {
      return InvalidArgument("axis ", axis, " of the input ", x.shape().ToString(), " has extent ",
                             x.shape()[axis], ", but num is ", context.num_outputs());
    }
    return Cut(context, x, axis, IntVector(context.num_outputs(), 1), Outputs(context));
  }
};

// Split and SplitV: the shapes of the outputs have been inferred from the operands.
class SplitKernel final : public JoiningKernel {
 public:
  SplitKernel(int value, int axis_operand) : value_(value), axis_operand_(axis_operand) {}

  Status Compute(KernelContext& context) const override {
    const Tensor& x = context.input(value_);
    MR_ASSIGN_OR_RETURN(const int64_t given, HostInt(context.input(axis_operand_), "split_dim"));
    MR_ASSIGN_OR_RETURN(const int axis, ResolveAxis(given, x.shape().rank()));
    IntVector extents;
    int64_t total = 0;
    for (int k = 0; k < context.num_outputs(); ++k) {
      extents.push_back(Outputs(context)[k][axis]);
      total += extents.back();
    }
    if (total != x.shape()[axis]) {
      return InvalidArgument("the parts have ", total, " along axis ", axis, " of ",
                             x.shape().ToString());
    }
    return Cut(context, x, axis, extents, Outputs(context));
  }

 private:
  const int value_;
  const int axis_operand_;
};

template <int value, int axis_operand>
StatusOr<std::unique_ptr<Kernel>> MakeSplit(const KernelConstruction&) {
  return std::unique_ptr<Kernel>(std::make_unique<SplitKernel>(value, axis_operand));
}

}  // namespace

void RegisterJoinKernels(KernelRegistry& registry) {
  registry.Add("ConcatV2", "CPU", MakeKernel<ConcatKernel>);
  registry.Add("Pack", "CPU", MakeKernel<PackKernel>);
  registry.Add("Unpack", "CPU", MakeKernel<UnpackKernel>);
  registry.Add("Split", "CPU", MakeSplit<1, 0>);
  registry.Add("SplitV", "CPU", MakeSplit<0, 2>);
}

}  // namespace millrace
