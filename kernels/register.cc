#include "kernels/register.h"

#include "kernels/cpu/register.h"
#include "kernels/cuda/register.h"

namespace millrace {

void RegisterAllKernels(KernelRegistry& registry) {
  RegisterUnaryKernels(registry);
  RegisterActivationKernels(registry);
  RegisterArithmeticKernels(registry);
  RegisterComparisonKernels(registry);
  RegisterCastKernels(registry);
  RegisterSelectKernels(registry);
  RegisterClipKernels(registry);
  RegisterReductionKernels(registry);
  RegisterArgExtremeKernels(registry);
  RegisterScanKernels(registry);
  RegisterMatMulKernels(registry);
  RegisterBatchMatMulKernels(registry);
  RegisterConvKernels(registry);
  RegisterDepthwiseConvKernels(registry);
  RegisterBatchNormKernels(registry);
  RegisterPoolKernels(registry);
  RegisterBiasKernels(registry);
  RegisterSoftmaxKernels(registry);
  RegisterConstantKernels(registry);
  RegisterShapeKernels(registry);
  RegisterMovementKernels(registry);
  RegisterJoinKernels(registry);
  RegisterStridedSliceKernels(registry);
  RegisterIndexKernels(registry);
  RegisterGatherKernels(registry);
  RegisterScatterKernels(registry);
  RegisterSetKernels(registry);
  RegisterStringKernels(registry);
  RegisterCheckKernels(registry);
  RegisterRandomKernels(registry);
  RegisterStateKernels(registry);
  RegisterUpdateKernels(registry);
  RegisterCommKernels(registry);

  RegisterCudaElementwiseKernels(registry);
}

}  // namespace millrace
