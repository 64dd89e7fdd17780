#ifndef OPS_REGISTER_H_
#define OPS_REGISTER_H_

#include <memory>

#include "core/framework/op_def.h"

namespace millrace {

// Every op family; the only list of them.
void RegisterAllOps(OpRegistry& registry);

}  // namespace millrace

#endif  // OPS_REGISTER_H_
