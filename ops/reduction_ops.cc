#include "ops/array_ops.h"
#include "ops/gradient_shapes.h"
#include "ops/math_ops.h"
#include "ops/node_call.h"
#include "ops/op_families.h"
#include "ops/reduction.h"
#include "ops/reduction_gradients.h"
#include "ops/shape_functions.h"
#include "ops/sharding_rules.h"

// Functions that take whole dimensions to one element.
namespace millrace {

Value Reduce(absl::string_view op, Value x, Value axes, bool keep_dims, SourceLocation where) {
  return Call(op, {x, axes}, {{"keep_dims", keep_dims}}, where);
}

Value AllAxes(Value x, SourceLocation where) {
  if (!x.ok()) return x;
  const PartialShape shape = x.shape();
  if (!shape.has_rank()) {
    GraphBuilder& b = *x.builder();
    return Range(Scalar(b, 0, DType::kInt32, where), Rank(x, where),
                 Scalar(b, 1, DType::kInt32, where), where);
  }
  std::vector<int64_t> axes(shape.rank());
  for (int i = 0; i < shape.rank(); ++i) axes[i] = i;
  return IntVector(*x.builder(), std::move(axes), where);
}

namespace {

Value ReduceAlong(absl::string_view op, Value x, std::vector<int64_t> axes, bool keep_dims,
                  Where where) {
  if (!x.ok()) return x;
  const Value along =
      axes.empty() ? AllAxes(x, where) : IntVector(*x.builder(), std::move(axes), where);
  return Reduce(op, x, along, keep_dims, where);
}

}  // namespace

Value ReduceSum(Value x, std::vector<int64_t> axes, bool keep_dims, Where where) {
  return ReduceAlong("Sum", x, std::move(axes), keep_dims, where);
}
Value ReduceMean(Value x, std::vector<int64_t> axes, bool keep_dims, Where where) {
  return ReduceAlong("Mean", x, std::move(axes), keep_dims, where);
}
Value ReduceMax(Value x, std::vector<int64_t> axes, bool keep_dims, Where where) {
  return ReduceAlong("Max", x, std::move(axes), keep_dims, where);
}
Value ReduceMin(Value x, std::vector<int64_t> axes, bool keep_dims, Where where) {
  return ReduceAlong("Min", x, std::move(axes), keep_dims, where);
}
Value ReduceProd(Value x, std::vector<int64_t> axes, bool keep_dims, Where where) {
  return ReduceAlong("Prod", x, std::move(axes), keep_dims, where);
}
Value ReduceAll(Value x, std::vector<int64_t> axes, bool keep_dims, Where where) {
  return ReduceAlong("All", x, std::move(axes), keep_dims, where);
}
Value ReduceAny(Value x, std::vector<int64_t> axes, bool keep_dims, Where where) {
  return ReduceAlong("Any", x, std::move(axes), keep_dims, where);
}

namespace {

Value IndexAlong(const char* op, Value x, int64_t axis, Where where) {
  if (!x.ok()) return x;
  const Value dimension =
      Const(*x.builder(), Tensor::Scalar(static_cast<int32_t>(axis)), "", where);
  return Call(op, {x, dimension}, {}, where);
}

}  // namespace

Value ArgMax(Value x, int64_t axis, Where where) { return IndexAlong("ArgMax", x, axis, where); }
Value ArgMin(Value x, int64_t axis, Where where) { return IndexAlong("ArgMin", x, axis, where); }
Value L2Loss(Value x, Where where) { return Call("L2Loss", {x}, {}, where); }

namespace {

// The input's extents without the axes, or with 1 in their place.
StatusOr<PartialShape> Reduced(const PartialShape& in, absl::Span<const int64_t> axes,
                               bool keep_dims) {
  MR_ASSIGN_OR_RETURN(const std::vector<int> normal, NormalizeAxes(axes, in.rank()));
  std::vector<int64_t> dims = Extents(in);
  for (auto axis = normal.rbegin(); axis != normal.rend(); ++axis) {
    if (keep_dims) {
      dims[*axis] = 1;
    } else {
      dims.erase(dims.begin() + *axis);
    }
  }
  return PartialShape::Create(dims);
}

Status ReductionShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(CheckVectorOrScalar(c, 1, "reduction_indices"));
  const PartialShape& in = c.input(0);
  const bool keep_dims = c.attrs().GetOr("keep_dims", false);
  if (!in.has_rank()) return absl::OkStatus();
  if (const auto axes = IntElements(c.host_value(1))) {
    return SetOutput(c, 0, Reduced(in, *axes, keep_dims));
  }
  if (keep_dims) {
    c.set_output(0, UnknownOfRank(in.rank()));
    return absl::OkStatus();
  }
  const auto count = NumElements(c.input(1));
  if (!count) return absl::OkStatus();
  if (*count > in.rank()) {
    return InvalidArgument(*count, " axes to reduce, but the input ", in.ToString(), " has rank ",
                           in.rank());
  }
  c.set_output(0, UnknownOfRank(in.rank() - static_cast<int>(*count)));
  return absl::OkStatus();
}

Status ArgExtremeShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(CheckScalar(c, 1, "dimension"));
  const PartialShape& in = c.input(0);
  if (!in.has_rank()) return absl::OkStatus();
  if (in.rank() == 0) return InvalidArgument("the input is a scalar: it has no axis");
  const auto axis = IntElement(c.host_value(1));
  if (!axis) {
    c.set_output(0, UnknownOfRank(in.rank() - 1));
    return absl::OkStatus();
  }
  MR_ASSIGN_OR_RETURN(const int normal, NormalizeAxis(*axis, in.rank()));
  MR_ASSIGN_OR_RETURN(const PartialShape rest, Reduced(in, {normal}, false));
  if (in.dim(normal) == 0 && NumElements(rest).value_or(0) > 0) {
    return InvalidArgument("axis ", normal, " of the input ", in.ToString(),
                           " is empty: none of its elements is extreme");
  }
  c.set_output(0, rest);
  return absl::OkStatus();
}

