#include <algorithm>
#include <numeric>

#include "core/base/checked_math.h"
#include "ops/array_ops.h"
#include "ops/movement_gradients.h"
#include "ops/node_call.h"
#include "ops/op_families.h"
#include "ops/shape_functions.h"
#include "ops/sharding_rules.h"

// Tensors joined along an axis, and split again.
namespace millrace {

Value Concat(absl::Span<const Value> values, int64_t axis, SourceLocation where) {
  if (values.empty()) return Value();
  if (!values[0].ok()) return values[0];
  if (values.size() == 1) return values[0];
  std::vector<Value> inputs(values.begin(), values.end());
  inputs.push_back(Scalar(*values[0].builder(), static_cast<double>(axis), DType::kInt32, where));
  return Call("ConcatV2", inputs, {{"N", static_cast<int64_t>(values.size())}}, where);
}

Value Stack(absl::Span<const Value> values, int64_t axis, SourceLocation where) {
  return Call("Pack", values, {{"N", static_cast<int64_t>(values.size())}, {"axis", axis}}, where);
}

std::vector<Value> Unstack(Value x, int count, int64_t axis, SourceLocation where) {
  return CallMany("Unpack", {x}, {{"num", static_cast<int64_t>(count)}, {"axis", axis}}, count,
                  where);
}

std::vector<Value> Split(Value x, int count, int64_t axis, SourceLocation where) {
  if (!x.ok()) return std::vector<Value>(std::max(count, 0), x);
  const Value at = Scalar(*x.builder(), static_cast<double>(axis), DType::kInt32, where);
  return CallMany("Split", {at, x}, {{"num_split", static_cast<int64_t>(count)}}, count, where);
}

std::vector<Value> Split(Value x, std::vector<int64_t> sizes, int64_t axis, SourceLocation where) {
  const int count = static_cast<int>(sizes.size());
  if (!x.ok()) return std::vector<Value>(count, x);
  GraphBuilder& b = *x.builder();
  const Value at = Scalar(b, static_cast<double>(axis), DType::kInt32, where);
  return CallMany("SplitV", {x, IntVector(b, std::move(sizes), where), at},
                  {{"num_split", static_cast<int64_t>(count)}}, count, where);
}

namespace {

// The axis operand of ConcatV2 is its last input.
Status ConcatShape(ShapeContext& c) {
  const int count = c.num_inputs() - 1;
  MR_RETURN_IF_ERROR(CheckScalar(c, count, "axis"));
  const auto axis_value = IntElement(c.host_value(count));
  int rank = -1;
  for (int i = 0; i < count; ++i) {
    if (!c.input(i).has_rank()) continue;
    if (rank >= 0 && c.input(i).rank() != rank) {
      return InvalidArgument("all inputs must have one rank, but input ", i, " has shape ",
                             c.input(i).ToString(), " and those before have rank ", rank);
    }
    rank = c.input(i).rank();
  }
  if (rank == 0) return InvalidArgument("scalars cannot be concatenated");
  if (rank < 0 || !axis_value) {
    c.set_output(0, UnknownOfRank(rank));
    return absl::OkStatus();
  }
  MR_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(*axis_value, rank));
  PartialShape others;  // what all agree on, but for the axis
  int64_t extent = 0;
  for (int i = 0; i < count; ++i) {
    const PartialShape& input = c.input(i);
    const bool known = input.has_rank() && input.dim_known(axis);
    if (extent >= 0 && (!known || !CheckedAdd(extent, input.dim(axis), &extent))) {
      extent = PartialShape::kUnknown;
    }
    if (!input.has_rank()) continue;
    std::vector<int64_t> dims = Extents(input);
    dims[axis] = PartialShape::kUnknown;
    MR_ASSIGN_OR_RETURN(const PartialShape rest, PartialShape::Create(dims));
    auto merged = others.MergeWith(rest);
    if (!merged.ok()) {
      return InvalidArgument("input ", i, " has shape ", input.ToString(), ", which does not fit ",
                             others.ToString(), " of those before, axis ", axis, " aside");
    }
    others = *merged;
  }
  std::vector<int64_t> dims = Extents(others);
  dims[axis] = extent;
  return SetOutput(c, 0, PartialShape::Create(dims));
}

Status ConcatSharding(ShardingContext& c) {
  const int count = c.num_inputs() - 1;
  c.Require(count, Sharding::Replicated());
  const auto axis_value = IntElement(c.host_value(count));
  int split = -1;
  int partial = 0;
  for (int i = 0; i < count; ++i) {
    if (split < 0 && c.input(i).kind == Sharding::kSplit) split = i;
    partial += c.input(i).kind == Sharding::kPartialSum;
  }
  Sharding all = Sharding::Replicated();
  if (partial == count) {
    all = Sharding::PartialSum();
  } else if (split >= 0 && axis_value && c.output_shape(0).has_rank()) {
    MR_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(*axis_value, c.output_shape(0).rank()));
    if (c.input(split).dim != axis) all = c.input(split);
  }
  for (int i = 0; i < count; ++i) c.Require(i, all);
  c.set_output(0, all);
  return absl::OkStatus();
}

