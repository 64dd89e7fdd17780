#include "ops/gradient_shapes.h"

#include <algorithm>
#include <limits>

#include "ops/array_ops.h"
#include "ops/math_ops.h"
#include "ops/reduction.h"

namespace millrace {
namespace {

Value ShapeConstant(GraphBuilder& builder, std::vector<int64_t> dims) {
  const bool wide = std::any_of(dims.begin(), dims.end(),
                                [](int64_t d) { return d > std::numeric_limits<int32_t>::max(); });
  if (!wide) return IntVector(builder, std::move(dims));
  const auto length = static_cast<int64_t>(dims.size());
  return Const(builder, Tensor::Of<int64_t>(Shape{length}, dims));
}

// Extents with at most one -1 if Reshape can do with them.
std::optional<std::vector<int64_t>> ReshapeTarget(const PartialShape& shape) {
  if (!shape.has_rank()) return std::nullopt;
  std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
  const auto unknown = std::count_if(dims.begin(), dims.end(), [](int64_t d) { return d < 0; });
  const bool empty = std::count(dims.begin(), dims.end(), 0) > 0;
  if (unknown > 1 || (unknown == 1 && empty)) return std::nullopt;
  return dims;
}

}  // namespace

Value ShapeValue(Value x) {
  const PartialShape shape = x.shape();
  if (!x.ok() || !shape.IsFull()) return ShapeOf(x);
  return ShapeConstant(*x.builder(), {shape.dims().begin(), shape.dims().end()});
}

Value ReshapeLike(Value g, Value x) {
  if (g.ok() && x.ok() && x.shape().IsFull() && g.shape() == x.shape()) return g;
  if (x.ok()) {
    if (auto target = ReshapeTarget(x.shape())) {
      return Reshape(g, ShapeConstant(*x.builder(), *std::move(target)));
    }
  }
  return Reshape(g, ShapeOf(x));
}

std::optional<std::vector<int64_t>> BroadcastAxes(const PartialShape& x, const PartialShape& y) {
  if (!x.has_rank() || !y.has_rank()) return std::nullopt;
  const int rank = std::max(x.rank(), y.rank());
  std::vector<int64_t> axes;
  for (int i = 0; i < rank; ++i) {
    const int xi = i - (rank - x.rank());
    const int yi = i - (rank - y.rank());
    if (xi < 0) {
      axes.push_back(i);
      continue;
    }
    if (yi < 0 || y.dim(yi) == 1) continue;  // nothing that x could be repeated for
    if (!x.dim_known(xi)) return std::nullopt;
    if (x.dim(xi) == 1) axes.push_back(i);
  }
  return axes;
}

Value SumOverBroadcast(Value g, const std::vector<int64_t>& axes, int64_t added) {
  if (axes.empty()) return g;
  if (static_cast<int64_t>(axes.size()) == added) return ReduceSum(g, axes, false);
  const Value sum = ReduceSum(g, axes, true);
  if (added == 0) return sum;
  return Squeeze(sum, {axes.begin(), axes.begin() + added});
}

Value SumToShapeOf(Value g, Value x, Value other) {
  if (!g.ok() || !x.ok() || !other.ok() || x.port() == other.port()) return g;
  if (const auto axes = BroadcastAxes(x.shape(), other.shape())) {
    // Leading axes that x lacks go; axes along which it has extent 1 stay.
    return SumOverBroadcast(g, *axes, std::max(0, other.shape().rank() - x.shape().rank()));
  }
  const Value shape = ShapeOf(x);
  const std::vector<Value> axes = BroadcastGradientArgs(shape, ShapeOf(other));
  return Reshape(Reduce("Sum", g, axes[0], false), shape);
}

void BroadcastGradients::Set(int i, Value g) {
  if (!needs(i)) return;
  const Value x = c_.input(i);
  const Value other = c_.input(1 - i);
  if (x.port() == other.port() || BroadcastAxes(x.shape(), other.shape())) {
    c_.set_dx(i, SumToShapeOf(g, x, other));
    return;
  }
  if (axes_.empty()) {
    axes_ = BroadcastGradientArgs(ShapeOf(c_.input(0)), ShapeOf(c_.input(1)));
  }
  c_.set_dx(i, Reshape(Reduce("Sum", g, axes_[i], false), ShapeOf(x)));
}

Status ZeroGradient(GradientContext&) { return absl::OkStatus(); }

}  // namespace millrace
