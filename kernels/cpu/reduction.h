#ifndef KERNELS_CPU_REDUCTION_H_
#define KERNELS_CPU_REDUCTION_H_

#include <cstdint>

#include "core/framework/kernel.h"

namespace millrace {

// out[outer, inner] = the sums over the middle of x[outer, reduced, inner], in an order that
// depends on the extents only.
Status SumMiddle(KernelContext& context, const float* x, int64_t outer, int64_t reduced,
                 int64_t inner, float* out);
Status SumMiddle(KernelContext& context, const double* x, int64_t outer, int64_t reduced,
                 int64_t inner, double* out);

}  // namespace millrace

#endif  // KERNELS_CPU_REDUCTION_H_
