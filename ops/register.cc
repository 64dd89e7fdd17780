#include "ops/register.h"

#include "ops/array_ops.h"
#include "ops/comm_ops.h"
#include "ops/math_ops.h"
#include "ops/nn_ops.h"
#include "ops/state_ops.h"

namespace millrace {

void RegisterAllOps(OpRegistry& registry) {
  RegisterArrayOps(registry);
  RegisterMathOps(registry);
  RegisterNnOps(registry);
  RegisterStateOps(registry);
  RegisterCommOps(registry);
}

}  // namespace millrace
