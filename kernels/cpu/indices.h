#ifndef KERNELS_CPU_INDICES_H_
#define KERNELS_CPU_INDICES_H_

#include <vector>

#include "core/framework/tensor.h"

namespace millrace {

// Element i of an integer tensor of any of the index dtypes.
int64_t IndexAt(const Tensor& indices, int64_t i);

// InvalidArgument, naming the first one, if an element of `indices` is not in [0, extent).
Status CheckIndices(const Tensor& indices, int64_t extent);

// Which slice of a tensor of shape `whole` each row of `indices` names: its last dimension holds
// indices of the first dimensions of `whole`. Slices are counted row-major. InvalidArgument, naming
// index and dimension, for one out of range, and if `slices` (called `what`), where the slices go
// or come from, does not have as many elements as they. May be empty if the slices are.
StatusOr<std::vector<int64_t>> SlicesNamedBy(const Tensor& indices, const Shape& whole,
                                             const Shape& slices, absl::string_view what);

}  // namespace millrace

#endif  // KERNELS_CPU_INDICES_H_