int64_t AxisAttr(const AttrMap& attrs) { return attrs.GetOr<int64_t>("axis", 0); }

Status PackShape(ShapeContext& c) {
  PartialShape each;
  for (int i = 0; i < c.num_inputs(); ++i) {
    const auto merged = each.MergeWith(c.input(i));
    if (!merged.ok()) {
      return InvalidArgument("input ", i, " has shape ", c.input(i).ToString(),
                             ", but those before have ", each.ToString());
    }
    each = *merged;
  }
  if (!each.has_rank()) return absl::OkStatus();
  MR_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(AxisAttr(c.attrs()), each.rank() + 1));
  std::vector<int64_t> dims = Extents(each);
  dims.insert(dims.begin() + axis, c.num_inputs());
  return SetOutput(c, 0, PartialShape::Create(dims));
}

// Split inputs give a result that is split along the same elements.
Status PackSharding(ShardingContext& c) {
  const Sharding first = c.input(0);
  bool same = true;
  for (int i = 1; i < c.num_inputs(); ++i) {
    same = same && c.input(i).kind == first.kind && c.input(i).dim == first.dim;
  }
  if (!same || !c.input_shape(0).has_rank()) {
    RequireReplicated(c);
    c.set_output(0, Sharding::Replicated());
    return absl::OkStatus();
  }
  c.set_output(0, first);
  if (first.kind != Sharding::kSplit) return absl::OkStatus();
  MR_ASSIGN_OR_RETURN(const int axis,
                      NormalizeAxis(AxisAttr(c.attrs()), c.input_shape(0).rank() + 1));
  c.set_output(0, Sharding::Split(first.dim + (axis <= first.dim ? 1 : 0)));
  return absl::OkStatus();
}

Status PackGradient(GradientContext& c) {
  const std::vector<Value> dx =
      Unstack(c.dy(0), c.num_inputs(), AxisAttr(c.attrs()), SourceLocation::Current());
  for (int i = 0; i < c.num_inputs(); ++i) c.set_dx(i, dx[i]);
  return absl::OkStatus();
}

Status UnpackShape(ShapeContext& c) {
  const PartialShape& x = c.input(0);
  if (!x.has_rank()) return absl::OkStatus();
  if (x.rank() == 0) return InvalidArgument("a scalar cannot be unstacked");
  MR_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(AxisAttr(c.attrs()), x.rank()));
  if (x.dim_known(axis) && x.dim(axis) != c.num_outputs()) {
    return InvalidArgument("axis ", axis, " of the input ", x.ToString(), " has extent ",
                           x.dim(axis), ", but num is ", c.num_outputs());
  }
  std::vector<int64_t> dims = Extents(x);
  dims.erase(dims.begin() + axis);
  for (int i = 0; i < c.num_outputs(); ++i) {
    MR_RETURN_IF_ERROR(SetOutput(c, i, PartialShape::Create(dims)));
  }
  return absl::OkStatus();
}

