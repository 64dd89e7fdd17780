#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/register.h"

namespace millrace {

void RegisterUnaryKernels(KernelRegistry& registry) {
  AddUnary<functor::Neg, float, double, int32_t, int64_t>(registry, "Neg");
  AddUnary<functor::Abs, float, double, int32_t, int64_t>(registry, "Abs");
  AddUnary<functor::Sign, float, double, int32_t, int64_t>(registry, "Sign");
  AddUnary<functor::Square, float, double, int32_t, int64_t>(registry, "Square");
  AddUnary<functor::Sqrt, float, double>(registry, "Sqrt");
  AddUnary<functor::Rsqrt, float, double>(registry, "Rsqrt");
  AddUnary<functor::Reciprocal, float, double>(registry, "Reciprocal");
  AddUnary<functor::Exp, float, double>(registry, "Exp");
  AddUnary<functor::Log, float, double>(registry, "Log");
  AddUnary<functor::Tanh, float, double>(registry, "Tanh");
  AddUnary<functor::Sigmoid, float, double>(registry, "Sigmoid");
  AddUnary<functor::Relu, float, double, int32_t, int64_t>(registry, "Relu");
  AddUnary<functor::IsFinite, float, double>(registry, "IsFinite");
  registry.Add("LogicalNot", "CPU", MakeKernel<UnaryKernel<functor::LogicalNot, bool, bool>>);
}

}  // namespace millrace
