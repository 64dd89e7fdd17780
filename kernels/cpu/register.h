#ifndef KERNELS_CPU_REGISTER_H_
#define KERNELS_CPU_REGISTER_H_

#include "core/framework/kernel.h"

// The kernel families of the CPU, each a file of its name.
namespace millrace {

void RegisterUnaryKernels(KernelRegistry& registry);
void RegisterActivationKernels(KernelRegistry& registry);
void RegisterArithmeticKernels(KernelRegistry& registry);
void RegisterComparisonKernels(KernelRegistry& registry);
void RegisterCastKernels(KernelRegistry& registry);
void RegisterSelectKernels(KernelRegistry& registry);
void RegisterClipKernels(KernelRegistry& registry);
void RegisterReductionKernels(KernelRegistry& registry);
void RegisterArgExtremeKernels(KernelRegistry& registry);
void RegisterScanKernels(KernelRegistry& registry);
void RegisterMatMulKernels(KernelRegistry& registry);
void RegisterBatchMatMulKernels(KernelRegistry& registry);
void RegisterConvKernels(KernelRegistry& registry);
void RegisterDepthwiseConvKernels(KernelRegistry& registry);
void RegisterBatchNormKernels(KernelRegistry& registry);
void RegisterPoolKernels(KernelRegistry& registry);
void RegisterBiasKernels(KernelRegistry& registry);
void RegisterSoftmaxKernels(KernelRegistry& registry);
void RegisterConstantKernels(KernelRegistry& registry);
void RegisterShapeKernels(KernelRegistry& registry);
void RegisterMovementKernels(KernelRegistry& registry);
void RegisterJoinKernels(KernelRegistry& registry);
void RegisterStridedSliceKernels(KernelRegistry& registry);
void RegisterIndexKernels(KernelRegistry& registry);
void RegisterGatherKernels(KernelRegistry& registry);
void RegisterScatterKernels(KernelRegistry& registry);
void RegisterSetKernels(KernelRegistry& registry);
void RegisterStringKernels(KernelRegistry& registry);
void RegisterCheckKernels(KernelRegistry& registry);
void RegisterRandomKernels(KernelRegistry& registry);
void RegisterStateKernels(KernelRegistry& registry);
void RegisterUpdateKernels(KernelRegistry& registry);
void RegisterCommKernels(KernelRegistry& registry);

}  // namespace millrace

#endif  // KERNELS_CPU_REGISTER_H_
