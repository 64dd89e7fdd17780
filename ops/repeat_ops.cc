#include "core/base/checked_math.h"
#include "ops/movement_gradients.h"
#include "ops/op_families.h"
#include "ops/shape_functions.h"
#include "ops/sharding_rules.h"

// Ops that make a tensor larger: by zeros, or by repeating it.
namespace millrace {
namespace {

// Of Pad and PadV2.
Status PadShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape own, c.WithRank(1, 2));
  if (c.num_inputs() > 2) MR_RETURN_IF_ERROR(CheckScalar(c, 2, "constant_values"));
  const PartialShape& x = c.input(0);
  if (own.dim_known(1) && own.dim(1) != 2) {
    return InvalidArgument("paddings must have shape [rank,2], but have ", own.ToString());
  }
  if (x.has_rank() && own.dim_known(0) && own.dim(0) != x.rank()) {
    return InvalidArgument("paddings ", own.ToString(), " are for rank ", own.dim(0),
                           ", but the input ", x.ToString(), " has rank ", x.rank());
  }
  const auto paddings = IntElements(c.host_value(1));
  if (x.has_rank() && paddings && paddings->size() != 2 * static_cast<size_t>(x.rank())) {
    return InvalidArgument("paddings have ", paddings->size(), " elements, but the input ",
                           x.ToString(), " has rank ", x.rank());
  }
  if (!x.has_rank() || !paddings) {
    c.set_output(0, UnknownOfRank(x.has_rank() ? x.rank() : static_cast<int>(own.dim(0))));
    return absl::OkStatus();
  }
  std::vector<int64_t> dims = Extents(x);
  for (int i = 0; i < x.rank(); ++i) {
    const int64_t before = (*paddings)[2 * i], after = (*paddings)[2 * i + 1];
    if (before < 0 || after < 0) {
      return InvalidArgument("paddings of dimension ", i, " are negative: ", before, ", ", after);
    }
    if (dims[i] >= 0 &&
        (!CheckedAdd(dims[i], before, &dims[i]) || !CheckedAdd(dims[i], after, &dims[i]))) {
      return InvalidArgument("paddings of dimension ", i, " are too large: ", before, ", ", after);
    }
  }
  return SetOutput(c, 0, PartialShape::Create(dims));
}

Status TileShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape own, c.WithRank(1, 1));
  const PartialShape& x = c.input(0);
  const auto multiples = IntElements(c.host_value(1));
  const int64_t count = multiples ? static_cast<int64_t>(multiples->size()) : own.dim(0);
  if (x.has_rank() && count >= 0 && count != x.rank()) {
    return InvalidArgument("multiples has ", count, " elements, but the input ", x.ToString(),
                           " has rank ", x.rank());
  }
  if (!x.has_rank() || !multiples) {
    c.set_output(0, UnknownOfRank(x.has_rank() ? x.rank() : static_cast<int>(own.dim(0))));
    return absl::OkStatus();
  }
  std::vector<int64_t> dims = Extents(x);
  for (int i = 0; i < x.rank(); ++i) {
    const int64_t times = (*multiples)[i];
    if (times < 0) return InvalidArgument("dimension ", i, " cannot be repeated ", times, " times");
    if (dims[i] >= 0 && !CheckedMul(dims[i], times, &dims[i])) {
      return InvalidArgument("dimension ", i, " cannot be repeated ", times, " times: too large");
    }
  }
  return SetOutput(c, 0, PartialShape::Create(dims));
}

Status BroadcastToShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape to, ShapeOperand(c, 1, "shape"));
  const PartialShape& x = c.input(0);
  c.set_output(0, to);
  if (!x.has_rank() || !to.has_rank()) return absl::OkStatus();
  bool fits = x.rank() <= to.rank();
  std::vector<int64_t> dims = Extents(to);
  for (int i = 0; fits && i < x.rank(); ++i) {
    int64_t& extent = dims[to.rank() - x.rank() + i];
    if (!x.dim_known(i) || x.dim(i) == 1) continue;
    if (extent < 0) extent = x.dim(i);
    fits = extent == x.dim(i);
  }
  if (!fits) {
    return InvalidArgument("the input ", x.ToString(), " cannot be broadcast to ", to.ToString());
  }
  return SetOutput(c, 0, PartialShape::Create(dims));
}

