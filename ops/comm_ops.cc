#include "ops/comm_ops.h"

namespace millrace {
namespace {

Status RecvShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape shape, c.attrs().Get<PartialShape>("shape"));
  c.set_output(0, shape);
  return absl::OkStatus();
}

OpDef Exchange(const char* name) {
  OpDef op(name);
  op.Attr("channel: int >= 0");
  op.Attr("tensor_name: string = ''");
  op.Attr("send_device: string = ''");
  op.Attr("recv_device: string = ''");
  op.NotDifferentiable("gradients are taken before a graph is partitioned");
  return op;
}

}  // namespace

void RegisterCommOps(OpRegistry& registry) {
  registry.Add(Exchange("_Send")
                   .Input("tensor: T")
                   .Attr("T: type")
                   .Shape(NoOutputs)
                   .Traits({Trait::kStateful, Trait::kSend})
                   .Doc("Hands a tensor to the _Recv of the same channel in another partition."));
  registry.Add(Exchange("_Recv")
                   .Output("tensor: tensor_type")
                   .Attr("tensor_type: type")
                   .Attr("shape: shape = ?")
                   .Shape(RecvShape)
                   .Traits({Trait::kStateful, Trait::kRecv, Trait::kAllocatesOutputs})
                   .Doc("The tensor that the _Send of the same channel hands over."));
}

}  // namespace millrace
