#include "core/framework/shape_context.h"

#include <algorithm>

namespace millrace {
namespace {

template <typename T>
std::vector<int64_t> ToInts(const Tensor& tensor) {
  const auto values = tensor.span<T>();
  return std::vector<int64_t>(values.begin(), values.end());
}

}  // namespace

StatusOr<PartialShape> ShapeContext::WithRank(int i, int rank) const {
  const PartialShape& shape = input(i);
  if (!shape.has_rank()) {
    return PartialShape::Create(std::vector<int64_t>(rank, PartialShape::kUnknown));
  }
  if (shape.rank() == rank) return shape;
  return InvalidArgument("input ", i, " has shape ", shape.ToString(), ", but rank ", rank,
                         " is needed");
}

StatusOr<std::vector<int64_t>> ShapeContext::HostInts(int i) const {
  const Tensor* value = host_value(i);
  if (value == nullptr) return NotFound("the value of input ", i, " is not known");
  if (value->shape().rank() > 1) {
    return InvalidArgument("input ", i, " has shape ", value->shape().ToString(),
                           ", but must be a scalar or a vector");
  }
  if (value->dtype() == DType::kInt32) return ToInts<int32_t>(*value);
  if (value->dtype() == DType::kInt64) return ToInts<int64_t>(*value);
  return InvalidArgument("input ", i, " is ", Name(value->dtype()), ", but must be int32 or int64");
}

StatusOr<PartialShape> ShapeContext::ShapeFromHostInput(int i) const {
  const Tensor* value = host_value(i);
  if (value == nullptr) {
    const PartialShape& shape = input(i);
    if (!shape.has_rank()) return PartialShape();
    if (shape.rank() != 1) {
      return InvalidArgument("input ", i, " has shape ", shape.ToString(),
                             ", but must be a vector that holds a shape");
    }
    if (!shape.dim_known(0)) return PartialShape();
    if (shape.dim(0) > kMaxRank) {
      return InvalidArgument("input ", i, " is a shape of rank ", shape.dim(0), ", more than the ",
                             kMaxRank, " dimensions that are supported");
    }
    return PartialShape::Create(std::vector<int64_t>(shape.dim(0), PartialShape::kUnknown));
  }
  MR_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, HostInts(i));
  if (value->shape().rank() == 0) {
    if (dims[0] == PartialShape::kUnknown) return PartialShape();
    return InvalidArgument("input ", i, " is the scalar ", dims[0],
                           ", but must be a vector that holds a shape");
  }
  for (int64_t dim : dims) {
    if (dim < PartialShape::kUnknown) {
      return InvalidArgument("input ", i, " is a shape with the extent ", dim);
    }
  }
  StatusOr<PartialShape> shape = PartialShape::Create(dims);
  if (!shape.ok()) return Annotate(shape.status(), StrCat("input ", i));
  return shape;
}

Status ShapeOfInput0(ShapeContext& c) {
  if (c.num_inputs() < 1) return InvalidArgument("there is no input");
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, c.input(0));
  return absl::OkStatus();
}

Status ScalarShape(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, Shape());
  return absl::OkStatus();
}

Status BroadcastShape(ShapeContext& c) {
  if (c.num_inputs() < 2 || c.num_outputs() < 1) {
    return InvalidArgument("two inputs and an output are needed");
  }
  MR_ASSIGN_OR_RETURN(const PartialShape shape, BroadcastShapes(c.input(0), c.input(1)));
  c.set_output(0, shape);
  return absl::OkStatus();
}

Status UnknownShape(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, PartialShape());
  return absl::OkStatus();
}

Status NoOutputs(ShapeContext&) { return absl::OkStatus(); }

}  // namespace millrace