Status UnpackSharding(ShardingContext& c) {
  const Sharding x = c.input(0);
  if (x.kind == Sharding::kSplit) {
    if (!c.input_shape(0).has_rank()) {
      c.Require(0, Sharding::Replicated());
      return absl::OkStatus();
    }
    MR_ASSIGN_OR_RETURN(const int axis,
                        NormalizeAxis(AxisAttr(c.attrs()), c.input_shape(0).rank()));
    if (x.dim == axis) {
      c.Require(0, Sharding::Replicated());
      return absl::OkStatus();
    }
    for (int i = 0; i < c.num_outputs(); ++i) {
      c.set_output(i, Sharding::Split(x.dim - (axis < x.dim ? 1 : 0)));
    }
    return absl::OkStatus();
  }
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, x);
  return absl::OkStatus();
}

// The gradients of all outputs; nothing if none is asked for.
std::vector<Value> AllGradients(GradientContext& c, int outputs) {
  std::vector<Value> dys;
  for (int i = 0; i < outputs; ++i) dys.push_back(c.dy(i));
  return dys;
}

Status UnpackGradient(GradientContext& c) {
  c.set_dx(0, Stack(AllGradients(c, c.node().num_outputs()), AxisAttr(c.attrs()),
                    SourceLocation::Current()));
  return absl::OkStatus();
}

// Outputs of Split and SplitV: x's shape with `extents` along the axis; all unknown where the axis
// is.
Status SetParts(ShapeContext& c, const PartialShape& x, std::optional<int64_t> axis_value,
                absl::FunctionRef<StatusOr<std::vector<int64_t>>(int64_t extent)> extents) {
  if (!x.has_rank()) return absl::OkStatus();
  if (x.rank() == 0) return InvalidArgument("a scalar cannot be split");
  if (!axis_value) {
    for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, UnknownOfRank(x.rank()));
    return absl::OkStatus();
  }
  MR_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(*axis_value, x.rank()));
  MR_ASSIGN_OR_RETURN(const std::vector<int64_t> parts, extents(x.dim(axis)));
  std::vector<int64_t> dims = Extents(x);
  for (int i = 0; i < c.num_outputs(); ++i) {
    dims[axis] = parts[i];
    MR_RETURN_IF_ERROR(SetOutput(c, i, PartialShape::Create(dims)));
  }
  return absl::OkStatus();
}

Status SplitShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(CheckScalar(c, 0, "split_dim"));
  const int64_t count = c.num_outputs();
  return SetParts(c, c.input(1), IntElement(c.host_value(0)),
                  [&](int64_t extent) -> StatusOr<std::vector<int64_t>> {
                    if (extent < 0) return std::vector<int64_t>(count, PartialShape::kUnknown);
                    if (extent % count != 0) {
                      return InvalidArgument(
                          "an extent of ", extent, " of the input ", c.input(1).ToString(),
                          " cannot be split into num_split = ", count, " equal parts");
                    }
                    return std::vector<int64_t>(count, extent / count);
                  });
}

// The sizes with the one that is -1 replaced by what is left of `extent`, -1 for unknown.
StatusOr<std::vector<int64_t>> ResolveSizes(std::vector<int64_t> sizes, int64_t extent) {
  int open = -1;
  int64_t sum = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == -1 && open < 0) {
      open = static_cast<int>(i);
    } else if (sizes[i] < 0 || !CheckedAdd(sum, sizes[i], &sum)) {
      return InvalidArgument("size_splits[", i, "] is ", sizes[i],
                             sizes[i] == -1 ? ", but there is a -1 already" : "");
    }
  }
  if (extent < 0) return sizes;
  if (open < 0 ? sum != extent : sum > extent) {
    return InvalidArgument("size_splits add up to ", sum, ", but the axis has extent ", extent);
  }
  if (open >= 0) sizes[open] = extent - sum;
  return sizes;
}

Status SplitVShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(CheckScalar(c, 2, "split_dim"));
  MR_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  const auto count = static_cast<size_t>(c.num_outputs());
  const auto sizes = IntElements(c.host_value(1));
  const auto given = sizes ? std::optional<int64_t>(sizes->size()) : NumElements(c.input(1));
  if (given && *given != static_cast<int64_t>(count)) {
    return InvalidArgument("size_splits has ", *given, " elements, but num_split is ", count);
  }
  return SetParts(c, c.input(0), IntElement(c.host_value(2)),
                  [&](int64_t extent) -> StatusOr<std::vector<int64_t>> {
                    if (!sizes) return std::vector<int64_t>(count, PartialShape::kUnknown);
                    return ResolveSizes(*sizes, extent);
                  });
}

