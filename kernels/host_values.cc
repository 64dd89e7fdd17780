#include "kernels/host_values.h"

#include <limits>

namespace millrace {

StatusOr<IntVector> HostInts(const Tensor& tensor, absl::string_view what) {
  const int64_t n = tensor.num_elements();
  IntVector values;
  if (tensor.dtype() == DType::kInt32) {
    const int32_t* data = tensor.data<int32_t>();
    values.assign(data, data + n);
  } else if (tensor.dtype() == DType::kInt64) {
    const int64_t* data = tensor.data<int64_t>();
    values.assign(data, data + n);
  } else {
    return InvalidArgument(what, " must be int32 or int64, not ", Name(tensor.dtype()));
  }
  return values;
}

StatusOr<int64_t> HostInt(const Tensor& tensor, absl::string_view what) {
  if (tensor.num_elements() != 1) {
    return InvalidArgument(what, " must be one number, but has shape ", tensor.shape().ToString());
  }
  MR_ASSIGN_OR_RETURN(IntVector values, HostInts(tensor, what));
  return values[0];
}

StatusOr<Shape> HostShape(const Tensor& tensor, absl::string_view what) {
  MR_ASSIGN_OR_RETURN(IntVector values, HostInts(tensor, what));
  StatusOr<Shape> shape = Shape::Create(values);
  if (!shape.ok()) return Annotate(shape.status(), what);
  return shape;
}

StatusOr<int> ResolveAxis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    return InvalidArgument("axis ", axis, " is not in [", -rank, ", ", rank,
                           "), the axes of a tensor of rank ", rank);
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Status SetHostInt(Tensor& tensor, int64_t i, int64_t value) {
  if (tensor.dtype() == DType::kInt64) {
    tensor.mutable_data<int64_t>()[i] = value;
    return absl::OkStatus();
  }
  if (tensor.dtype() != DType::kInt32) {
    return Internal("an integer for a tensor of ", Name(tensor.dtype()));
  }
  if (value > std::numeric_limits<int32_t>::max() || value < std::numeric_limits<int32_t>::min()) {
    return InvalidArgument(value, " does not fit int32; ask for int64");
  }
  tensor.mutable_data<int32_t>()[i] = static_cast<int32_t>(value);
  return absl::OkStatus();
}

}  // namespace millrace
