#include <algorithm>

#include "ops/array_ops.h"
#include "ops/gather_gradients.h"
#include "ops/node_call.h"
#include "ops/op_families.h"
#include "ops/shape_functions.h"

// Slices and elements found by index, and slices summed by index.
namespace millrace {

Value Gather(Value x, Value indices, int64_t axis, SourceLocation where) {
  if (!x.ok()) return x;
  const Value at = Scalar(*x.builder(), static_cast<double>(axis), DType::kInt32, where);
  return Call("GatherV2", {x, indices, at}, {}, where);
}
Value GatherNd(Value x, Value indices, SourceLocation where) {
  return Call("GatherNd", {x, indices}, {}, where);
}
Value ScatterNd(Value indices, Value updates, Value shape, SourceLocation where) {
  return Call("ScatterNd", {indices, updates, shape}, {}, where);
}
Value UnsortedSegmentSum(Value data, Value segment_ids, Value num_segments, SourceLocation where) {
  return Call("UnsortedSegmentSum", {data, segment_ids, num_segments}, {}, where);
}

namespace {

// `head` followed by the dimensions of `tail` from `from` on; unknown if a rank is.
StatusOr<PartialShape> Joined(std::vector<int64_t> head, const PartialShape& tail, int from) {
  for (int i = from; i < tail.rank(); ++i) head.push_back(tail.dim(i));
  return PartialShape::Create(head);
}

// Whether `whole` begins with the dimensions of `prefix`, as far as is known.
Status CheckPrefix(const PartialShape& whole, const PartialShape& prefix, absl::string_view what,
                   absl::string_view prefix_name) {
  if (!whole.has_rank() || !prefix.has_rank()) return absl::OkStatus();
  bool fits = prefix.rank() <= whole.rank();
  for (int i = 0; fits && i < prefix.rank(); ++i) {
    fits = !whole.dim_known(i) || !prefix.dim_known(i) || whole.dim(i) == prefix.dim(i);
  }
  if (fits) return absl::OkStatus();
  return InvalidArgument(what, " has shape ", whole.ToString(),
                         ", which does not begin with that of ", prefix_name, ", ",
                         prefix.ToString());
}

Status SegmentSumShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(CheckScalar(c, 2, "num_segments"));
  const PartialShape &data = c.input(0), &ids = c.input(1);
  MR_RETURN_IF_ERROR(CheckPrefix(data, ids, "data", "segment_ids"));
  const int64_t segments = IntElement(c.host_value(2)).value_or(PartialShape::kUnknown);
  if (c.host_value(2) != nullptr && segments < 0) {
    return InvalidArgument("num_segments must not be negative, but is ", segments);
  }
  if (!data.has_rank() || !ids.has_rank()) return absl::OkStatus();
  return SetOutput(c, 0, Joined({segments}, data, ids.rank()));
}

// The last dimension of indices: how many dimensions an index names. -1 if not known.
StatusOr<int> IndexDepth(const PartialShape& indices) {
  if (!indices.has_rank()) return -1;
  if (indices.rank() == 0) {
    return InvalidArgument("indices must have a last dimension that is an index each, but is a ",
                           "scalar");
  }
  const int64_t depth = indices.dim(indices.rank() - 1);
  if (depth > kMaxRank) {
    return InvalidArgument("indices ", indices.ToString(), " name ", depth, " dimensions; at most ",
                           kMaxRank, " are there");
  }
  return static_cast<int>(depth);
}

// What indices leave: their own shape without the last dimension.
std::vector<int64_t> Outer(const PartialShape& indices) {
  std::vector<int64_t> outer = Extents(indices);
  outer.pop_back();
  return outer;
}

Status GatherNdShape(ShapeContext& c) {
  const PartialShape &params = c.input(0), &indices = c.input(1);
  MR_ASSIGN_OR_RETURN(const int depth, IndexDepth(indices));
  if (!params.has_rank() || depth < 0) return absl::OkStatus();
  if (depth > params.rank()) {
    return InvalidArgument("indices ", indices.ToString(), " name ", depth,
                           " dimensions, but params has shape ", params.ToString());
  }
  return SetOutput(c, 0, Joined(Outer(indices), params, depth));
}

Status ScatterNdShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape whole, ShapeOperand(c, 2, "shape"));
  c.set_output(0, whole);
  const PartialShape& indices = c.input(0);
  MR_ASSIGN_OR_RETURN(const int depth, IndexDepth(indices));
  if (!whole.has_rank() || depth < 0) return absl::OkStatus();
  if (depth > whole.rank()) {
    return InvalidArgument("indices ", indices.ToString(), " name ", depth,
                           " dimensions, but shape is ", whole.ToString());
  }
  MR_ASSIGN_OR_RETURN(const PartialShape slices, Joined(Outer(indices), whole, depth));
  if (slices.MergeWith(c.input(1)).ok()) return absl::OkStatus();
  return InvalidArgument("updates has shape ", c.input(1).ToString(), ", but indices ",
                         indices.ToString(), " and shape ", whole.ToString(), " ask for ",
                         slices.ToString());
}

Status GatherNdGradient(GradientContext& c) {
  const Value shape = ShapeOf(c.input(0), c.input(1).dtype());
  c.set_dx(0, ScatterNd(c.input(1), c.dy(0), shape, SourceLocation::Current()));
  return absl::OkStatus();
}

