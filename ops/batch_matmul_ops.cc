#include <algorithm>

#include "ops/array_ops.h"
#include "ops/gradient_shapes.h"
#include "ops/math_ops.h"
#include "ops/node_call.h"
#include "ops/op_families.h"
#include "ops/shape_functions.h"
#include "ops/sharding_rules.h"

// Products of batches of matrices. BatchMatMul wants equal batches, BatchMatMulV2 and V3 broadcast
// them.
namespace millrace {
namespace {

Value Multiply(const char* op, Value x, Value y, bool adj_x, bool adj_y, Where where) {
  return Call(op, {x, y}, {{"adj_x", adj_x}, {"adj_y", adj_y}}, where);
}

}  // namespace

Value BatchMatMul(Value x, Value y, bool adj_x, bool adj_y, Where where) {
  return Multiply("BatchMatMulV2", x, y, adj_x, adj_y, where);
}

namespace {

enum class Batches { kEqual, kBroadcast };

// Which of the last two dimensions of which operand is what, as an index. REQUIRES: known ranks.
struct Layout {
  Layout(const AttrMap& attrs, const PartialShape& x, const PartialShape& y)
      : adj_x(attrs.GetOr("adj_x", false)),
        adj_y(attrs.GetOr("adj_y", false)),
        x_rows(x.rank() - (adj_x ? 1 : 2)),
        x_inner(x.rank() - (adj_x ? 2 : 1)),
        y_inner(y.rank() - (adj_y ? 1 : 2)),
        y_columns(y.rank() - (adj_y ? 2 : 1)) {}
  bool adj_x, adj_y;
  int x_rows, x_inner, y_inner, y_columns;
};

// The dimensions before the last two. REQUIRES: a known rank of at least 2.
PartialShape BatchOf(const PartialShape& shape) {
  auto batch = PartialShape::Create(shape.dims().subspan(0, shape.rank() - 2));
  return batch.ok() ? *batch : PartialShape();
}

Status BatchMatMulShape(ShapeContext& c, Batches batches) {
  const PartialShape &x = c.input(0), &y = c.input(1);
  for (int i = 0; i < 2; ++i) {
    if (c.input(i).has_rank() && c.input(i).rank() < 2) {
      return InvalidArgument(i == 0 ? "x" : "y",
                             " must be a matrix or a batch of them, but has "
                             "shape ",
                             c.input(i).ToString());
    }
  }
  if (!x.has_rank() || !y.has_rank()) return absl::OkStatus();
  const Layout l(c.attrs(), x, y);
  const int64_t inner_x = x.dim(l.x_inner), inner_y = y.dim(l.y_inner);
  if (inner_x >= 0 && inner_y >= 0 && inner_x != inner_y) {
    return InvalidArgument("the inner extents differ: x", l.adj_x ? " (transposed) " : " ",
                           x.ToString(), " has ", inner_x, ", y", l.adj_y ? " (transposed) " : " ",
                           y.ToString(), " has ", inner_y);
  }
  const PartialShape batch_x = BatchOf(x), batch_y = BatchOf(y);
  auto batch = batches == Batches::kBroadcast ? BroadcastShapes(batch_x, batch_y)
                                              : batch_x.MergeWith(batch_y);
  if (!batch.ok()) {
    return InvalidArgument("the batches of x ", x.ToString(), " and y ", y.ToString(),
                           batches == Batches::kBroadcast
                               ? " do not broadcast"
                               : " differ; use BatchMatMulV2 to broadcast them");
  }
  std::vector<int64_t> dims = Extents(*batch);
  dims.push_back(x.dim(l.x_rows));
  dims.push_back(y.dim(l.y_columns));
  return SetOutput(c, 0, PartialShape::Create(dims));
}

// Other dtypes of V3 have no kernels in the public runtime either, but for a few of 8 and 16 bits.
Status BatchMatMulV3Shape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const DType ta, c.attrs().Get<DType>("Ta"));
  for (const char* other : {"Tb", "Tout"}) {
    MR_ASSIGN_OR_RETURN(const DType t, c.attrs().Get<DType>(other));
    if (t != ta) {
      return InvalidArgument("attribute '", other, "' is ", Name(t), ", but must be ", Name(ta),
                             " as 'Ta' is: products of mixed dtypes are not supported; cast first");
    }
  }
  return BatchMatMulShape(c, Batches::kBroadcast);
}

// `g`, a gradient with the batches of the result, summed to those of x.
Value SumToBatchesOf(Value g, Value x, Value other) {
  if (!g.ok() || !x.ok() || !other.ok()) return g;
  const PartialShape &shape = x.shape(), &against = other.shape();
  if (shape.has_rank() && against.has_rank()) {
    if (const auto axes = BroadcastAxes(BatchOf(shape), BatchOf(against))) {
      return SumOverBroadcast(g, *axes, std::max(0, against.rank() - shape.rank()));
    }
  }
  return SumToShapeOf(g, x, g);  // the matrices' extents are equal
}

