#include <limits>

#include "ops/array_ops.h"
#include "ops/gradient_shapes.h"
#include "ops/math_ops.h"
#include "ops/node_call.h"
#include "ops/op_families.h"
#include "ops/shape_functions.h"
#include "ops/sharding_rules.h"

// Where values come from: constants, feeds, fills.
namespace millrace {

Value Const(GraphBuilder& builder, Tensor tensor, absl::string_view name, SourceLocation where) {
  const DType dtype = tensor.dtype();
  return builder.AddOne("Const", {}, {{"dtype", dtype}, {"value", std::move(tensor)}}, where, name);
}

namespace {

template <typename T>
Tensor Number(double value) {
  return Tensor::Scalar(static_cast<T>(value));
}

// A scalar of any numeric dtype that C++ has; InvalidArgument for the others and for a number that
// an integer dtype does not hold.
template <typename T>
StatusOr<Tensor> WholeNumber(double value) {
  // The upper bound as a double is one too large where the dtype has more bits than a double.
  const double lowest = static_cast<double>(std::numeric_limits<T>::lowest());
  const double limit = static_cast<double>(std::numeric_limits<T>::max());
  if (!(value >= lowest && value <= limit) || (sizeof(T) == 8 && value == limit)) {
    return InvalidArgument(value, " does not fit in ", Name(DTypeOf<T>::value));
  }
  return Number<T>(value);
}

StatusOr<Tensor> ScalarTensor(double value, DType dtype) {
  switch (dtype) {
    case DType::kFloat:
      return Number<float>(value);
    case DType::kDouble:
      return Number<double>(value);
    case DType::kBool:
      return Tensor::Scalar(value != 0);
    case DType::kInt8:
      return WholeNumber<int8_t>(value);
    case DType::kInt16:
      return WholeNumber<int16_t>(value);
    case DType::kInt32:
      return WholeNumber<int32_t>(value);
    case DType::kInt64:
      return WholeNumber<int64_t>(value);
    case DType::kUint8:
      return WholeNumber<uint8_t>(value);
    case DType::kUint16:
      return WholeNumber<uint16_t>(value);
    case DType::kUint32:
      return WholeNumber<uint32_t>(value);
    case DType::kUint64:
      return WholeNumber<uint64_t>(value);
    default:
      return InvalidArgument("a scalar of dtype ", Name(dtype), " cannot be made from a number");
  }
}

}  // namespace

Value Scalar(GraphBuilder& builder, double value, DType dtype, SourceLocation where) {
  StatusOr<Tensor> tensor = ScalarTensor(value, dtype);
  if (!tensor.ok()) {
    builder.Fail(tensor.status(), where);
    return Value(&builder, Port{});
  }
  return Const(builder, *std::move(tensor), "", where);
}

Value IntVector(GraphBuilder& builder, std::vector<int64_t> values, SourceLocation where) {
  std::vector<int32_t> narrow;
  narrow.reserve(values.size());
  for (int64_t v : values) {
    if (v < std::numeric_limits<int32_t>::min() || v > std::numeric_limits<int32_t>::max()) {
      builder.Fail(InvalidArgument("element ", v, " of a vector does not fit in int32"), where);
      return Value(&builder, Port{});
    }
    narrow.push_back(static_cast<int32_t>(v));
  }
  const Shape shape{static_cast<int64_t>(narrow.size())};
  return Const(builder, Tensor::Of<int32_t>(shape, narrow), "", where);
}

Value Placeholder(GraphBuilder& builder, DType dtype, PartialShape shape, absl::string_view name,
                  SourceLocation where) {
  return builder.AddOne("Placeholder", {}, {{"dtype", dtype}, {"shape", shape}}, where, name);
}

Value Fill(Value dims, Value value, SourceLocation where) {
  return Call("Fill", {dims, value}, {}, where);
}
Value ZerosLike(Value x, SourceLocation where) { return Call("ZerosLike", {x}, {}, where); }
Value OnesLike(Value x, SourceLocation where) { return Call("OnesLike", {x}, {}, where); }

namespace {

Status ConstShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const Tensor value, c.attrs().Get<Tensor>("value"));
  MR_ASSIGN_OR_RETURN(const DType dtype, c.attrs().Get<DType>("dtype"));
  if (value.dtype() != dtype) {
    return InvalidArgument("the value is of dtype ", Name(value.dtype()),
                           ", but attribute 'dtype' is ", Name(dtype));
  }
  c.set_output(0, value.shape());
  return absl::OkStatus();
}

