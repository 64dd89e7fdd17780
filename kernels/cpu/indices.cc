#include "kernels/cpu/indices.h"

#include "core/base/checked_math.h"

namespace millrace {

int64_t IndexAt(const Tensor& indices, int64_t i) {
  switch (indices.dtype()) {
    case DType::kInt32:
      return indices.data<int32_t>()[i];
    case DType::kInt64:
      return indices.data<int64_t>()[i];
    case DType::kUint8:
      return indices.data<uint8_t>()[i];
    default:
      return indices.data<int8_t>()[i];
  }
}

Status CheckIndices(const Tensor& indices, int64_t extent) {
  for (int64_t i = 0; i < indices.num_elements(); ++i) {
    const int64_t index = IndexAt(indices, i);
    if (index < 0 || index >= extent) {
      return InvalidArgument("index ", index, " (element ", i, " of indices) is not in [0, ",
                             extent, ")");
    }
  }
  return absl::OkStatus();
}

StatusOr<std::vector<int64_t>> SlicesNamedBy(const Tensor& indices, const Shape& whole,
                                             const Shape& slices, absl::string_view what) {
  const Shape& shape = indices.shape();
  const int64_t depth = shape.rank() == 0 ? 0 : shape[shape.rank() - 1];
  if (shape.rank() == 0 || depth > whole.rank()) {
    return InvalidArgument("indices ", shape.ToString(),
                           " do not name slices of a tensor of shape ", whole.ToString());
  }
  int64_t count = 1, inner = 1, elements = 0;  // not by division: depth may be 0
  for (int i = 0; i + 1 < shape.rank(); ++i) count *= shape[i];
  for (int i = static_cast<int>(depth); i < whole.rank(); ++i) inner *= whole[i];
  if (!CheckedMul(count, inner, &elements) || elements != slices.num_elements()) {
    return InvalidArgument(what, " has shape ", slices.ToString(), ", but indices ",
                           shape.ToString(), " of ", whole.ToString(), " ask for ", count,
                           " slices of ", inner, " elements");
  }
  // Indices of no dimension take no memory, so that more of them may be there than memory holds.
  if (depth == 0 && inner == 0) return std::vector<int64_t>();
  std::vector<int64_t> named(count, 0);
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t k = 0; k < depth; ++k) {
      const int64_t index = IndexAt(indices, i * depth + k);
      const int64_t extent = whole[static_cast<int>(k)];
      if (index < 0 || index >= extent) {
        return InvalidArgument("index ", index, " (of row ", i, " of indices, for dimension ", k,
                               ") is not in [0, ", extent, ")");
      }
      named[i] = named[i] * extent + index;
    }
  }
  return named;
}

}  // namespace millrace
