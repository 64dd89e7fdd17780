#ifndef KERNELS_CUDA_REGISTER_H_
#define KERNELS_CUDA_REGISTER_H_

#include "core/framework/kernel.h"

// The kernel families of CUDA devices; none of them in a build without CUDA.
namespace millrace {

void RegisterCudaElementwiseKernels(KernelRegistry& registry);

}  // namespace millrace

#endif  // KERNELS_CUDA_REGISTER_H_