Status ScatterNdGradient(GradientContext& c) {
  c.set_dx(1, GatherNd(c.dy(0), c.input(0), SourceLocation::Current()));
  return absl::OkStatus();
}

// Shape of the variable behind the handle: c.input(0).
Status ResourceGatherShape(ShapeContext& c) {
  const PartialShape &params = c.input(0), &indices = c.input(1);
  if (params.has_rank() && params.rank() == 0) {
    return InvalidArgument("the variable is a scalar: nothing can be gathered from it");
  }
  if (!params.has_rank() || !indices.has_rank()) return absl::OkStatus();
  const int64_t given = c.attrs().GetOr<int64_t>("batch_dims", 0);
  const int64_t batch = given < 0 ? given + indices.rank() : given;
  if (batch < 0 || batch > indices.rank() || batch >= params.rank()) {
    return InvalidArgument("batch_dims ", given, " does not fit indices ", indices.ToString(),
                           " and the variable's shape ", params.ToString());
  }
  for (int i = 0; i < batch; ++i) {
    if (params.dim_known(i) && indices.dim_known(i) && params.dim(i) != indices.dim(i)) {
      return InvalidArgument("batch dimension ", i, " of the variable ", params.ToString(),
                             " and indices ", indices.ToString(), " differ");
    }
  }
  return SetOutput(c, 0, Joined(Extents(indices), params, static_cast<int>(batch) + 1));
}

// Updates: indices' shape followed by the variable's without its first dimension, or a scalar.
Status ResourceScatterShape(ShapeContext& c) {
  const PartialShape &variable = c.input(0), &indices = c.input(1), &updates = c.input(2);
  if (variable.has_rank() && variable.rank() == 0) {
    return InvalidArgument("the variable is a scalar: it has no rows");
  }
  if (!variable.has_rank() || !indices.has_rank() || !updates.has_rank() || updates.rank() == 0) {
    return absl::OkStatus();
  }
  MR_ASSIGN_OR_RETURN(const PartialShape rows, Joined(Extents(indices), variable, 1));
  if (rows.MergeWith(updates).ok()) return absl::OkStatus();
  return InvalidArgument("updates has shape ", updates.ToString(), ", but indices ",
                         indices.ToString(), " of the variable ", variable.ToString(), " ask for ",
                         rows.ToString());
}

OpDef ResourceScatter(const char* name, const char* doc) {
  return OpDef(name)
      .Input("resource: resource")
      .Input("indices: Tindices")
      .Input("updates: dtype")
      .Attr("dtype: {float, double, int32, int64}")
      .Attr("Tindices: {int32, int64}")
      .Shape(ResourceScatterShape)
      .NotDifferentiable("it has no outputs")
      .Traits({Trait::kStateful, Trait::kWritesVariable})
      .Doc(doc);
}

}  // namespace

void RegisterScatterOps(OpRegistry& registry) {
  registry.Add(OpDef("UnsortedSegmentSum")
                   .Input("data: T")
                   .Input("segment_ids: Tindices")
                   .HostInput("num_segments: Tnumsegments")
                   .Output("output: T")
                   .Attr("T: {float, double, int32, int64}")
                   .Attr("Tindices: {int32, int64}")
                   .Attr("Tnumsegments: {int32, int64} = int32")
                   .Shape(SegmentSumShape)
                   .Gradient(SegmentSumGradient)
                   .Doc("Sums of the slices of data that have one id; a negative id counts "
                        "nowhere."));
  registry.Add(OpDef("GatherNd")
                   .Input("params: Tparams")
                   .Input("indices: Tindices")
                   .Output("output: Tparams")
                   .Attr("Tparams: type")
                   .Attr("Tindices: {int32, int64}")
                   .Attr("bad_indices_policy: {'', 'DEFAULT', 'ERROR'} = ''")
                   .Shape(GatherNdShape)
                   .Gradient(GatherNdGradient)
                   .Doc("The slices of params that indices name by their last dimension."));
  registry.Add(OpDef("ScatterNd")
                   .Input("indices: Tindices")
                   .Input("updates: T")
                   .HostInput("shape: Tindices")
                   .Output("output: T")
                   .Attr("T: {float, double, int32, int64}")
                   .Attr("Tindices: {int32, int64}")
                   .Attr("bad_indices_policy: {'', 'DEFAULT', 'ERROR'} = ''")
                   .Shape(ScatterNdShape)
                   .Gradient(ScatterNdGradient)
                   .Doc("Zeros of a shape with updates added at indices."));
  registry.Add(
      OpDef("ResourceGather")
          .Input("resource: resource")
          .Input("indices: Tindices")
          .Output("output: dtype")
          .Attr("batch_dims: int = 0")
          .Attr("validate_indices: bool = true")
          .Attr("dtype: type")
          .Attr("Tindices: {int32, int64}")
          .Shape(ResourceGatherShape)
          .NotDifferentiable("its input is a handle; read the variable and gather from its value")
          .Traits({Trait::kStateful, Trait::kReadsVariable, Trait::kAllocatesOutputs})
          .Doc("The rows of a variable that the indices name, without a copy of the rest."));
  registry.Add(ResourceScatter("ResourceScatterAdd", "Rows of a variable grow, in place."));
  registry.Add(ResourceScatter("ResourceScatterSub", "Rows of a variable shrink, in place."));
}

}  // namespace millrace
