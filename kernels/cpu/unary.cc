#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/register.h"

namespace millrace {

void RegisterUnaryKernels(KernelRegistry& registry) {
  AddUnary<functor::Neg, float, double, int8_t, int16_t, int32_t, int64_t>(registry, "Neg");
  AddUnary<functor::Abs, float, double, int8_t, int16_t, int32_t, int64_t>(registry, "Abs");
  AddUnary<functor::Sign, float, double, int8_t, int16_t, int32_t, int64_t>(registry, "Sign");
  AddUnary<functor::Square, float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t,
           uint32_t, uint64_t>(registry, "Square");
  AddUnary<functor::Sqrt, float, double>(registry, "Sqrt");
  AddUnary<functor::Rsqrt, float, double>(registry, "Rsqrt");
  for (const char* op : {"Reciprocal", "Inv"}) {
    AddUnary<functor::Reciprocal, float, double>(registry, op);
  }
  AddUnary<functor::Exp, float, double>(registry, "Exp");
  AddUnary<functor::Log, float, double>(registry, "Log");
  AddUnary<functor::Tanh, float, double>(registry, "Tanh");
  AddUnary<functor::Sigmoid, float, double>(registry, "Sigmoid");
  AddUnary<functor::Expm1, float, double>(registry, "Expm1");
  AddUnary<functor::Log1p, float, double>(registry, "Log1p");
  AddUnary<functor::Erf, float, double>(registry, "Erf");
  AddUnary<functor::IsFinite, float, double>(registry, "IsFinite");
  AddUnary<functor::IsNan, float, double>(registry, "IsNan");
  AddUnary<functor::IsInf, float, double>(registry, "IsInf");
  registry.Add("LogicalNot", "CPU", MakeKernel<UnaryKernel<functor::LogicalNot, bool, bool>>);
}

}  // namespace millrace
