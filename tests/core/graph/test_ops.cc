#include "tests/core/graph/test_ops.h"

#include <cstdlib>
#include <ctime>

#include "core/framework/shape_context.h"
#include "core/graph/gradients.h"
#include "core/graph/graph_text.h"
#include "gtest/gtest.h"

namespace millrace {
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

Status MergedShape(ShapeContext& c) {
  PartialShape merged = c.input(0);
  for (int i = 1; i < c.num_inputs(); ++i) {
    MR_ASSIGN_OR_RETURN(merged, merged.MergeWith(c.input(i)));
  }
  c.set_output(0, merged);
  return absl::OkStatus();
}

Status MatMulShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape a, c.WithRank(0, 2));
  MR_ASSIGN_OR_RETURN(const PartialShape b, c.WithRank(1, 2));
  if (a.dim_known(1) && b.dim_known(0) && a[1] != b[0]) {
    return InvalidArgument("x has ", a[1], " columns, but w has ", b[0], " rows");
  }
  c.set_output(0, PartialShape{a[0], b[1]});
  return absl::OkStatus();
}

Status ReshapeShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape shape, c.ShapeFromHostInput(1));
  c.set_output(0, shape);
  return absl::OkStatus();
}

Status AddGradient(GradientContext& c) {
  c.set_dx(0, c.dy(0));
  c.set_dx(1, c.dy(0));
  return absl::OkStatus();
}

Status MulGradient(GradientContext& c) {
  if (c.needs_dx(0)) c.set_dx(0, Mul(c.dy(0), c.input(1)));
  if (c.needs_dx(1)) c.set_dx(1, Mul(c.dy(0), c.input(0)));
  return absl::OkStatus();
}

Status NegGradient(GradientContext& c) {
  c.set_dx(0, c.builder().AddOne("Neg", {c.dy(0)}, {}, SourceLocation()));
  return absl::OkStatus();
}

Status PassGradient(GradientContext& c) {
  c.set_dx(0, c.dy(0));
  return absl::OkStatus();
}

Status SplitGradient(GradientContext& c) {
  c.set_dx(0, Add(c.dy(0), c.dy(1)));
  return absl::OkStatus();
}

// Of a wrong dtype: as a mistaken op would give.
Status WrongGradient(GradientContext& c) {
  c.set_dx(0, c.builder().AddOne("Round", {c.dy(0)}, {}, SourceLocation()));
  return absl::OkStatus();
}

Status FailingGradient(GradientContext&) { return Unimplemented("not for an even window"); }

// The gradient is zero, which is said by saying nothing.
Status ZeroGradient(GradientContext&) { return absl::OkStatus(); }

void RegisterSources(OpRegistry& ops) {
  ops.Add(OpDef("Placeholder")
              .Output("output: dtype")
              .Attr("dtype: type")
              .Attr("shape: shape = ?")
              .Shape(ShapeFromAttr)
              .NotDifferentiable("it has no inputs")
              .Traits({Trait::kPlaceholder}));
  ops.Add(OpDef("Const")
              .Output("output: dtype")
              .Attr("dtype: type")
              .Attr("value: tensor")
              .Shape(ConstShape)
              .NotDifferentiable("it has no inputs")
              .Traits({Trait::kConstant}));
  ops.Add(OpDef("VarHandleOp")
              .Output("resource: resource")
              .Attr("dtype: type")
              .Attr("shape: shape")
              .Attr("shared_name: string = ''")
              .Shape(ShapeFromAttr)
              .NotDifferentiable("a handle has no gradient")
              .Traits({Trait::kStateful, Trait::kVariable}));
  ops.Add(OpDef("ReadVariableOp")
              .Input("resource: resource")
              .Output("value: dtype")
              .Attr("dtype: type")
              .Shape(ShapeOfInput0)
              .NotDifferentiable("differentiate by the value that it reads")
              .Traits({Trait::kStateful, Trait::kReadsVariable}));
  ops.Add(OpDef("AssignVariableOp")
              .Input("resource: resource")
              .Input("value: dtype")
              .Attr("dtype: type")
              .Shape(NoOutputs)
              .NotDifferentiable("it has no outputs")
              .Traits({Trait::kStateful, Trait::kWritesVariable}));
  ops.Add(OpDef("NoOp").Shape(NoOutputs).NotDifferentiable("it has no outputs"));
}

