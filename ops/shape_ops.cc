#include <algorithm>

#include "ops/array_ops.h"
#include "ops/gradient_shapes.h"
#include "ops/node_call.h"
#include "ops/op_families.h"
#include "ops/shape_functions.h"
#include "ops/sharding_rules.h"

// Asking for a shape, and other shapes for the same elements.
namespace millrace {

Value ShapeOf(Value x, DType dtype, SourceLocation where) {
  return Call("Shape", {x}, {{"out_type", dtype}}, where);
}
Value Size(Value x, SourceLocation where) { return Call("Size", {x}, {}, where); }
Value Rank(Value x, SourceLocation where) { return Call("Rank", {x}, {}, where); }
Value Reshape(Value x, Value shape, SourceLocation where) {
  return Call("Reshape", {x, shape}, {}, where);
}
Value Reshape(Value x, std::vector<int64_t> shape, SourceLocation where) {
  if (!x.ok()) return x;
  return Reshape(x, IntVector(*x.builder(), std::move(shape), where), where);
}
Value ExpandDims(Value x, int64_t axis, SourceLocation where) {
  if (!x.ok()) return x;
  const Value dim = Scalar(*x.builder(), static_cast<double>(axis), DType::kInt32, where);
  return Call("ExpandDims", {x, dim}, {}, where);
}
Value Squeeze(Value x, std::vector<int64_t> axes, SourceLocation where) {
  return Call("Squeeze", {x}, {{"squeeze_dims", std::move(axes)}}, where);
}
std::vector<Value> BroadcastGradientArgs(Value shape0, Value shape1, SourceLocation where) {
  return CallMany("BroadcastGradientArgs", {shape0, shape1}, {}, 2, where);
}

namespace {

// Of Shape and ShapeN.
Status ShapeShape(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) {
    const PartialShape& x = c.input(i);
    c.set_output(i, PartialShape{x.has_rank() ? x.rank() : PartialShape::kUnknown});
  }
  return absl::OkStatus();
}

// All shapes are vectors of one length.
Status ConcatOffsetShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(CheckScalar(c, 0, "concat_dim"));
  PartialShape each{PartialShape::kUnknown};
  for (int i = 1; i < c.num_inputs(); ++i) {
    const auto merged = each.MergeWith(c.input(i));
    if (!merged.ok()) {
      return InvalidArgument("shape ", i - 1, " is of shape ", c.input(i).ToString(),
                             ", but must be a vector, as long as all others: ", each.ToString());
    }
    each = *merged;
  }
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, each);
  return absl::OkStatus();
}

// The target with its -1, if there is one, replaced by what the other extents leave.
StatusOr<PartialShape> FillIn(std::vector<int64_t> target, const PartialShape& from) {
  int rest = -1;
  for (size_t i = 0; i < target.size(); ++i) {
    if (target[i] >= 0) continue;
    if (target[i] < -1) return InvalidArgument("the new shape has a negative extent: ", target[i]);
    if (rest >= 0) return InvalidArgument("the new shape has more than one -1");
    rest = static_cast<int>(i);
  }
  MR_ASSIGN_OR_RETURN(PartialShape to, PartialShape::Create(target));
  const auto elements = NumElements(from);
  if (rest < 0) {
    const auto wanted = NumElements(to);
    if (elements && wanted && elements != wanted) {
      return InvalidArgument("cannot reshape ", from.ToString(), " (", *elements, " elements) to ",
                             to.ToString(), " (", *wanted, " elements)");
    }
    return to;
  }
  if (!elements) return to;
  target[rest] = 1;
  MR_ASSIGN_OR_RETURN(const PartialShape others, PartialShape::Create(target));
  const auto product = NumElements(others);
  if (!product || (*product == 0 ? *elements != 0 : *elements % *product != 0)) {
    return InvalidArgument("cannot reshape ", from.ToString(), " (", *elements, " elements) to ",
                           to.ToString(), ": the known extents do not divide it");
  }
  if (*product == 0) {
    return InvalidArgument("cannot reshape the empty ", from.ToString(), " to ", to.ToString(),
                           ": the unknown extent could be anything");
  }
  target[rest] = *elements / *product;
  return PartialShape::Create(target);
}