// A split dimension that stays is split in the output; one that is reduced gives `reduced`, or must
// be whole if the parts cannot be combined by a sum.
enum class Parts { kSum, kMean, kWhole };

ShardingFn ReductionSharding(Parts parts) {
  return [parts](ShardingContext& c) -> Status {
    c.Require(1, Sharding::Replicated());
    const Sharding in = c.input(0);
    if (in.kind == Sharding::kReplicated) return absl::OkStatus();
    if (in.kind == Sharding::kPartialSum && parts != Parts::kWhole) return SameSharding(c);
    const auto axes = IntElements(c.host_value(1));
    const PartialShape& shape = c.input_shape(0);
    if (in.kind == Sharding::kPartialSum || !axes || !shape.has_rank()) {
      c.Require(0, Sharding::Replicated());
      return absl::OkStatus();
    }
    MR_ASSIGN_OR_RETURN(const std::vector<int> normal, NormalizeAxes(*axes, shape.rank()));
    int before = 0;
    for (int axis : normal) {
      before += axis < in.dim;
      if (axis != in.dim) continue;
      if (parts == Parts::kWhole) {
        c.Require(0, Sharding::Replicated());
        return absl::OkStatus();
      }
      if (parts == Parts::kMean) c.set_mean_over_parts(0);
      c.set_output(0, Sharding::PartialSum());
      return absl::OkStatus();
    }
    c.set_output(0,
                 Sharding::Split(c.attrs().GetOr("keep_dims", false) ? in.dim : in.dim - before));
    return absl::OkStatus();
  };
}

Status L2LossSharding(ShardingContext& c) {
  if (c.input(0).kind == Sharding::kPartialSum) c.Require(0, Sharding::Replicated());
  if (c.input(0).kind == Sharding::kSplit) c.set_output(0, Sharding::PartialSum());
  return absl::OkStatus();
}

// What all reductions declare alike.
OpDef& AddReduction(OpDef& op, Parts parts) {
  op.Attr("Tidx: {int32, int64} = int32").Attr("keep_dims: bool = false");
  op.Shape(ReductionShape).Sharding(ReductionSharding(parts));
  op.Cost([](const ShapeContext& c) { return OpCost{Elements(c.input(0)), TouchedBytes(c)}; });
  return op;
}

OpDef Reduction(const char* name, GradientFn gradient, Parts parts) {
  OpDef op(name);
  op.Input("input: T").HostInput("reduction_indices: Tidx").Output("output: T");
  op.Attr("T: {float, double, int32, int64}").Gradient(std::move(gradient));
  return AddReduction(op, parts);
}

OpDef LogicalReduction(const char* name) {
  OpDef op(name);
  op.Input("input: bool").HostInput("reduction_indices: Tidx").Output("output: bool");
  op.NotDifferentiable("it is a function of booleans");
  return AddReduction(op, Parts::kWhole);
}

OpDef ArgExtreme(const char* name) {
  OpDef op(name);
  op.Input("input: T").HostInput("dimension: Tidx").Output("output: output_type");
  op.Attr("T: {float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64, bool}");
  op.Attr("Tidx: {int32, int64} = int32").Attr("output_type: {int32, int64} = int64");
  op.Shape(ArgExtremeShape).Sharding(ReductionSharding(Parts::kWhole));
  op.NotDifferentiable("its output is an index");
  return op;
}

}  // namespace

void RegisterReductionOps(OpRegistry& registry) {
  registry.Add(
      Reduction("Sum", SumGradient, Parts::kSum).Doc("The sum of the elements along axes."));
  registry.Add(
      Reduction("Mean", MeanGradient, Parts::kMean).Doc("The mean of the elements along axes."));
  registry.Add(
      Reduction("Max", MaxGradient, Parts::kWhole).Doc("The largest of the elements along axes."));
  registry.Add(
      Reduction("Min", MaxGradient, Parts::kWhole).Doc("The smallest of the elements along axes."));
  registry.Add(Reduction("Prod", ProdGradient, Parts::kWhole)
                   .Doc("The product of the elements along axes."));
  registry.Add(LogicalReduction("All").Doc("Whether all elements along axes are true."));
  registry.Add(LogicalReduction("Any").Doc("Whether any element along axes is true."));
  registry.Add(ArgExtreme("ArgMax").Doc(
      "The index of the largest element along an axis; the first of equals."));
  registry.Add(ArgExtreme("ArgMin").Doc(
      "The index of the smallest element along an axis; the first of equals."));
  registry.Add(OpDef("L2Loss")
                   .Input("t: T")
                   .Output("output: T")
                   .Attr("T: {float, double}")
                   .Shape(ScalarShape)
                   .Gradient(L2LossGradient)
                   .Sharding(L2LossSharding)
                   .Doc("Half the sum of the squares of all elements."));
}

}  // namespace millrace
