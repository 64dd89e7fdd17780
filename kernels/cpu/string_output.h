#ifndef KERNELS_CPU_STRING_OUTPUT_H_
#define KERNELS_CPU_STRING_OUTPUT_H_

#include "absl/functional/function_ref.h"
#include "core/framework/kernel.h"

namespace millrace {

// Makes output `output`, for which the executor allocates nothing, strings of that shape; text(i)
// is element i, and is asked for twice. ResourceExhausted if the device has no memory for them: the
// shape may be that of a broadcast, and far larger than all inputs.
Status OutputStrings(KernelContext& context, int output, const Shape& shape,
                     absl::FunctionRef<absl::string_view(int64_t i)> text);

}  // namespace millrace

#endif  // KERNELS_CPU_STRING_OUTPUT_H_