// `numbers` as the op's out_type says.
Tensor HostNumbers(const ShapeContext& c, const Shape& shape, const std::vector<int64_t>& numbers) {
  if (c.attrs().GetOr("out_type", DType::kInt32) == DType::kInt64) {
    return Tensor::Of<int64_t>(shape, numbers);
  }
  return Tensor::Of<int32_t>(shape, std::vector<int32_t>(numbers.begin(), numbers.end()));
}

StatusOr<Tensor> ShapeOpValue(const ShapeContext& c, int output) {
  const PartialShape& x = c.input(output);
  if (!x.IsFull()) return Tensor();
  const absl::Span<const int64_t> dims = x.dims();
  return HostNumbers(c, Shape{x.rank()}, {dims.begin(), dims.end()});
}

StatusOr<Tensor> SizeValue(const ShapeContext& c, int) {
  if (!c.input(0).IsFull()) return Tensor();
  MR_ASSIGN_OR_RETURN(const Shape shape, c.input(0).ToShape());
  return HostNumbers(c, Shape(), {shape.num_elements()});
}

StatusOr<Tensor> RankValue(const ShapeContext& c, int) {
  if (!c.input(0).has_rank()) return Tensor();
  return HostNumbers(c, Shape(), {c.input(0).rank()});
}

Status ReshapeShape(ShapeContext& c) {
  const PartialShape& operand = c.input(1);
  if (operand.has_rank() && operand.rank() != 1) {
    return InvalidArgument("the new shape must be a vector, but has shape ", operand.ToString());
  }
  if (auto target = IntElements(c.host_value(1))) {
    return SetOutput(c, 0, FillIn(*std::move(target), c.input(0)));
  }
  return SetOutput(c, 0, ShapeOperand(c, 1, "the new shape"));
}

Status ExpandDimsShape(ShapeContext& c) {
  const PartialShape& x = c.input(0);
  if (const auto own = NumElements(c.input(1)); own && *own != 1) {
    return InvalidArgument("dim must hold one axis, but has shape ", c.input(1).ToString());
  }
  if (!x.has_rank()) return absl::OkStatus();
  if (x.rank() == kMaxRank) {
    return InvalidArgument("the input ", x.ToString(), " has the most dimensions there can be, ",
                           kMaxRank);
  }
  const auto axis = IntElement(c.host_value(1));
  if (!axis) {
    c.set_output(0, UnknownOfRank(x.rank() + 1));
    return absl::OkStatus();
  }
  MR_ASSIGN_OR_RETURN(const int at, NormalizeAxis(*axis, x.rank() + 1));
  std::vector<int64_t> dims = Extents(x);
  dims.insert(dims.begin() + at, 1);
  return SetOutput(c, 0, PartialShape::Create(dims));
}

Status SqueezeShape(ShapeContext& c) {
  const PartialShape& x = c.input(0);
  if (!x.has_rank()) return absl::OkStatus();
  const auto named = c.attrs().GetOr("squeeze_dims", std::vector<int64_t>());
  MR_ASSIGN_OR_RETURN(const std::vector<int> axes, NormalizeAxes(named, x.rank()));
  std::vector<int64_t> dims;
  for (int i = 0; i < x.rank(); ++i) {
    const bool asked = std::find(axes.begin(), axes.end(), i) != axes.end();
    if (axes.empty() && !x.dim_known(i)) return absl::OkStatus();  // it may or may not go
    if (asked && x.dim_known(i) && x.dim(i) != 1) {
      return InvalidArgument("axis ", i, " of the input ", x.ToString(), " has extent ", x.dim(i),
                             ", not 1, and cannot be squeezed");
    }
    if (!asked && !(axes.empty() && x.dim(i) == 1)) dims.push_back(x.dim(i));
  }
  return SetOutput(c, 0, PartialShape::Create(dims));
}

Status BroadcastGradientArgsShape(ShapeContext& c) {
  for (int i = 0; i < 2; ++i) {
    MR_RETURN_IF_ERROR(c.WithRank(i, 1).status());
    c.set_output(i, PartialShape{PartialShape::kUnknown});
  }
  return absl::OkStatus();
}

Status LikeInputGradient(GradientContext& c) {
  c.set_dx(0, ReshapeLike(c.dy(0), c.input(0)));
  return absl::OkStatus();
}

