#include "ops/array_ops.h"
#include "ops/gradient_shapes.h"
#include "ops/math_ops.h"
#include "ops/node_call.h"
#include "ops/op_families.h"
#include "ops/shape_functions.h"
#include "ops/sharding_rules.h"

// Running sums and products along an axis.
namespace millrace {
namespace {

Value Scan(const char* op, Value x, Value axis, bool exclusive, bool reverse, Where where) {
  return Call(op, {x, axis}, {{"exclusive", exclusive}, {"reverse", reverse}}, where);
}

Value ScanAlong(const char* op, Value x, int64_t axis, bool exclusive, bool reverse, Where where) {
  if (!x.ok()) return x;
  return Scan(op, x, Scalar(*x.builder(), static_cast<double>(axis), DType::kInt32, where),
              exclusive, reverse, where);
}

}  // namespace

Value CumSum(Value x, int64_t axis, bool exclusive, bool reverse, Where where) {
  return ScanAlong("Cumsum", x, axis, exclusive, reverse, where);
}
Value CumProd(Value x, int64_t axis, bool exclusive, bool reverse, Where where) {
  return ScanAlong("Cumprod", x, axis, exclusive, reverse, where);
}

namespace {

Status ScanShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(CheckScalar(c, 1, "axis"));
  const PartialShape& x = c.input(0);
  c.set_output(0, x);
  const auto axis = IntElement(c.host_value(1));
  if (!axis || !x.has_rank()) return absl::OkStatus();
  return NormalizeAxis(*axis, x.rank()).status();
}

// The scan that is made of the same node's direction.
struct Direction {
  explicit Direction(GradientContext& c)
      : axis(c.input(1)),
        exclusive(c.attrs().GetOr("exclusive", false)),
        reverse(c.attrs().GetOr("reverse", false)) {}
  Value Sum(Value v) const { return Scan("Cumsum", v, axis, exclusive, reverse, Where::Current()); }
  Value Product(Value v) const {
    return Scan("Cumprod", v, axis, exclusive, reverse, Where::Current());
  }
  // An element adds to itself (if not exclusive) and to those after it: so they give to it.
  Value SumBack(Value v) const {
    return Scan("Cumsum", v, axis, exclusive, !reverse, Where::Current());
  }
  Value axis;
  bool exclusive, reverse;
};

Status CumsumGradient(GradientContext& c) {
  c.set_dx(0, Direction(c).SumBack(c.dy(0)));
  return absl::OkStatus();
}

// With y_j the product of the x_k up to j, dx_i = sum over j of dy_j y_j / x_i. That needs an x_i
// that is not zero. For one that is, the sum is over products without it: these are all zero if
// there is a zero before it, and else are those of the xs with a 1 in its place.
Status CumprodGradient(GradientContext& c) {
  const Value x = c.input(0), dy = c.dy(0);
  if (!x.ok() || !dy.ok()) return absl::OkStatus();  // poisoned: the builder knows why
  const Direction along(c);
  const Value zero = Scalar(c.builder(), 0, x.dtype()), one = Scalar(c.builder(), 1, x.dtype());
  const Value is_zero = Equal(x, zero);
  const Value zeros = Scan("Cumsum", Cast(is_zero, DType::kInt32), along.axis, false, along.reverse,
                           Where::Current());
  const Value first_zero = LogicalAnd(is_zero, Equal(zeros, Scalar(c.builder(), 1, DType::kInt32)));
  const Value of_others = Div(along.SumBack(Mul(dy, c.output(0))), Select(is_zero, one, x));
  const Value without = along.Product(Select(first_zero, one, x));
  const Value of_first = Select(first_zero, along.SumBack(Mul(dy, without)), zero);
  c.set_dx(0, Select(is_zero, of_first, of_others));
  return absl::OkStatus();
}

// A split along another dimension passes; a sum of parts passes the sum.
ShardingFn ScanSharding(bool linear) {
  return [linear](ShardingContext& c) -> Status {
    const Sharding x = c.input(0);
    RequireReplicated(c);
    c.set_output(0, Sharding::Replicated());
    bool keeps = x.kind == Sharding::kPartialSum && linear;
    const auto axis = IntElement(c.host_value(1));
    if (x.kind == Sharding::kSplit && axis && c.input_shape(0).has_rank()) {
      MR_ASSIGN_OR_RETURN(const int normal, NormalizeAxis(*axis, c.input_shape(0).rank()));
      keeps = normal != x.dim;
    }
    if (keeps) {
      c.Require(0, x);
      c.set_output(0, x);
    }
    return absl::OkStatus();
  };
}

OpDef ScanOp(const char* name, GradientFn gradient, bool linear) {
  OpDef op(name);
  op.Input("x: T").HostInput("axis: Tidx").Output("out: T");
  op.Attr("exclusive: bool = false").Attr("reverse: bool = false");
  op.Attr("T: {float, double, int32, int64}").Attr("Tidx: {int32, int64} = int32");
  op.Shape(ScanShape).Gradient(std::move(gradient)).Sharding(ScanSharding(linear));
  return op;
}

}  // namespace

void RegisterScanOps(OpRegistry& registry) {
  registry.Add(ScanOp("Cumsum", CumsumGradient, true)
                   .Doc("Each element with the sum of all before it along an axis."));
  registry.Add(ScanOp("Cumprod", CumprodGradient, false)
                   .Doc("Each element with the product of all before it along an axis."));
}

}  // namespace millrace
