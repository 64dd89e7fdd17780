#include <cmath>

#include "ops/array_ops.h"
#include "ops/gather_gradients.h"
#include "ops/node_call.h"
#include "ops/op_families.h"
#include "ops/shape_functions.h"
#include "ops/sharding_rules.h"

// Indices: making them, and following them.
namespace millrace {

Value OneHot(Value indices, int64_t depth, DType dtype, SourceLocation where) {
  if (!indices.ok()) return indices;
  GraphBuilder& b = *indices.builder();
  const Value extent = Scalar(b, static_cast<double>(depth), DType::kInt32, where);
  return Call("OneHot", {indices, extent, Scalar(b, 1, dtype, where), Scalar(b, 0, dtype, where)},
              {}, where);
}
Value Range(Value start, Value limit, Value delta, SourceLocation where) {
  return Call("Range", {start, limit, delta}, {}, where);
}

namespace {

// Where the new dimension of OneHot goes, given the rank of the indices.
StatusOr<int> OneHotAxis(const AttrMap& attrs, int rank) {
  return NormalizeAxis(attrs.GetOr<int64_t>("axis", -1), rank + 1);
}

Status OneHotShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(CheckScalar(c, 1, "depth"));
  MR_RETURN_IF_ERROR(CheckScalar(c, 2, "on_value"));
  MR_RETURN_IF_ERROR(CheckScalar(c, 3, "off_value"));
  const PartialShape& indices = c.input(0);
  const int64_t depth = IntElement(c.host_value(1)).value_or(PartialShape::kUnknown);
  if (c.host_value(1) != nullptr && depth < 0) {
    return InvalidArgument("depth must not be negative, but is ", depth);
  }
  if (!indices.has_rank()) return absl::OkStatus();
  MR_ASSIGN_OR_RETURN(const int axis, OneHotAxis(c.attrs(), indices.rank()));
  std::vector<int64_t> dims = Extents(indices);
  dims.insert(dims.begin() + axis, depth);
  return SetOutput(c, 0, PartialShape::Create(dims));
}

Status OneHotSharding(ShardingContext& c) {
  const Sharding indices = c.input(0);
  RequireReplicated(c);
  c.set_output(0, Sharding::Replicated());
  if (indices.kind != Sharding::kSplit || !c.input_shape(0).has_rank()) return absl::OkStatus();
  MR_ASSIGN_OR_RETURN(const int axis, OneHotAxis(c.attrs(), c.input_shape(0).rank()));
  c.Require(0, indices);
  c.set_output(0, Sharding::Split(indices.dim + (axis <= indices.dim ? 1 : 0)));
  return absl::OkStatus();
}

// The one number that a host operand holds, if it is known.
std::optional<double> NumberElement(const Tensor* tensor) {
  if (tensor == nullptr || tensor->num_elements() != 1) return std::nullopt;
  if (tensor->dtype() == DType::kFloat) return tensor->span<float>()[0];
  if (tensor->dtype() == DType::kDouble) return tensor->span<double>()[0];
  if (const auto whole = IntElement(tensor)) return static_cast<double>(*whole);
  return std::nullopt;
}

Status RangeShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(CheckScalar(c, 0, "start"));
  MR_RETURN_IF_ERROR(CheckScalar(c, 1, "limit"));
  MR_RETURN_IF_ERROR(CheckScalar(c, 2, "delta"));
  c.set_output(0, PartialShape{PartialShape::kUnknown});
  const auto delta = NumberElement(c.host_value(2));
  if (delta == 0.0) return InvalidArgument("delta must not be 0");
  // Integers beyond 2^53 are not exact as doubles: their count is left to the kernel.
  const auto start = NumberElement(c.host_value(0)), limit = NumberElement(c.host_value(1));
  constexpr double kExact = 9007199254740992.0;
  if (!delta || !start || !limit || !(std::abs(*start) < kExact) || !(std::abs(*limit) < kExact)) {
    return absl::OkStatus();
  }
  const double count = std::ceil((*limit - *start) / *delta);
  if (!(count < kExact)) return absl::OkStatus();
  c.set_output(0, PartialShape{count > 0 ? static_cast<int64_t>(count) : 0});
  return absl::OkStatus();
}

// Normalised axis and batch_dims of GatherV2.
struct GatherAxes {
  int axis = 0;
  int batch = 0;
};

StatusOr<GatherAxes> AxesOfGather(const AttrMap& attrs, const Tensor* axis,
                                  const PartialShape& params, const PartialShape& indices) {
  const auto value = IntElement(axis);
  if (!value) return NotFound("the axis is not known");
  GatherAxes axes;
  MR_ASSIGN_OR_RETURN(axes.axis, NormalizeAxis(*value, params.rank()));
  const int64_t batch = attrs.GetOr<int64_t>("batch_dims", 0);
  const int64_t normal = batch < 0 ? batch + indices.rank() : batch;
  if (normal < 0 || normal > indices.rank() || normal > axes.axis) {
    return InvalidArgument("batch_dims ", batch, " does not fit indices of rank ", indices.rank(),
                           " and axis ", axes.axis);
  }
  axes.batch = static_cast<int>(normal);
  return axes;
}