// What is asked of a part is not what would be answered of the whole.
ShardingFn ShapeSharding(bool of_extents) {
  return [of_extents](ShardingContext& c) -> Status {
    for (int i = 0; i < c.num_inputs(); ++i) {
      if (of_extents && c.input(i).kind == Sharding::kSplit) {
        return InvalidArgument(
            "shape unresolved along a split dimension: the input ", c.input_shape(i).ToString(),
            " is split along dimension ", c.input(i).dim,
            "; feed static shapes, so that Shape ops are folded before the split");
      }
      c.set_output(i, Sharding::Replicated());
    }
    return absl::OkStatus();
  };
}

// The output dimension over which the parts of a row-major tensor, split along `dim`, are laid out:
// one that begins at the same element and of which one extent divides the other. -1: none.
int ReshapedSplit(const PartialShape& from, int dim, const PartialShape& to) {
  const auto before = Product(from, 0, dim);
  int found = -1;
  for (int i = 0; before && i < to.rank(); ++i) {
    if (Product(to, 0, i) != before) continue;
    const int64_t a = from.dim(dim), b = to.dim(i);
    if (a == b) return i;
    if (found < 0 && a > 0 && b > 1 && (a % b == 0 || b % a == 0)) found = i;
  }
  return found;
}

Status ReshapeSharding(ShardingContext& c) {
  c.Require(1, Sharding::Replicated());
  if (c.input(0).kind != Sharding::kSplit) return SameSharding(c);
  const int dim = c.input(0).dim;
  MR_RETURN_IF_ERROR(SplitExtent(c, 0, dim).status());
  const PartialShape& to = c.output_shape(0);
  const bool settled = c.input_shape(0).IsFull() && to.IsFull() && c.host_value(1) != nullptr;
  const int out = settled ? ReshapedSplit(c.input_shape(0), dim, to) : -1;
  if (out < 0) {
    c.Require(0, Sharding::Replicated());
    c.set_output(0, Sharding::Replicated());
    return absl::OkStatus();
  }
  LocalizeUnlessRest(c, 1, out);
  c.set_output(0, Sharding::Split(out));
  return absl::OkStatus();
}

Status ExpandDimsSharding(ShardingContext& c) {
  c.Require(1, Sharding::Replicated());
  if (c.input(0).kind != Sharding::kSplit) return SameSharding(c);
  const auto axis = IntElement(c.host_value(1));
  if (!axis || !c.input_shape(0).has_rank()) {
    c.Require(0, Sharding::Replicated());
    return absl::OkStatus();
  }
  MR_ASSIGN_OR_RETURN(const int at, NormalizeAxis(*axis, c.input_shape(0).rank() + 1));
  c.set_output(0, Sharding::Split(c.input(0).dim + (at <= c.input(0).dim ? 1 : 0)));
  return absl::OkStatus();
}

Status SqueezeSharding(ShardingContext& c) {
  if (c.input(0).kind != Sharding::kSplit) return SameSharding(c);
  const PartialShape& x = c.input_shape(0);
  const int dim = c.input(0).dim;
  MR_ASSIGN_OR_RETURN(const int64_t extent, SplitExtent(c, 0, dim));
  const auto named = c.attrs().GetOr("squeeze_dims", std::vector<int64_t>());
  MR_ASSIGN_OR_RETURN(const std::vector<int> axes, NormalizeAxes(named, x.rank()));
  int before = 0;
  for (int i = 0; i < dim; ++i) {
    MR_ASSIGN_OR_RETURN(const int64_t other, SplitExtent(c, 0, i));
    before += axes.empty() ? other == 1 : std::find(axes.begin(), axes.end(), i) != axes.end();
  }
  // An extent of 1 has no parts, though the layout may say so; and without named axes a part of
  // extent 1 would be squeezed away.
  if (extent == 1 || axes.empty()) {
    c.Require(0, Sharding::Replicated());
    return absl::OkStatus();
  }
  c.set_output(0, Sharding::Split(dim - before));
  return absl::OkStatus();
}

}  // namespace

