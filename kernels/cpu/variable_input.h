#ifndef KERNELS_CPU_VARIABLE_INPUT_H_
#define KERNELS_CPU_VARIABLE_INPUT_H_

#include "core/framework/kernel.h"
#include "core/framework/resource.h"

namespace millrace {

// The variable whose handle is input i; lives as long as the input.
inline StatusOr<Variable*> VariableInput(const KernelContext& context, int i) {
  const Tensor& handle = context.input(i);
  if (handle.dtype() != DType::kResource || handle.resource() == nullptr) {
    return InvalidArgument("input ", i, " is no handle of a variable");
  }
  auto* variable = dynamic_cast<Variable*>(handle.resource().get());
  if (variable == nullptr) {
    return InvalidArgument("input ", i, " is the handle of another kind of resource: ",
                           handle.resource()->DebugString());
  }
  return variable;
}

// The value of the variable whose handle is input i, which the node takes to be of `dtype`.
inline StatusOr<Tensor> ReadVariableInput(const KernelContext& context, int i, DType dtype) {
  MR_ASSIGN_OR_RETURN(Variable * variable, VariableInput(context, i));
  MR_ASSIGN_OR_RETURN(Tensor value, variable->Read());
  if (value.dtype() == dtype) return value;
  return InvalidArgument("variable '", variable->name(), "' is ", Name(value.dtype()),
                         ", but attribute 'dtype' is ", Name(dtype));
}

}  // namespace millrace

#endif  // KERNELS_CPU_VARIABLE_INPUT_H_
