#include <utility>

#include "tests/core/runtime/test_program.h"

namespace millrace::testing {
namespace {

Status ShapeFromAttr(ShapeContext& c) {
  c.set_output(0, c.attrs().GetOr<PartialShape>("shape", PartialShape()));
  return absl::OkStatus();
}

Status ConstShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const Tensor value, c.attrs().Get<Tensor>("value"));
  c.set_output(0, value.shape());
  return absl::OkStatus();
}

Status FillShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape shape, c.ShapeFromHostInput(0));
  c.set_output(0, shape);
  return absl::OkStatus();
}

Status MatMulShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape a, c.WithRank(0, 2));
  MR_ASSIGN_OR_RETURN(const PartialShape b, c.WithRank(1, 2));
  c.set_output(0, PartialShape{a[0], b[1]});
  return absl::OkStatus();
}

Status CallShape(ShapeContext& c) {
  c.set_output(0, c.num_inputs() == 0 ? PartialShape(Shape()) : c.input(0));
  return absl::OkStatus();
}

OpDef Op(const char* name) {
  OpDef op(name);
  op.NotDifferentiable("it is for tests of the runtime").Doc("For tests.");
  return op;
}

void AddVariableOps(OpRegistry& ops) {
  ops.Add(Op("VarHandleOp")
              .Output("resource: resource")
              .Attr("container: string = ''")
              .Attr("shared_name: string = ''")
              .Attr("dtype: type = float")
              .Attr("shape: shape")
              .Shape(ShapeFromAttr)
              .Traits({Trait::kStateful, Trait::kVariable, Trait::kAllocatesOutputs}));
  ops.Add(Op("ReadVariableOp")
              .Input("resource: resource")
              .Output("value: float")
              .Shape(ShapeOfInput0)
              .Traits({Trait::kStateful, Trait::kReadsVariable, Trait::kAllocatesOutputs}));
  for (const char* name : {"AssignVariableOp", "AssignAddVariableOp"}) {
    ops.Add(Op(name)
                .Input("resource: resource")
                .Input("value: float")
                .Shape(NoOutputs)
                .Traits({Trait::kStateful, Trait::kWritesVariable}));
  }
  ops.Add(Op("ResourceApplyGradientDescent")
              .Input("var: resource")
              .Input("alpha: float")
              .Input("delta: float")
              .Shape(NoOutputs)
              .Traits({Trait::kStateful, Trait::kWritesVariable, Trait::kOptimizerUpdate}));
}

void AddCommOps(OpRegistry& ops) {
  OpDef send = Op("_Send");
  OpDef recv = Op("_Recv");
  for (OpDef* op : {&send, &recv}) {
    op->Attr("channel: int").Attr("tensor_name: string");
    op->Attr("send_device: string").Attr("recv_device: string");
  }
  ops.Add(send.Input("tensor: T")
              .Attr("T: type")
              .Shape(NoOutputs)
              .Traits({Trait::kStateful, Trait::kSend}));
  ops.Add(recv.Output("tensor: tensor_type")
              .Attr("tensor_type: type")
              .Attr("shape: shape")
              .Shape(ShapeFromAttr)
              .Traits({Trait::kStateful, Trait::kRecv, Trait::kAllocatesOutputs}));
}

void AddHookOps(OpRegistry& ops) {
  for (const char* name : {"Call", "CallSlow"}) {
    ops.Add(Op(name)
                .Input("x: N * float")
                .Output("y: float")
                .Attr("N: int >= 0 = 0")
                .Attr("hook: string")
                .Shape(CallShape)
                .Traits({Trait::kStateful}));
  }
  ops.Add(Op("Wait")
              .Input("x: float")
              .Output("y: float")
              .Attr("hook: string")
              .Shape(ShapeOfInput0)
              .Traits({Trait::kStateful, Trait::kAllocatesOutputs}));
}

std::shared_ptr<const OpRegistry> MakeTestOps() {
  auto ops = std::make_shared<OpRegistry>();
  ops->Add(Op("Placeholder")
               .Output("output: dtype")
               .Attr("dtype: type")
               .Attr("shape: shape = ?")
               .Shape(ShapeFromAttr)
               .Traits({Trait::kPlaceholder}));
  ops->Add(Op("Const")
               .Output("output: dtype")
               .Attr("dtype: type")
               .Attr("value: tensor")
               .Shape(ConstShape)
               .Traits({Trait::kConstant}));
  ops->Add(Op("NoOp").Shape(NoOutputs));
  ops->Add(Op("Identity")
               .Input("x: T")
               .Output("y: T")
               .Attr("T: type")
               .Shape(ShapeOfInput0)
               .Traits({Trait::kIdentity, Trait::kAllocatesOutputs}));
  for (const char* name : {"Neg", "Slow"}) {
    ops->Add(Op(name)
                 .Input("x: float")
                 .Output("y: float")
                 .Shape(ShapeOfInput0)
                 .Traits({Trait::kElementwise, Trait::kInPlace}));
  }
  ops->Add(Op("Add")
               .Input("x: float")
               .Input("y: float")
               .Output("z: float")
               .Shape(BroadcastShape)
               .Traits({Trait::kElementwise, Trait::kInPlace}));
  ops->Add(Op("MatMul")
               .Input("a: T")
               .Input("b: T")
               .Output("c: T")
               .Attr("T: {float, double}")
               .Shape(MatMulShape));
  ops->Add(
      Op("ArgMax").Input("x: T").Output("i: int64").Attr("T: {float, double}").Shape(ScalarShape));
  ops->Add(Op("Fill")
               .HostInput("dims: int32")
               .Input("value: float")
               .Output("y: float")
               .Shape(FillShape));
  ops->Add(Op("Draw")
               .Output("y: float")
               .Attr("seed: int = 0")
               .Shape(ScalarShape)
               .Traits({Trait::kStateful}));
  ops->Add(Op("Claim")
               .Input("x: float")
               .Output("y: float")
               .Attr("shape: shape")
               .Shape(ShapeFromAttr)
               .Traits({Trait::kAllocatesOutputs}));
  AddVariableOps(*ops);
  AddCommOps(*ops);
  AddHookOps(*ops);
  return ops;
}

}  // namespace

std::shared_ptr<const OpRegistry> TestOps() {
  static const auto& ops = *new std::shared_ptr<const OpRegistry>(MakeTestOps());
  return ops;
}

}  // namespace millrace::testing