void RegisterMath(OpRegistry& ops) {
  const auto binary = [](absl::string_view name) {
    return OpDef(std::string(name))
        .Input("x: T")
        .Input("y: T")
        .Output("z: T")
        .Attr("T: {half, float, double, int32, int64}")
        .Shape(MergedShape);
  };
  const auto unary = [](absl::string_view name) {
    return OpDef(std::string(name))
        .Input("x: T")
        .Output("y: T")
        .Attr("T: type")
        .Shape(ShapeOfInput0);
  };
  ops.Add(binary("Add").Gradient(AddGradient));
  ops.Add(binary("Mul").Gradient(MulGradient));
  ops.Add(unary("Neg").Gradient(NegGradient));
  ops.Add(unary("Identity").Gradient(PassGradient).Traits({Trait::kIdentity}));
  ops.Add(unary("StopGradient").Gradient(ZeroGradient).Traits({Trait::kNoGradientStop}));
  ops.Add(unary("Sign").Gradient(ZeroGradient));
  ops.Add(unary("Ceil").NotDifferentiable("it is a step function"));
  ops.Add(unary("Wrong").Gradient(WrongGradient));
  ops.Add(unary("Failing").Gradient(FailingGradient));
  ops.Add(unary("OnesLike").NotDifferentiable("it is constant"));
  ops.Add(unary("ZerosLike").NotDifferentiable("it is constant"));
  ops.Add(OpDef("Round")
              .Input("x: T")
              .Output("y: int64")
              .Attr("T: type")
              .Shape(ShapeOfInput0)
              .NotDifferentiable("it gives integers"));
  ops.Add(OpDef("ToFloat")
              .Input("x: int64")
              .Output("y: float")
              .Shape(ShapeOfInput0)
              .NotDifferentiable("it takes integers"));
  ops.Add(OpDef("AddN")
              .Input("inputs: N * T")
              .Output("sum: T")
              .Attr("N: int >= 1")
              .Attr("T: type")
              .Shape(MergedShape)
              .NotDifferentiable("not needed here"));
  ops.Add(OpDef("MatMul")
              .Input("x: T")
              .Input("w: T")
              .Output("y: T")
              .Attr("T: {float, double}")
              .Attr("transpose_w: bool = false")
              .Shape(MatMulShape)
              .NotDifferentiable("not needed here"));
  ops.Add(OpDef("Reshape")
              .Input("x: T")
              .HostInput("shape: int32")
              .Output("y: T")
              .Attr("T: type")
              .Shape(ReshapeShape)
              .NotDifferentiable("not needed here"));
  ops.Add(OpDef("Halves")
              .Input("x: T")
              .Output("first: T")
              .Output("second: T")
              .Attr("T: type")
              .Shape(UnknownShape)
              .Gradient(SplitGradient)
              .Traits({Trait::kStateful}));
}

// One op with an attribute of each kind, and inputs and outputs by lists.
void RegisterOdd(OpRegistry& ops) {
  ops.Add(OpDef("Kinds")
              .Attr("s: string = 'default'")
              .Attr("i: int = 0")
              .Attr("f: float = 0.0")
              .Attr("b: bool = false")
              .Attr("t: type = float")
              .Attr("shape: shape = ?")
              .Attr("ls: list(string) = []")
              .Attr("li: list(int) = []")
              .Attr("lf: list(float) = []")
              .Attr("lb: list(bool) = []")
              .Attr("lt: list(type) = []")
              .Attr("lshape: list(shape) = []")
              .Shape(NoOutputs)
              .NotDifferentiable("it has no outputs"));
  ops.Add(OpDef("Call")
              .Input("args: Tin")
              .Output("results: Tout")
              .Attr("Tin: list(type) >= 0")
              .Attr("Tout: list(type) >= 0")
              .Attr("f: func")
              .Shape(UnknownShape)
              .NotDifferentiable("not needed here"));
  ops.Add(OpDef("Tensors")
              .Attr("one: tensor")
              .Attr("more: list(tensor)")
              .Attr("functions: list(func)")
              .Shape(NoOutputs)
              .NotDifferentiable("it has no outputs"));
}

}  // namespace

std::shared_ptr<const OpRegistry> TestOps() {
  auto ops = std::make_shared<OpRegistry>();
  RegisterSources(*ops);
  RegisterMath(*ops);
  RegisterOdd(*ops);
  EXPECT_TRUE(ops->status().ok()) << ops->status();
  return ops;
}

Graph ParseOrFail(absl::string_view text, std::shared_ptr<const OpRegistry> ops) {
  StatusOr<Graph> graph = GraphFromText(text, ops);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? *std::move(graph) : Graph(ops);
}

Value Mul(Value x, Value y) { return x.builder()->AddOne("Mul", {x, y}, {}, SourceLocation()); }
Value Add(Value x, Value y) { return x.builder()->AddOne("Add", {x, y}, {}, SourceLocation()); }

std::string ChainText(int n) {
  std::string text = "x = Placeholder() {dtype=float, shape=[2]}\n";
  for (int i = 0; i < n - 1; ++i) {
    absl::StrAppend(&text, "n", i, " = Neg(", i == 0 ? "x" : StrCat("n", i - 1), ")\n");
  }
  return text;
}

namespace {

double ProcessorSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

}  // namespace

// --config=asan sets the variable.
ProcessorTimeLimit::ProcessorTimeLimit()
    : limit_(ProcessorSeconds() + (std::getenv("ASAN_OPTIONS") == nullptr ? 5 : 40)) {}

ProcessorTimeLimit::~ProcessorTimeLimit() { EXPECT_LT(ProcessorSeconds(), limit_); }

}  // namespace millrace