// As of MatMul, for each pair of matrices; what was repeated gets the sum.
GradientFn BatchMatMulGradient(Batches batches) {
  return [batches](GradientContext& c) {
    const bool adj_x = c.attrs().GetOr("adj_x", false), adj_y = c.attrs().GetOr("adj_y", false);
    const Value x = c.input(0), y = c.input(1), dy = c.dy(0);
    const char* op = batches == Batches::kBroadcast ? "BatchMatMulV2" : "BatchMatMul";
    const auto product = [&](Value a, Value b, bool adj_a, bool adj_b) {
      return Multiply(op, a, b, adj_a, adj_b, Where::Current());
    };
    const auto set = [&](int i, Value g) {
      const bool whole = batches == Batches::kEqual || x.port() == y.port();
      c.set_dx(i, whole ? g : SumToBatchesOf(g, c.input(i), c.input(1 - i)));
    };
    if (c.needs_dx(0)) {
      set(0, adj_x ? product(y, dy, adj_y, true) : product(dy, y, false, !adj_y));
    }
    if (c.needs_dx(1)) {
      set(1, adj_y ? product(dy, x, true, adj_x) : product(x, dy, !adj_x, false));
    }
    return absl::OkStatus();
  };
}

// A batch dimension of operand i is split: so are the result, and the other operand if it has that
// dimension.
Status SplitBatches(ShardingContext& c, int i) {
  const int dim = c.input(i).dim + c.output_shape(0).rank() - c.input_shape(i).rank();
  const int other = dim - (c.output_shape(0).rank() - c.input_shape(1 - i).rank());
  Sharding aligned = Sharding::Replicated();
  if (other >= 0) {
    MR_ASSIGN_OR_RETURN(const int64_t extent, SplitExtent(c, 1 - i, other));
    if (extent != 1) aligned = Sharding::Split(other);
  }
  c.Require(1 - i, aligned);
  c.set_output(0, Sharding::Split(dim));
  return absl::OkStatus();
}

// As MatMul's rule; batches, too, may be split. Where x and y ask for different things, x wins.
Status BatchMatMulSharding(ShardingContext& c) {
  const Sharding x = c.input(0), y = c.input(1);
  const int rank = c.output_shape(0).rank();
  if (AnyOf(c, Sharding::kSplit)) {
    if (!c.input_shape(0).has_rank() || !c.input_shape(1).has_rank() ||
        !c.output_shape(0).has_rank()) {
      return InvalidArgument("a tensor of unknown rank cannot be split");
    }
    const Layout l(c.attrs(), c.input_shape(0), c.input_shape(1));
    if (x == Sharding::Split(l.x_rows)) {
      c.Require(1, Sharding::Replicated());
      c.set_output(0, Sharding::Split(rank - 2));
      return absl::OkStatus();
    }
    if (x == Sharding::Split(l.x_inner)) {
      c.Require(1, Sharding::Split(l.y_inner));
      c.set_output(0, Sharding::PartialSum());
      return absl::OkStatus();
    }
    if (x.kind == Sharding::kSplit) return SplitBatches(c, 0);
    if (y == Sharding::Split(l.y_columns)) {
      c.Require(0, Sharding::Replicated());
      c.set_output(0, Sharding::Split(rank - 1));
      return absl::OkStatus();
    }
    if (y == Sharding::Split(l.y_inner)) {
      c.Require(0, Sharding::Split(l.x_inner));
      c.set_output(0, Sharding::PartialSum());
      return absl::OkStatus();
    }
    return SplitBatches(c, 1);
  }
  // Linear in each: one may stay a sum of parts.
  if (x.kind == Sharding::kPartialSum) c.Require(1, Sharding::Replicated());
  c.set_output(0, x.kind == Sharding::kPartialSum ? x : y);
  return absl::OkStatus();
}

OpCost BatchMatMulCost(const ShapeContext& c) {
  const PartialShape &x = c.input(0), &y = c.input(1);
  double inner = 1;
  if (x.has_rank() && y.has_rank() && x.rank() >= 2 && y.rank() >= 2) {
    const Layout l(c.attrs(), x, y);
    inner = static_cast<double>(std::max<int64_t>(1, x.dim(l.x_inner)));
  }
  return {2 * inner * Elements(c.output(0)), TouchedBytes(c)};
}

void Finish(OpDef& op, Batches batches) {
  op.Attr("adj_x: bool = false").Attr("adj_y: bool = false");
  // Hints of public graphs, without effect on the product.
  op.Attr("grad_x: bool = false").Attr("grad_y: bool = false");
  op.Gradient(BatchMatMulGradient(batches)).Sharding(BatchMatMulSharding).Cost(BatchMatMulCost);
}

OpDef Product(const char* name, Batches batches) {
  OpDef op(name);
  op.Input("x: T").Input("y: T").Output("output: T").Attr("T: {float, double, int32, int64}");
  op.Shape([batches](ShapeContext& c) { return BatchMatMulShape(c, batches); });
  Finish(op, batches);
  return op;
}

OpDef MixedProduct(const char* name) {
  OpDef op(name);
  op.Input("x: Ta").Input("y: Tb").Output("output: Tout");
  for (const char* attr : {"Ta", "Tb", "Tout"}) {
    op.Attr(StrCat(attr, ": {float, double, int32, int64}"));
  }
  op.Shape(BatchMatMulV3Shape);
  Finish(op, Batches::kBroadcast);
  return op;
}

}  // namespace

void RegisterBatchMatMulOps(OpRegistry& registry) {
  registry.Add(Product("BatchMatMul", Batches::kEqual)
                   .Doc("The product of each pair of matrices of two equal batches."));
  registry.Add(Product("BatchMatMulV2", Batches::kBroadcast)
                   .Doc("The product of each pair of matrices of two batches, which broadcast."));
  registry.Add(
      MixedProduct("BatchMatMulV3").Doc("BatchMatMulV2, with a dtype for each of its tensors."));
}

}  // namespace millrace
