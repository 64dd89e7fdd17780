#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/register.h"

namespace millrace {

void RegisterComparisonKernels(KernelRegistry& registry) {
  AddBinary<functor::Equal, float, double, int32_t, int64_t, uint8_t, int8_t, bool>(registry,
                                                                                    "Equal");
  AddBinary<functor::NotEqual, float, double, int32_t, int64_t, uint8_t, int8_t, bool>(registry,
                                                                                       "NotEqual");
  AddBinary<functor::Less, float, double, int32_t, int64_t, uint8_t, int8_t>(registry, "Less");
  AddBinary<functor::LessEqual, float, double, int32_t, int64_t, uint8_t, int8_t>(registry,
                                                                                  "LessEqual");
  AddBinary<functor::Greater, float, double, int32_t, int64_t, uint8_t, int8_t>(registry,
                                                                                "Greater");
  AddBinary<functor::GreaterEqual, float, double, int32_t, int64_t, uint8_t, int8_t>(
      registry, "GreaterEqual");
  registry.Add("LogicalAnd", "CPU", MakeKernel<BinaryKernel<functor::LogicalAnd, bool, bool>>);
  registry.Add("LogicalOr", "CPU", MakeKernel<BinaryKernel<functor::LogicalOr, bool, bool>>);
}

}  // namespace millrace
