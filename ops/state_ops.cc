#include "ops/state_ops.h"

#include "ops/gradient_shapes.h"
#include "ops/node_call.h"
#include "ops/shape_functions.h"
#include "ops/sharding_rules.h"

namespace millrace {
namespace {

// The dtype of the variable behind `handle`; kInvalid if the handle's maker is not in sight.
DType VariableDType(Value handle) {
  const Graph& graph = handle.builder()->graph();
  Port port = handle.port();
  for (NodeId steps = 0; steps < graph.num_ids(); ++steps) {
    const Node& node = *graph.node(port.node);
    if (node.op().Has(Trait::kVariable)) return node.attrs().GetOr("dtype", DType::kInvalid);
    if (!node.op().Has(Trait::kIdentity) || node.inputs().empty()) break;
    port = node.inputs()[0];
  }
  return DType::kInvalid;
}

// Adds an update of the variables behind the first `handles` inputs and orders earlier reads before
// it.
Operation Update(absl::string_view op, int handles, absl::Span<const Value> inputs, AttrMap attrs,
                 SourceLocation where) {
  const Operation update = CallForEffect(op, inputs, std::move(attrs), where);
  if (!update.ok()) return update;
  for (int i = 0; i < handles; ++i) update.builder()->NoteUpdate(inputs[i], update);
  return update;
}

}  // namespace

Value VariableHandle(GraphBuilder& builder, absl::string_view name, DType dtype, Shape shape,
                     SourceLocation where) {
  const std::string shared_name = StrCat(builder.CurrentScope(), name);
  // Handles of one name would share storage, and nothing would order what is done by the one with
  // what is done by the other.
  const Node* known = builder.graph().Find(shared_name);
  if (known != nullptr && known->op().Has(Trait::kVariable)) {
    builder.Fail(InvalidArgument("variable '", shared_name, "' was made already, at ",
                                 known->location().file, ":", known->location().line,
                                 ": choose another name or a name scope"),
                 where);
    return Value(&builder, Port{});
  }
  return builder.AddOne("VarHandleOp", {},
                        {{"dtype", dtype}, {"shape", shape}, {"shared_name", shared_name}}, where,
                        name);
}

Value ReadVariable(Value handle, SourceLocation where) {
  if (!handle.ok()) return handle;
  const DType dtype = VariableDType(handle);
  if (dtype == DType::kInvalid) {
    handle.builder()->Fail(InvalidArgument("'", handle.name(), "' is not the handle of a variable"),
                           where);
    return Value(handle.builder(), Port{});
  }
  return handle.builder()->ReadVariable(handle, dtype, where);
}

Value IsInitialized(Value handle, SourceLocation where) {
  return Call("VarIsInitializedOp", {handle}, {}, where);
}
Operation Assign(Value handle, Value value, SourceLocation where) {
  return Update("AssignVariableOp", 1, {handle, value}, {}, where);
}
Operation AssignAdd(Value handle, Value delta, SourceLocation where) {
  return Update("AssignAddVariableOp", 1, {handle, delta}, {}, where);
}
Operation AssignSub(Value handle, Value delta, SourceLocation where) {
  return Update("AssignSubVariableOp", 1, {handle, delta}, {}, where);
}

Operation ApplyGradientDescent(Value w, Value rate, Value gradient, SourceLocation where) {
  return Update("ResourceApplyGradientDescent", 1, {w, rate, gradient}, {}, where);
}
Operation ApplyMomentum(Value w, Value m, Value rate, Value gradient, Value momentum, bool nesterov,
                        SourceLocation where) {
  return Update("ResourceApplyMomentum", 2, {w, m, rate, gradient, momentum},
                {{"use_nesterov", nesterov}}, where);
}
Operation ApplyKerasMomentum(Value w, Value m, Value rate, Value gradient, Value momentum,
                             bool nesterov, SourceLocation where) {
  return Update("ResourceApplyKerasMomentum", 2, {w, m, rate, gradient, momentum},
                {{"use_nesterov", nesterov}}, where);
}
Operation ApplyAdagrad(Value w, Value sum, Value rate, Value gradient, SourceLocation where) {
  return Update("ResourceApplyAdagrad", 2, {w, sum, rate, gradient}, {}, where);
}
Operation ApplyRmsProp(Value w, Value mean_square, Value m, Value rate, Value decay, Value momentum,
                       Value epsilon, Value gradient, SourceLocation where) {
  return Update("ResourceApplyRMSProp", 3,
                {w, mean_square, m, rate, decay, momentum, epsilon, gradient}, {}, where);
}
Value GatherRows(Value handle, Value indices, SourceLocation where) {
  if (!handle.ok()) return handle;
  const DType dtype = VariableDType(handle);
  if (dtype == DType::kInvalid) {
    handle.builder()->Fail(InvalidArgument("'", handle.name(), "' is not the handle of a variable"),
                           where);
    return Value(handle.builder(), Port{});
  }
  return handle.builder()->AddRead("ResourceGather", {handle, indices}, {{"dtype", dtype}}, where);
}
Operation AddToRows(Value handle, Value indices, Value updates, SourceLocation where) {
  return Update("ResourceScatterAdd", 1, {handle, indices, updates}, {}, where);
}
Operation SubtractFromRows(Value handle, Value indices, Value updates, SourceLocation where) {
  return Update("ResourceScatterSub", 1, {handle, indices, updates}, {}, where);
}
Operation ApplyAdam(Value w, Value m, Value v, Value beta1_power, Value beta2_power, Value rate,
                    Value beta1, Value beta2, Value epsilon, Value gradient, SourceLocation where) {
  return Update("ResourceApplyAdam", 3,
                {w, m, v, beta1_power, beta2_power, rate, beta1, beta2, epsilon, gradient}, {},
                where);
}

Operation Group(GraphBuilder& builder, std::vector<Operation> operations, absl::string_view name,
                SourceLocation where) {
  const GraphBuilder::Scope after = builder.ControlDependencies(std::move(operations));
  return builder.Add("NoOp", {}, {}, where, name);
}

namespace {

Status VarHandleShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape shape, c.attrs().Get<PartialShape>("shape"));
  c.set_output(0, shape);
  return absl::OkStatus();
}

