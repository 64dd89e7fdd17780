#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/register.h"

namespace millrace {
namespace {

// Adds `op` for all numbers that C++ has, and for the dtypes Ts.
template <template <typename> class F, typename... Ts>
void AddComparison(KernelRegistry& registry, absl::string_view op) {
  AddBinary<F, float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t,
            uint64_t, Ts...>(registry, op);
}

}  // namespace

void RegisterComparisonKernels(KernelRegistry& registry) {
  AddComparison<functor::Equal, bool>(registry, "Equal");
  AddComparison<functor::NotEqual, bool>(registry, "NotEqual");
  AddComparison<functor::Less>(registry, "Less");
  AddComparison<functor::LessEqual>(registry, "LessEqual");
  AddComparison<functor::Greater>(registry, "Greater");
  AddComparison<functor::GreaterEqual>(registry, "GreaterEqual");
  registry.Add("LogicalAnd", "CPU", MakeKernel<BinaryKernel<functor::LogicalAnd, bool, bool>>);
  registry.Add("LogicalOr", "CPU", MakeKernel<BinaryKernel<functor::LogicalOr, bool, bool>>);
}

}  // namespace millrace
