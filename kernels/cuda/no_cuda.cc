#include "kernels/cuda/register.h"

namespace millrace {

void RegisterCudaElementwiseKernels(KernelRegistry&) {}

}  // namespace millrace