// The inputs of an update: handles first, then tensors of the variable's shape or scalars.
struct UpdateInputs {
  int handles;
  std::vector<int> values;  // of the variable's shape; the other tensors are scalars
};

ShapeFn UpdateShape(UpdateInputs inputs) {
  return [inputs = std::move(inputs)](ShapeContext& c) -> Status {
    PartialShape variable = c.input(0);
    const auto merge = [&](int i, absl::string_view what) -> Status {
      auto merged = variable.MergeWith(c.input(i));
      if (!merged.ok()) {
        return InvalidArgument(what, " (input ", i, ") has shape ", c.input(i).ToString(),
                               ", but the variable has ", variable.ToString());
      }
      variable = *merged;
      return absl::OkStatus();
    };
    for (int i = 1; i < inputs.handles; ++i) MR_RETURN_IF_ERROR(merge(i, "the slot variable"));
    for (int i : inputs.values) MR_RETURN_IF_ERROR(merge(i, "the value"));
    for (int i = inputs.handles; i < c.num_inputs(); ++i) {
      const bool value =
          std::find(inputs.values.begin(), inputs.values.end(), i) != inputs.values.end();
      if (!value) MR_RETURN_IF_ERROR(CheckScalar(c, i, StrCat("input ", i)));
    }
    return absl::OkStatus();
  };
}

// The layout of the variable rules: what changes it must lie as it does, whole unless a strategy
// has split it. An update is not linear in parts that are to be summed.
ShardingFn UpdateSharding(UpdateInputs inputs) {
  return [inputs = std::move(inputs)](ShardingContext& c) -> Status {
    const Sharding variable = c.input(0);
    if (variable.kind == Sharding::kPartialSum) {
      return InvalidArgument("a variable cannot be a partial sum");
    }
    for (int i = 1; i < c.num_inputs(); ++i) {
      const bool like = i < inputs.handles || std::find(inputs.values.begin(), inputs.values.end(),
                                                        i) != inputs.values.end();
      c.Require(i, like ? variable : Sharding::Replicated());
    }
    return absl::OkStatus();
  };
}

// `dtypes`: of the variable, as an attribute of an op signature.
OpDef Assignment(const char* name, const char* dtypes) {
  const UpdateInputs inputs{1, {1}};
  OpDef op(name);
  op.Input("resource: resource").Input("value: dtype").Attr(dtypes);
  op.Shape(UpdateShape(inputs)).Sharding(UpdateSharding(inputs));
  op.NotDifferentiable("it has no outputs");
  op.Traits({Trait::kStateful, Trait::kWritesVariable});
  return op;
}

// An optimizer's update, of which the shape and sharding follow from `inputs`.
OpDef OptimizerUpdate(const char* name, const UpdateInputs& inputs) {
  OpDef op(name);
  op.Shape(UpdateShape(inputs)).Sharding(UpdateSharding(inputs));
  op.NotDifferentiable("it has no outputs");
  op.Traits({Trait::kStateful, Trait::kWritesVariable, Trait::kOptimizerUpdate});
  return op;
}