Status ShapeFromAttr(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape shape, c.attrs().Get<PartialShape>("shape"));
  c.set_output(0, shape);
  return absl::OkStatus();
}

Status FillShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(CheckScalar(c, 1, "value"));
  return SetOutput(c, 0, ShapeOperand(c, 0, "dims"));
}

Status FillGradient(GradientContext& c) {
  if (c.needs_dx(1)) c.set_dx(1, ReduceSum(c.dy(0)));
  return absl::OkStatus();
}

// All parts of a filled tensor are alike: a caller that has set the output to a split before it
// asks gets one.
Status FillSharding(ShardingContext& c) {
  RequireReplicated(c);
  if (c.output(0).kind == Sharding::kSplit) {
    c.LocalizeHostElement(0, c.output(0).dim);
  } else {
    c.set_output(0, Sharding::Replicated());
  }
  return absl::OkStatus();
}

// Of the shape of the input only, which each part has.
Status LikeSharding(ShardingContext& c) {
  c.set_output(0, c.input(0).kind == Sharding::kSplit ? c.input(0) : Sharding::Replicated());
  return absl::OkStatus();
}

}  // namespace

void RegisterSourceOps(OpRegistry& registry) {
  registry.Add(OpDef("Const")
                   .Output("output: dtype")
                   .Attr("value: tensor")
                   .Attr("dtype: type")
                   .Shape(ConstShape)
                   .NotDifferentiable("a constant has no inputs")
                   .Traits({Trait::kConstant, Trait::kAllocatesOutputs, Trait::kCheap})
                   .Doc("The value of its attribute."));
  registry.Add(OpDef("Placeholder")
                   .Output("output: dtype")
                   .Attr("dtype: type")
                   .Attr("shape: shape = ?")
                   .Shape(ShapeFromAttr)
                   .NotDifferentiable("a placeholder has no inputs")
                   .Traits({Trait::kPlaceholder, Trait::kStateful})
                   .Doc("A value that each step must feed."));
  registry.Add(OpDef("Fill")
                   .HostInput("dims: index_type")
                   .Input("value: T")
                   .Output("output: T")
                   .Attr("T: type")
                   .Attr("index_type: {int32, int64} = int32")
                   .Shape(FillShape)
                   .Gradient(FillGradient)
                   .Sharding(FillSharding)
                   .Traits({Trait::kCheap})
                   .Doc("A scalar at every element of a shape."));
  registry.Add(OpDef("ZerosLike")
                   .Input("x: T")
                   .Output("y: T")
                   .Attr("T: type")
                   .Shape(ShapeOfInput0)
                   .Gradient(ZeroGradient)
                   .Sharding(LikeSharding)
                   .Traits({Trait::kElementwise, Trait::kInPlace, Trait::kCheap})
                   .Doc("Zeros in the shape of x."));
  registry.Add(OpDef("OnesLike")
                   .Input("x: T")
                   .Output("y: T")
                   .Attr("T: type")
                   .Shape(ShapeOfInput0)
                   .Gradient(ZeroGradient)
                   .Sharding(LikeSharding)
                   .Traits({Trait::kElementwise, Trait::kInPlace, Trait::kCheap})
                   .Doc("Ones in the shape of x."));
}

}  // namespace millrace
