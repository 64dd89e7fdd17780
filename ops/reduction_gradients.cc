#include "ops/reduction_gradients.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "ops/array_ops.h"
#include "ops/gradient_shapes.h"
#include "ops/math_ops.h"
#include "ops/reduction.h"
#include "ops/shape_functions.h"

namespace millrace {
namespace {

// The reduced axes of the node, counted from 0, if they and the rank are known.
std::optional<std::vector<int>> ReducedAxes(GradientContext& c) {
  const auto axes = IntElements(c.builder().graph().ConstantValue(c.node().inputs()[1]));
  const PartialShape shape = c.input(0).shape();
  if (!axes || !shape.has_rank()) return std::nullopt;
  const auto normal = NormalizeAxes(*axes, shape.rank());
  if (!normal.ok()) return std::nullopt;
  return *normal;
}

// `v`, which has the shape of the output, as if the reduction had kept its dimensions.
Value WithKeptDims(GradientContext& c, Value v) {
  if (c.attrs().GetOr("keep_dims", false)) return v;
  const Value x = c.input(0);
  if (const auto axes = ReducedAxes(c)) {
    std::vector<int64_t> dims = Extents(x.shape());
    for (int axis : *axes) dims[axis] = 1;
    const auto unknown = std::count_if(dims.begin(), dims.end(), [](int64_t d) { return d < 0; });
    const bool empty = std::count(dims.begin(), dims.end(), 0) > 0;
    if (unknown == 0 || (unknown == 1 && !empty)) return Reshape(v, std::move(dims));
    for (int axis : *axes) v = ExpandDims(v, axis);
    return v;
  }
  // Rank or axes are known in the step only, where the same reduction tells the shape.
  return Reshape(v, ShapeOf(Reduce("Max", x, c.input(1), true)));
}

// How many elements of x go into one of the output.
Value ReducedCount(GradientContext& c) {
  const Value x = c.input(0);
  if (const auto axes = ReducedAxes(c)) {
    double count = 1;
    bool known = true;
    for (int axis : *axes) {
      known = known && x.shape().dim_known(axis);
      count *= static_cast<double>(x.shape().dim(axis));
    }
    if (known) return Scalar(c.builder(), count, x.dtype());
  }
  // The output may be empty.
  const Value outputs = Maximum(Size(c.output(0)), Scalar(c.builder(), 1, DType::kInt32));
  return Cast(FloorDiv(Size(x), outputs), x.dtype());
}

}  // namespace

Status SumGradient(GradientContext& c) {
  c.set_dx(0, BroadcastTo(WithKeptDims(c, c.dy(0)), ShapeValue(c.input(0))));
  return absl::OkStatus();
}

Status MeanGradient(GradientContext& c) {
  const Value share = Div(WithKeptDims(c, c.dy(0)), ReducedCount(c));
  c.set_dx(0, BroadcastTo(share, ShapeValue(c.input(0))));
  return absl::OkStatus();
}

// Equal extreme elements share the gradient.
Status MaxGradient(GradientContext& c) {
  const Value x = c.input(0);
  const Value extreme = Cast(Equal(x, WithKeptDims(c, c.output(0))), x.dtype());
  const Value count = Reduce("Sum", extreme, c.input(1), true);
  c.set_dx(0, Mul(Div(extreme, count), WithKeptDims(c, c.dy(0))));
  return absl::OkStatus();
}

// The product of the others: the product over x, unless there are zeros. With one zero among the
// elements only that one has a gradient, with more none has.
Status ProdGradient(GradientContext& c) {
  const Value x = c.input(0), axes = c.input(1);
  if (!x.ok()) return absl::OkStatus();
  const Value zero = Scalar(c.builder(), 0, x.dtype()), one = Scalar(c.builder(), 1, x.dtype());
  const Value is_zero = Equal(x, zero);
  const Value nonzero_x = Select(is_zero, one, x);
  const Value zeros = Reduce("Sum", Cast(is_zero, x.dtype()), axes, true);
  const Value product = Reduce("Prod", nonzero_x, axes, true);
  const Value of_zero = Select(Equal(zeros, one), product, zero);
  const Value of_others = Select(Equal(zeros, zero), Div(product, nonzero_x), zero);
  c.set_dx(0, Mul(WithKeptDims(c, c.dy(0)), Select(is_zero, of_zero, of_others)));
  return absl::OkStatus();
}

Status L2LossGradient(GradientContext& c) {
  c.set_dx(0, Mul(c.input(0), c.dy(0)));
  return absl::OkStatus();
}

}  // namespace millrace