void RegisterOptimizerUpdates(OpRegistry& registry) {
  constexpr char kTypes[] = "T: {float, double}";
  constexpr char kUseLocking[] = "use_locking: bool = false";
  registry.Add(OptimizerUpdate("ResourceApplyGradientDescent", {1, {2}})
                   .Input("var: resource")
                   .Input("alpha: T")
                   .Input("delta: T")
                   .Attr(kTypes)
                   .Attr(kUseLocking)
                   .Doc("var -= alpha * delta"));
  registry.Add(OptimizerUpdate("ResourceApplyMomentum", {2, {3}})
                   .Input("var: resource")
                   .Input("accum: resource")
                   .Input("lr: T")
                   .Input("grad: T")
                   .Input("momentum: T")
                   .Attr(kTypes)
                   .Attr(kUseLocking)
                   .Attr("use_nesterov: bool = false")
                   .Doc("accum = momentum * accum + grad; var -= lr * accum, or, with "
                        "use_nesterov, lr * (grad + momentum * accum)"));
  registry.Add(OptimizerUpdate("ResourceApplyKerasMomentum", {2, {3}})
                   .Input("var: resource")
                   .Input("accum: resource")
                   .Input("lr: T")
                   .Input("grad: T")
                   .Input("momentum: T")
                   .Attr(kTypes)
                   .Attr(kUseLocking)
                   .Attr("use_nesterov: bool = false")
                   .Doc("accum = momentum * accum - lr * grad; var += accum, or, with "
                        "use_nesterov, momentum * accum - lr * grad"));
  registry.Add(OptimizerUpdate("ResourceApplyAdagrad", {2, {3}})
                   .Input("var: resource")
                   .Input("accum: resource")
                   .Input("lr: T")
                   .Input("grad: T")
                   .Attr(kTypes)
                   .Attr(kUseLocking)
                   .Attr("update_slots: bool = true")
                   .Doc("accum += grad^2, unless update_slots is false; var -= "
                        "lr * grad / sqrt(accum)"));
  registry.Add(OptimizerUpdate("ResourceApplyRMSProp", {3, {7}})
                   .Input("var: resource")
                   .Input("ms: resource")
                   .Input("mom: resource")
                   .Input("lr: T")
                   .Input("rho: T")
                   .Input("momentum: T")
                   .Input("epsilon: T")
                   .Input("grad: T")
                   .Attr(kTypes)
                   .Attr(kUseLocking)
                   .Doc("ms += (1 - rho) (grad^2 - ms); mom = momentum * mom + "
                        "lr * grad / sqrt(ms + epsilon); var -= mom"));
  registry.Add(OptimizerUpdate("ResourceApplyAdam", {3, {9}})
                   .Input("var: resource")
                   .Input("m: resource")
                   .Input("v: resource")
                   .Input("beta1_power: T")
                   .Input("beta2_power: T")
                   .Input("lr: T")
                   .Input("beta1: T")
                   .Input("beta2: T")
                   .Input("epsilon: T")
                   .Input("grad: T")
                   .Attr(kTypes)
                   .Attr(kUseLocking)
                   .Attr("use_nesterov: bool = false")
                   .Doc("m += (1 - beta1) (grad - m); v += (1 - beta2) (grad^2 - v); var -= "
                        "lr sqrt(1 - beta2_power) / (1 - beta1_power) * m / (sqrt(v) + epsilon)"));
}

}  // namespace

void RegisterStateOps(OpRegistry& registry) {
  registry.Add(
      OpDef("VarHandleOp")
          .Output("resource: resource")
          .Attr("container: string = ''")
          .Attr("shared_name: string = ''")
          .Attr("debug_name: string = ''")
          .Attr("dtype: type")
          .Attr("shape: shape")
          .Attr("allowed_devices: list(string) = []")
          .Shape(VarHandleShape)
          .NotDifferentiable("a handle is not a number")
          .Traits({Trait::kStateful, Trait::kVariable, Trait::kAllocatesOutputs, Trait::kCheap})
          .Doc("The handle of a variable, which outlives the step."));
  registry.Add(OpDef("ReadVariableOp")
                   .Input("resource: resource")
                   .Output("value: dtype")
                   .Attr("dtype: type")
                   .Shape(ShapeOfInput0)
                   // Gradients are asked for with respect to the value that was read.
                   .Gradient(ZeroGradient)
                   .Sharding(SameSharding)
                   .Traits({Trait::kStateful, Trait::kReadsVariable, Trait::kAllocatesOutputs,
                            Trait::kCheap})
                   .Doc("The value of a variable at this point of the step."));
  registry.Add(OpDef("VarIsInitializedOp")
                   .Input("resource: resource")
                   .Output("is_initialized: bool")
                   .Shape(ScalarShape)
                   .NotDifferentiable("its output is boolean")
                   .Traits({Trait::kStateful, Trait::kCheap})
                   .Doc("Whether a variable has a value."));
  registry.Add(Assignment("AssignVariableOp", "dtype: type")
                   .Attr("validate_shape: bool = false")
                   .Doc("The variable gets the value."));
  constexpr char kSummed[] = "dtype: {float, double, int32, int64}";
  registry.Add(Assignment("AssignAddVariableOp", kSummed).Doc("The variable grows by the value."));
  registry.Add(
      Assignment("AssignSubVariableOp", kSummed).Doc("The variable shrinks by the value."));
  RegisterOptimizerUpdates(registry);
  registry.Add(OpDef("NoOp")
                   .Shape(NoOutputs)
                   .NotDifferentiable("it has no outputs")
                   .Traits({Trait::kStateful, Trait::kCheap})
                   .Doc("Does nothing, after its control inputs."));
}

}  // namespace millrace