void RegisterShapeOps(OpRegistry& registry) {
  constexpr char kNumber[] = "its output is an integer";
  registry.Add(OpDef("Shape")
                   .Input("input: T")
                   .HostOutput("output: out_type")
                   .Attr("T: type")
                   .Attr("out_type: {int32, int64} = int32")
                   .Shape(ShapeShape)
                   .ValueFromShapes(ShapeOpValue)
                   .NotDifferentiable(kNumber)
                   .Sharding(ShapeSharding(true))
                   .Traits({Trait::kCheap})
                   .Doc("The shape of its input as a vector."));
  registry.Add(OpDef("ShapeN")
                   .Input("input: N * T")
                   .HostOutput("output: N * out_type")
                   .Attr("N: int >= 1")
                   .Attr("T: type")
                   .Attr("out_type: {int32, int64} = int32")
                   .Shape(ShapeShape)
                   .ValueFromShapes(ShapeOpValue)
                   .NotDifferentiable(kNumber)
                   .Sharding(ShapeSharding(true))
                   .Traits({Trait::kCheap})
                   .Doc("The shapes of its inputs, each as a vector."));
  registry.Add(OpDef("ConcatOffset")
                   .HostInput("concat_dim: int32")
                   .HostInput("shape: N * shape_type")
                   .HostOutput("offset: N * shape_type")
                   .Attr("N: int >= 2")
                   .Attr("shape_type: {int32, int64} = int32")
                   .Shape(ConcatOffsetShape)
                   .NotDifferentiable(kNumber)
                   .Traits({Trait::kCheap})
                   .Doc("Where tensors of these shapes begin in their concatenation."));
  registry.Add(OpDef("Size")
                   .Input("input: T")
                   .HostOutput("output: out_type")
                   .Attr("T: type")
                   .Attr("out_type: {int32, int64} = int32")
                   .Shape(ScalarShape)
                   .ValueFromShapes(SizeValue)
                   .NotDifferentiable(kNumber)
                   .Sharding(ShapeSharding(true))
                   .Traits({Trait::kCheap})
                   .Doc("The number of elements of its input."));
  registry.Add(OpDef("Rank")
                   .Input("input: T")
                   .HostOutput("output: int32")
                   .Attr("T: type")
                   .Shape(ScalarShape)
                   .ValueFromShapes(RankValue)
                   .NotDifferentiable(kNumber)
                   .Sharding(ShapeSharding(false))
                   .Traits({Trait::kCheap})
                   .Doc("The number of dimensions of its input."));
  registry.Add(OpDef("Reshape")
                   .Input("tensor: T")
                   .HostInput("shape: Tshape")
                   .Output("output: T")
                   .Attr("T: type")
                   .Attr("Tshape: {int32, int64} = int32")
                   .Shape(ReshapeShape)
                   .Gradient(LikeInputGradient)
                   .Sharding(ReshapeSharding)
                   .Traits({Trait::kAllocatesOutputs, Trait::kCheap})
                   .Doc("The same elements in another shape, of which one extent may be -1."));
  registry.Add(OpDef("ExpandDims")
                   .Input("input: T")
                   .HostInput("dim: Tdim")
                   .Output("output: T")
                   .Attr("T: type")
                   .Attr("Tdim: {int32, int64} = int32")
                   .Shape(ExpandDimsShape)
                   .Gradient(LikeInputGradient)
                   .Sharding(ExpandDimsSharding)
                   .Traits({Trait::kAllocatesOutputs, Trait::kCheap})
                   .Doc("The same elements with a dimension of extent 1 inserted."));
  registry.Add(OpDef("Squeeze")
                   .Input("input: T")
                   .Output("output: T")
                   .Attr("T: type")
                   .Attr("squeeze_dims: list(int) >= 0 = []")
                   .Shape(SqueezeShape)
                   .Gradient(LikeInputGradient)
                   .Sharding(SqueezeSharding)
                   .Traits({Trait::kAllocatesOutputs, Trait::kCheap})
                   .Doc("The same elements without dimensions of extent 1: all, or those named."));
  registry.Add(OpDef("BroadcastGradientArgs")
                   .HostInput("s0: T")
                   .HostInput("s1: T")
                   .HostOutput("r0: T")
                   .HostOutput("r1: T")
                   .Attr("T: {int32, int64} = int32")
                   .Shape(BroadcastGradientArgsShape)
                   .NotDifferentiable(kNumber)
                   .Traits({Trait::kAllocatesOutputs, Trait::kCheap})
                   .Doc("The axes along which each of two shapes is repeated when broadcast with "
                        "the other."));
}

}  // namespace millrace