// Parts of a split are split along any other axis; partial sums stay partial.
ShardingFn SplitSharding(int value, int axis_operand) {
  return [value, axis_operand](ShardingContext& c) -> Status {
    const Sharding x = c.input(value);
    RequireReplicated(c);
    for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, Sharding::Replicated());
    const auto axis_value = IntElement(c.host_value(axis_operand));
    const PartialShape& shape = c.input_shape(value);
    if (x.kind == Sharding::kSplit) {
      if (!axis_value || !shape.has_rank()) return absl::OkStatus();
      MR_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(*axis_value, shape.rank()));
      if (axis == x.dim) return absl::OkStatus();
    }
    c.Require(value, x);
    for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, x);
    return absl::OkStatus();
  };
}

// The gradient of the split input: those of the parts joined along `axis`.
Value Joined(GradientContext& c, Value axis) {
  std::vector<Value> dys = AllGradients(c, c.node().num_outputs());
  if (dys.size() == 1) return dys[0];
  const auto count = static_cast<int64_t>(dys.size());
  dys.push_back(axis);
  return Call("ConcatV2", dys, {{"N", count}}, SourceLocation::Current());
}

Status SplitGradient(GradientContext& c) {
  c.set_dx(1, Joined(c, c.input(0)));
  return absl::OkStatus();
}

Status SplitVGradient(GradientContext& c) {
  c.set_dx(0, Joined(c, c.input(2)));
  return absl::OkStatus();
}

}  // namespace

void RegisterJoinOps(OpRegistry& registry) {
  registry.Add(OpDef("ConcatV2")
                   .Input("values: N * T")
                   .HostInput("axis: Tidx")
                   .Output("output: T")
                   .Attr("N: int >= 2")
                   .Attr("T: type")
                   .Attr("Tidx: {int32, int64} = int32")
                   .Shape(ConcatShape)
                   .Gradient(ConcatGradient)
                   .Sharding(ConcatSharding)
                   .Doc("Tensors joined along an axis."));
  registry.Add(OpDef("Pack")
                   .Input("values: N * T")
                   .Output("output: T")
                   .Attr("N: int >= 1")
                   .Attr("T: type")
                   .Attr("axis: int = 0")
                   .Shape(PackShape)
                   .Gradient(PackGradient)
                   .Sharding(PackSharding)
                   .Doc("Tensors of one shape stacked along a new axis."));
  registry.Add(OpDef("Unpack")
                   .Input("value: T")
                   .Output("output: num * T")
                   .Attr("num: int >= 0")
                   .Attr("T: type")
                   .Attr("axis: int = 0")
                   .Shape(UnpackShape)
                   .Gradient(UnpackGradient)
                   .Sharding(UnpackSharding)
                   .Doc("The slices along an axis, each without it."));
  registry.Add(OpDef("Split")
                   .HostInput("split_dim: int32")
                   .Input("value: T")
                   .Output("output: num_split * T")
                   .Attr("num_split: int >= 1")
                   .Attr("T: type")
                   .Shape(SplitShape)
                   .Gradient(SplitGradient)
                   .Sharding(SplitSharding(1, 0))
                   .Doc("Equal parts along an axis."));
  registry.Add(OpDef("SplitV")
                   .Input("value: T")
                   .HostInput("size_splits: Tlen")
                   .HostInput("split_dim: int32")
                   .Output("output: num_split * T")
                   .Attr("num_split: int >= 1")
                   .Attr("T: type")
                   .Attr("Tlen: {int32, int64} = int64")
                   .Shape(SplitVShape)
                   .Gradient(SplitVGradient)
                   .Sharding(SplitSharding(0, 2))
                   .Doc("Parts of given extents along an axis; one of them may be -1, the rest."));
}

}  // namespace millrace
