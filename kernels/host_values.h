#ifndef KERNELS_HOST_VALUES_H_
#define KERNELS_HOST_VALUES_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "core/framework/kernel.h"

// Small integers that kernels read from tensors in host memory: shapes, axes, paddings.
namespace millrace {

using IntVector = absl::InlinedVector<int64_t, kMaxRank>;

// The elements of an int32 or int64 tensor; `what` names it in errors.
StatusOr<IntVector> HostInts(const Tensor& tensor, absl::string_view what);
// The one element.
StatusOr<int64_t> HostInt(const Tensor& tensor, absl::string_view what);
// A shape from the values of a tensor.
StatusOr<Shape> HostShape(const Tensor& tensor, absl::string_view what);
// `axis` counted from the front; InvalidArgument unless it is in [-rank, rank).
StatusOr<int> ResolveAxis(int64_t axis, int rank);

// Writes `value` to the int32 or int64 element i; InvalidArgument if an int32 cannot hold it.
Status SetHostInt(Tensor& tensor, int64_t i, int64_t value);

}  // namespace millrace

#endif  // KERNELS_HOST_VALUES_H_