// A split dimension must be left as it is: `kept`.
Status KeepSplitIf(ShardingContext& c, bool kept) {
  c.Require(1, Sharding::Replicated());
  if (c.input(0).kind == Sharding::kSplit && !kept) c.Require(0, Sharding::Replicated());
  return SameSharding(c);
}

Status PadSharding(ShardingContext& c) {
  if (c.num_inputs() > 2) {
    c.Require(2, Sharding::Replicated());
    // The parts of a sum would be padded once each.
    if (c.input(0).kind == Sharding::kPartialSum) c.Require(0, Sharding::Replicated());
  }
  const auto paddings = IntElements(c.host_value(1));
  const size_t at = 2 * static_cast<size_t>(c.input(0).dim);
  return KeepSplitIf(
      c, paddings && at + 1 < paddings->size() && (*paddings)[at] == 0 && (*paddings)[at + 1] == 0);
}

Status TileSharding(ShardingContext& c) {
  const auto multiples = IntElements(c.host_value(1));
  const size_t at = static_cast<size_t>(c.input(0).dim);
  return KeepSplitIf(c, multiples && at < multiples->size() && (*multiples)[at] == 1);
}

// As Fill, a broadcast of a whole tensor can be split where it is repeated, if the caller has set
// the output so before it asks.
Status BroadcastToSharding(ShardingContext& c) {
  c.Require(1, Sharding::Replicated());
  const PartialShape& x = c.input_shape(0);
  const PartialShape& y = c.output_shape(0);
  if (c.input(0).kind == Sharding::kSplit) {
    MR_ASSIGN_OR_RETURN(const int64_t extent, SplitExtent(c, 0, c.input(0).dim));
    const int out = y.has_rank() ? c.input(0).dim + y.rank() - x.rank() : -1;
    if (out >= 0 && extent == y.dim(out) && c.host_value(1) != nullptr) {
      c.LocalizeHostElement(1, out);
      c.set_output(0, Sharding::Split(out));
      return absl::OkStatus();
    }
    c.Require(0, Sharding::Replicated());
  }
  const Sharding wish = c.output(0);
  c.set_output(0, c.input(0));
  if (wish.kind != Sharding::kSplit || c.input(0).kind != Sharding::kReplicated) {
    return absl::OkStatus();
  }
  if (!x.has_rank() || !y.has_rank() || wish.dim >= y.rank() || c.host_value(1) == nullptr) {
    return absl::OkStatus();
  }
  const int dim = wish.dim - (y.rank() - x.rank());
  if (dim < 0 || x.dim(dim) == 1) {
    c.LocalizeHostElement(1, wish.dim);
    c.set_output(0, wish);
  }
  return absl::OkStatus();
}

}  // namespace

void RegisterRepeatOps(OpRegistry& registry) {
  registry.Add(OpDef("Pad")
                   .Input("input: T")
                   .HostInput("paddings: Tpaddings")
                   .Output("output: T")
                   .Attr("T: type")
                   .Attr("Tpaddings: {int32, int64} = int32")
                   .Shape(PadShape)
                   .Gradient(PadGradient)
                   .Sharding(PadSharding)
                   .Doc("The input with zeros before and after along each dimension."));
  registry.Add(OpDef("PadV2")
                   .Input("input: T")
                   .HostInput("paddings: Tpaddings")
                   .Input("constant_values: T")
                   .Output("output: T")
                   .Attr("T: type")
                   .Attr("Tpaddings: {int32, int64} = int32")
                   .Shape(PadShape)
                   .Gradient(PadGradient)
                   .Sharding(PadSharding)
                   .Doc("A constant before and after the elements of each dimension."));
  registry.Add(OpDef("Tile")
                   .Input("input: T")
                   .HostInput("multiples: Tmultiples")
                   .Output("output: T")
                   .Attr("T: type")
                   .Attr("Tmultiples: {int32, int64} = int32")
                   .Shape(TileShape)
                   .Gradient(TileGradient)
                   .Sharding(TileSharding)
                   .Doc("The input repeated along each dimension."));
  registry.Add(OpDef("BroadcastTo")
                   .Input("input: T")
                   .HostInput("shape: Tidx")
                   .Output("output: T")
                   .Attr("T: type")
                   .Attr("Tidx: {int32, int64} = int32")
                   .Shape(BroadcastToShape)
                   .Gradient(BroadcastToGradient)
                   .Sharding(BroadcastToSharding)
                   .Traits({Trait::kCheap})
                   .Doc("The input repeated to a shape by the rule of broadcasting."));
}

}  // namespace millrace
