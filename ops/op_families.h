#ifndef OPS_OP_FAMILIES_H_
#define OPS_OP_FAMILIES_H_

#include "core/framework/op_def.h"

// The parts that the families of the public headers are made of, one a file.
namespace millrace {

// Of RegisterMathOps.
void RegisterUnaryOps(OpRegistry& registry);
void RegisterUnaryGradientOps(OpRegistry& registry);
void RegisterActivationOps(OpRegistry& registry);
void RegisterBinaryOps(OpRegistry& registry);
void RegisterComparisonOps(OpRegistry& registry);
void RegisterChoiceOps(OpRegistry& registry);
void RegisterReductionOps(OpRegistry& registry);
void RegisterScanOps(OpRegistry& registry);
void RegisterMatMulOps(OpRegistry& registry);
void RegisterBatchMatMulOps(OpRegistry& registry);

// Of RegisterArrayOps.
void RegisterSourceOps(OpRegistry& registry);
void RegisterIdentityOps(OpRegistry& registry);
void RegisterShapeOps(OpRegistry& registry);
void RegisterMovementOps(OpRegistry& registry);
void RegisterJoinOps(OpRegistry& registry);
void RegisterStridedSliceOps(OpRegistry& registry);
void RegisterRepeatOps(OpRegistry& registry);
void RegisterIndexOps(OpRegistry& registry);
void RegisterScatterOps(OpRegistry& registry);
void RegisterSetOps(OpRegistry& registry);
void RegisterStringOps(OpRegistry& registry);
void RegisterCheckOps(OpRegistry& registry);
void RegisterRandomOps(OpRegistry& registry);

// Of RegisterNnOps.
void RegisterBiasOps(OpRegistry& registry);
void RegisterConvOps(OpRegistry& registry);
void RegisterDepthwiseConvOps(OpRegistry& registry);
void RegisterBatchNormOps(OpRegistry& registry);
void RegisterPoolOps(OpRegistry& registry);
void RegisterSoftmaxOps(OpRegistry& registry);

}  // namespace millrace

#endif  // OPS_OP_FAMILIES_H_
