#include "ops/nn_ops.h"

#include "ops/op_families.h"

namespace millrace {

void RegisterNnOps(OpRegistry& registry) {
  RegisterBiasOps(registry);
  RegisterConvOps(registry);
  RegisterDepthwiseConvOps(registry);
  RegisterBatchNormOps(registry);
  RegisterPoolOps(registry);
  RegisterSoftmaxOps(registry);
}

}  // namespace millrace
