#include "ops/gradient_shapes.h"
#include "ops/math_ops.h"
#include "ops/node_call.h"
#include "ops/op_families.h"
#include "ops/shape_functions.h"
#include "ops/sharding_rules.h"

namespace millrace {

Value MatMul(Value a, Value b, bool transpose_a, bool transpose_b, Where where) {
  return Call("MatMul", {a, b}, {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}},
              where);
}

namespace {

// Which dimension of which operand is what: a is [rows, inner], b is [inner, columns], before
// either is transposed.
struct Layout {
  explicit Layout(const AttrMap& attrs)
      : transpose_a(attrs.GetOr("transpose_a", false)),
        transpose_b(attrs.GetOr("transpose_b", false)),
        a_rows(transpose_a ? 1 : 0),
        a_inner(transpose_a ? 0 : 1),
        b_inner(transpose_b ? 1 : 0),
        b_columns(transpose_b ? 0 : 1) {}
  bool transpose_a, transpose_b;
  int a_rows, a_inner, b_inner, b_columns;
};

Status MatMulShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape a, c.WithRank(0, 2));
  MR_ASSIGN_OR_RETURN(const PartialShape b, c.WithRank(1, 2));
  const Layout l(c.attrs());
  const int64_t inner_a = a.dim(l.a_inner), inner_b = b.dim(l.b_inner);
  if (inner_a >= 0 && inner_b >= 0 && inner_a != inner_b) {
    return InvalidArgument("the inner extents differ: a", l.transpose_a ? " (transposed) " : " ",
                           a.ToString(), " has ", inner_a, ", b",
                           l.transpose_b ? " (transposed) " : " ", b.ToString(), " has ", inner_b);
  }
  c.set_output(0, PartialShape{a.dim(l.a_rows), b.dim(l.b_columns)});
  return absl::OkStatus();
}

// With y = A B: dA = dy B^T, dB = A^T dy, where A and B are a and b, transposed or not.
Status MatMulGradient(GradientContext& c) {
  const Layout l(c.attrs());
  const Value a = c.input(0), b = c.input(1), dy = c.dy(0);
  if (c.needs_dx(0)) {
    c.set_dx(0, l.transpose_a ? MatMul(b, dy, l.transpose_b, true)
                              : MatMul(dy, b, false, !l.transpose_b));
  }
  if (c.needs_dx(1)) {
    c.set_dx(1, l.transpose_b ? MatMul(dy, a, true, l.transpose_a)
                              : MatMul(a, dy, !l.transpose_a, false));
  }
  return absl::OkStatus();
}

// Rows of a, columns of b, or the inner dimension of both (which leaves partial sums) may be split.
// Where a and b ask for different ones, a, which holds the batch in most products, wins.
Status MatMulSharding(ShardingContext& c) {
  const Layout l(c.attrs());
  const Sharding a = c.input(0), b = c.input(1);
  if (a == Sharding::Split(l.a_rows)) {
    c.Require(1, Sharding::Replicated());
    c.set_output(0, Sharding::Split(0));
  } else if (a == Sharding::Split(l.a_inner)) {
    c.Require(1, Sharding::Split(l.b_inner));
    c.set_output(0, Sharding::PartialSum());
  } else if (b == Sharding::Split(l.b_columns)) {
    c.Require(0, Sharding::Replicated());
    c.set_output(0, Sharding::Split(1));
  } else if (b == Sharding::Split(l.b_inner)) {
    c.Require(0, Sharding::Split(l.a_inner));
    c.set_output(0, Sharding::PartialSum());
  } else if (a.kind == Sharding::kPartialSum) {
    c.Require(1, Sharding::Replicated());
    c.set_output(0, Sharding::PartialSum());
  } else {
    c.Require(0, Sharding::Replicated());
    c.set_output(0, b);
  }
  return absl::OkStatus();
}

OpCost MatMulCost(const ShapeContext& c) {
  const Layout l(c.attrs());
  const double inner = c.input(0).has_rank() && c.input(0).rank() == 2
                           ? static_cast<double>(std::max<int64_t>(1, c.input(0).dim(l.a_inner)))
                           : 1.0;
  return {2 * inner * Elements(c.output(0)), TouchedBytes(c)};
}

}  // namespace

void RegisterMatMulOps(OpRegistry& registry) {
  registry.Add(OpDef("MatMul")
                   .Input("a: T")
                   .Input("b: T")
                   .Output("product: T")
                   .Attr("transpose_a: bool = false")
                   .Attr("transpose_b: bool = false")
                   .Attr("T: {float, double, int32, int64}")
                   // Hints of public graphs, without effect on the product.
                   .Attr("grad_a: bool = false")
                   .Attr("grad_b: bool = false")
                   .Shape(MatMulShape)
                   .Gradient(MatMulGradient)
                   .Sharding(MatMulSharding)
                   .Cost(MatMulCost)
                   .Doc("The matrix product of a and b, either of which may be transposed first."));
}

}  // namespace millrace
