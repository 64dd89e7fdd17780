#ifndef OPS_SHAPE_FUNCTIONS_H_
#define OPS_SHAPE_FUNCTIONS_H_

#include <optional>
#include <string>
#include <vector>

#include "core/framework/op_def.h"

// What the shape functions of several families share.
namespace millrace {

// The elements of an int32 or int64 tensor of any rank, row-major; none if `tensor` is null (not
// known yet) or of another dtype.
std::optional<std::vector<int64_t>> IntElements(const Tensor* tensor);
// The same for a host operand that holds one integer, as an axis does.
std::optional<int64_t> IntElement(const Tensor* tensor);

// `axis` counted from 0, for one that may count from the end.
StatusOr<int> NormalizeAxis(int64_t axis, int rank);
// Axes counted from 0 and sorted; an axis named twice is an error.
StatusOr<std::vector<int>> NormalizeAxes(absl::Span<const int64_t> axes, int rank);

// All extents unknown. `rank` out of range gives an unknown rank.
PartialShape UnknownOfRank(int rank);
// The extents of `shape`, to change some.
std::vector<int64_t> Extents(const PartialShape& shape);
// Product of the extents [begin, end); unknown if one is unknown or it overflows.
std::optional<int64_t> Product(const PartialShape& shape, int begin, int end);
std::optional<int64_t> NumElements(const PartialShape& shape);

// Input i is a scalar; `what` names it in the error.
Status CheckScalar(const ShapeContext& c, int i, absl::string_view what);
// Input i is a vector (or, as the public ops allow for axes, a scalar).
Status CheckVectorOrScalar(const ShapeContext& c, int i, absl::string_view what);
// The full shape that host operand i asks for: no extent may be negative. Unknown extents while the
// operand is not known.
StatusOr<PartialShape> ShapeOperand(const ShapeContext& c, int i, absl::string_view what);

// Output 0 has the shape that inputs 0 and 1 both have.
Status EqualShapes(ShapeContext& c);

// Sets output i; the error of `shape` passes through.
Status SetOutput(ShapeContext& c, int i, StatusOr<PartialShape> shape);

// Bytes of all inputs and outputs, outputs counted in the dtype of input `like`; unknown extents
// count as 1.
double TouchedBytes(const ShapeContext& c, int like = 0);
// Elements; unknown extents count as 1.
double Elements(const PartialShape& shape);

}  // namespace millrace

#endif  // OPS_SHAPE_FUNCTIONS_H_
