#include "ops/shape_functions.h"

#include <algorithm>

#include "core/base/checked_math.h"

namespace millrace {

std::optional<std::vector<int64_t>> IntElements(const Tensor* tensor) {
  if (tensor == nullptr) return std::nullopt;
  if (tensor->dtype() == DType::kInt32) {
    const auto values = tensor->span<int32_t>();
    return std::vector<int64_t>(values.begin(), values.end());
  }
  if (tensor->dtype() == DType::kInt64) {
    const auto values = tensor->span<int64_t>();
    return std::vector<int64_t>(values.begin(), values.end());
  }
  return std::nullopt;
}

std::optional<int64_t> IntElement(const Tensor* tensor) {
  if (tensor == nullptr || tensor->num_elements() != 1) return std::nullopt;
  auto values = IntElements(tensor);
  if (!values) return std::nullopt;
  return values->front();
}

StatusOr<int> NormalizeAxis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    return InvalidArgument("axis ", axis, " is out of range for rank ", rank);
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

StatusOr<std::vector<int>> NormalizeAxes(absl::Span<const int64_t> axes, int rank) {
  std::vector<int> normal;
  for (int64_t axis : axes) {
    MR_ASSIGN_OR_RETURN(int a, NormalizeAxis(axis, rank));
    normal.push_back(a);
  }
  std::sort(normal.begin(), normal.end());
  const auto twice = std::adjacent_find(normal.begin(), normal.end());
  if (twice != normal.end()) return InvalidArgument("axis ", *twice, " is named twice");
  return normal;
}

PartialShape UnknownOfRank(int rank) {
  if (rank < 0 || rank > kMaxRank) return PartialShape();
  const std::vector<int64_t> dims(rank, PartialShape::kUnknown);
  auto shape = PartialShape::Create(dims);
  return shape.ok() ? *shape : PartialShape();
}

std::vector<int64_t> Extents(const PartialShape& shape) {
  return std::vector<int64_t>(shape.dims().begin(), shape.dims().end());
}

std::optional<int64_t> Product(const PartialShape& shape, int begin, int end) {
  int64_t product = 1;
  for (int i = begin; i < end; ++i) {
    if (!shape.dim_known(i) || !CheckedMul(product, shape.dim(i), &product)) return std::nullopt;
  }
  return product;
}

std::optional<int64_t> NumElements(const PartialShape& shape) {
  if (!shape.has_rank()) return std::nullopt;
  return Product(shape, 0, shape.rank());
}

Status CheckScalar(const ShapeContext& c, int i, absl::string_view what) {
  const PartialShape& shape = c.input(i);
  if (!shape.has_rank() || shape.rank() == 0) return absl::OkStatus();
  return InvalidArgument(what, " must be a scalar, but has shape ", shape.ToString());
}

Status CheckVectorOrScalar(const ShapeContext& c, int i, absl::string_view what) {
  const PartialShape& shape = c.input(i);
  if (!shape.has_rank() || shape.rank() <= 1) return absl::OkStatus();
  return InvalidArgument(what, " must be a vector or a scalar, but has shape ", shape.ToString());
}

StatusOr<PartialShape> ShapeOperand(const ShapeContext& c, int i, absl::string_view what) {
  const PartialShape& own = c.input(i);
  if (own.has_rank() && own.rank() != 1) {
    return InvalidArgument(what, " must be a vector, but has shape ", own.ToString());
  }
  if (const auto values = IntElements(c.host_value(i))) {
    for (int64_t extent : *values) {
      if (extent < 0) return InvalidArgument(what, " has a negative extent: ", extent);
    }
    return PartialShape::Create(*values);
  }
  if (!own.has_rank() || !own.dim_known(0)) return PartialShape();
  if (own.dim(0) > kMaxRank) {
    return InvalidArgument(what, " has ", own.dim(0), " extents, but at most ", kMaxRank,
                           " dimensions are supported");
  }
  return UnknownOfRank(static_cast<int>(own.dim(0)));
}

Status EqualShapes(ShapeContext& c) {
  auto merged = c.input(0).MergeWith(c.input(1));
  if (!merged.ok()) {
    return InvalidArgument("the inputs must have one shape, but have ", c.input(0).ToString(),
                           " and ", c.input(1).ToString());
  }
  return SetOutput(c, 0, merged);
}

Status SetOutput(ShapeContext& c, int i, StatusOr<PartialShape> shape) {
  if (!shape.ok()) return shape.status();
  c.set_output(i, *shape);
  return absl::OkStatus();
}

double Elements(const PartialShape& shape) {
  double elements = 1;
  for (int64_t extent : shape.dims()) elements *= extent < 0 ? 1.0 : static_cast<double>(extent);
  return elements;
}

double TouchedBytes(const ShapeContext& c, int like) {
  double bytes = 0;
  for (int i = 0; i < c.num_inputs(); ++i) {
    bytes += Elements(c.input(i)) * static_cast<double>(SizeOf(c.input_dtype(i)));
  }
  if (like >= c.num_inputs()) return bytes;
  for (const PartialShape& output : c.outputs()) {
    bytes += Elements(output) * static_cast<double>(SizeOf(c.input_dtype(like)));
  }
  return bytes;
}

}  // namespace millrace
