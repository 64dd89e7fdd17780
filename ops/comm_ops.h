#ifndef OPS_COMM_OPS_H_
#define OPS_COMM_OPS_H_

#include "core/framework/op_def.h"

// Communication: what the partitioner inserts. Users do not call these.
namespace millrace {

// _Send(tensor: T) {T, channel, tensor_name, send_device, recv_device}
// _Recv() -> tensor: tensor_type {tensor_type, shape, channel, tensor_name, send_device,
// recv_device}. `channel` is the dense channel id; a control edge travels as an empty uint8 tensor.
void RegisterCommOps(OpRegistry& registry);

}  // namespace millrace

#endif  // OPS_COMM_OPS_H_
