#include "ops/array_ops.h"

#include "ops/op_families.h"

namespace millrace {

void RegisterArrayOps(OpRegistry& registry) {
  RegisterSourceOps(registry);
  RegisterIdentityOps(registry);
  RegisterShapeOps(registry);
  RegisterMovementOps(registry);
  RegisterJoinOps(registry);
  RegisterStridedSliceOps(registry);
  RegisterRepeatOps(registry);
  RegisterIndexOps(registry);
  RegisterScatterOps(registry);
  RegisterSetOps(registry);
  RegisterStringOps(registry);
  RegisterCheckOps(registry);
  RegisterRandomOps(registry);
}

}  // namespace millrace