Status GatherShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(CheckScalar(c, 2, "axis"));
  const PartialShape& params = c.input(0);
  const PartialShape& indices = c.input(1);
  if (params.has_rank() && params.rank() == 0) {
    return InvalidArgument("params is a scalar: nothing can be gathered from it");
  }
  if (!params.has_rank() || !indices.has_rank() || c.host_value(2) == nullptr) {
    return absl::OkStatus();
  }
  MR_ASSIGN_OR_RETURN(const GatherAxes axes,
                      AxesOfGather(c.attrs(), c.host_value(2), params, indices));
  std::vector<int64_t> dims;
  for (int i = 0; i < axes.axis; ++i) {
    int64_t extent = params.dim(i);
    if (i < axes.batch) {
      const int64_t other = indices.dim(i);
      if (extent >= 0 && other >= 0 && extent != other) {
        return InvalidArgument("batch dimension ", i, " of params ", params.ToString(),
                               " and indices ", indices.ToString(), " differ");
      }
      if (extent < 0) extent = other;
    }
    dims.push_back(extent);
  }
  for (int i = axes.batch; i < indices.rank(); ++i) dims.push_back(indices.dim(i));
  for (int i = axes.axis + 1; i < params.rank(); ++i) dims.push_back(params.dim(i));
  return SetOutput(c, 0, PartialShape::Create(dims));
}

// Split indices give a split result; so does a split of params that is not along the axis.
Status GatherSharding(ShardingContext& c) {
  const Sharding params = c.input(0), indices = c.input(1);
  RequireReplicated(c);
  c.set_output(0, Sharding::Replicated());
  if (params.kind == Sharding::kPartialSum && indices.kind == Sharding::kReplicated) {
    c.Require(0, params);
    c.set_output(0, params);
    return absl::OkStatus();
  }
  const PartialShape& p = c.input_shape(0);
  const PartialShape& i = c.input_shape(1);
  if (!p.has_rank() || !i.has_rank()) return absl::OkStatus();
  const auto axes = AxesOfGather(c.attrs(), c.host_value(2), p, i);
  if (!axes.ok() || axes->batch != 0) return absl::OkStatus();
  if (indices.kind == Sharding::kSplit) {
    c.Require(1, indices);
    c.set_output(0, Sharding::Split(axes->axis + indices.dim));
  } else if (params.kind == Sharding::kSplit && params.dim != axes->axis) {
    c.Require(0, params);
    c.set_output(0, Sharding::Split(params.dim + (params.dim > axes->axis ? i.rank() - 1 : 0)));
  }
  return absl::OkStatus();
}

}  // namespace

void RegisterIndexOps(OpRegistry& registry) {
  registry.Add(OpDef("OneHot")
                   .Input("indices: TI")
                   .HostInput("depth: int32")
                   .Input("on_value: T")
                   .Input("off_value: T")
                   .Output("output: T")
                   .Attr("axis: int = -1")
                   .Attr("T: type")
                   .Attr("TI: {uint8, int8, int32, int64} = int64")
                   .Shape(OneHotShape)
                   .NotDifferentiable("it is a function of integers")
                   .Sharding(OneHotSharding)
                   .Doc("on_value at the indices, off_value elsewhere, along a new axis."));
  registry.Add(OpDef("Range")
                   .HostInput("start: Tidx")
                   .HostInput("limit: Tidx")
                   .HostInput("delta: Tidx")
                   .Output("output: Tidx")
                   .Attr("Tidx: {int32, int64, float, double} = int32")
                   .Shape(RangeShape)
                   .NotDifferentiable("the number of its elements depends on its inputs")
                   .Traits({Trait::kAllocatesOutputs, Trait::kCheap})
                   .Doc("start, start + delta, and so on, up to but without limit."));
  registry.Add(OpDef("GatherV2")
                   .Input("params: Tparams")
                   .Input("indices: Tindices")
                   .HostInput("axis: Taxis")
                   .Output("output: Tparams")
                   .Attr("batch_dims: int = 0")
                   .Attr("Tparams: type")
                   .Attr("Tindices: {int32, int64}")
                   .Attr("Taxis: {int32, int64}")
                   .Shape(GatherShape)
                   .Gradient(GatherGradient)
                   .Sharding(GatherSharding)
                   .Doc("The slices of params along an axis that the indices name."));
}

}  // namespace millrace
