#include "ops/movement_gradients.h"

#include <optional>

#include "ops/array_ops.h"
#include "ops/gradient_shapes.h"
#include "ops/math_ops.h"
#include "ops/node_call.h"
#include "ops/reduction.h"
#include "ops/shape_functions.h"

namespace millrace {
namespace {

using Ints = std::optional<std::vector<int64_t>>;

Ints ConstantInput(GradientContext& c, int i) {
  return IntElements(c.builder().graph().ConstantValue(c.node().inputs()[i]));
}

Value CallSlice(Value x, Value begin, Value size) {
  return Call("Slice", {x, begin, size}, {}, SourceLocation::Current());
}

// [rank, 2]: pairs of elements of two vectors.
Value Columns(Value first, Value second) {
  const Value columns[] = {ExpandDims(first, 1), ExpandDims(second, 1)};
  return Concat(columns, 1);
}

// How many elements of x are left of and after a slice, if constants and shapes tell.
std::optional<std::vector<std::pair<int64_t, int64_t>>> SlicePaddings(GradientContext& c) {
  const PartialShape x = c.input(0).shape(), y = c.output(0).shape();
  const Ints begin = ConstantInput(c, 1), size = ConstantInput(c, 2);
  if (!begin || !x.has_rank() || !y.has_rank()) return std::nullopt;
  const auto rank = static_cast<size_t>(x.rank());
  if (begin->size() != rank || (size && size->size() != rank)) return std::nullopt;
  std::vector<std::pair<int64_t, int64_t>> paddings;
  for (int i = 0; i < x.rank(); ++i) {
    const bool to_end = size && (*size)[i] == -1;
    if (!to_end && !(x.dim_known(i) && y.dim_known(i))) return std::nullopt;
    paddings.push_back({(*begin)[i], to_end ? 0 : x.dim(i) - (*begin)[i] - y.dim(i)});
  }
  return paddings;
}

// An int32 vector with `value` at `position` and 0 elsewhere.
Value UnitVector(GraphBuilder& builder, int rank, int position, int64_t value) {
  std::vector<int64_t> elements(rank, 0);
  elements[position] = value;
  return IntVector(builder, std::move(elements));
}

// The gradient of a concatenation of which only the step knows the axis or the rank.
void SetPartsFoundInTheStep(GradientContext& c, int count) {
  std::vector<Value> operands = {Cast(c.input(count), DType::kInt32)};
  for (int i = 0; i < count; ++i) operands.push_back(ShapeOf(c.input(i)));
  const std::vector<Value> offsets = c.builder().AddMany(
      "ConcatOffset", operands, {{"N", int64_t{count}}}, count, SourceLocation::Current());
  for (int i = 0; i < count; ++i) c.set_dx(i, CallSlice(c.dy(0), offsets[i], operands[i + 1]));
}

}  // namespace

Status TransposeGradient(GradientContext& c) {
  if (const Ints perm = ConstantInput(c, 1)) {
    std::vector<int64_t> inverse(perm->size(), 0);
    for (size_t i = 0; i < perm->size(); ++i) {
      const int64_t from = (*perm)[i];
      if (from >= 0 && from < static_cast<int64_t>(perm->size())) inverse[from] = i;
    }
    c.set_dx(0, Transpose(c.dy(0), std::move(inverse)));
    return absl::OkStatus();
  }
  const Value inverse = Call("InvertPermutation", {c.input(1)}, {}, SourceLocation::Current());
  c.set_dx(0, Call("Transpose", {c.dy(0), inverse}, {}, SourceLocation::Current()));
  return absl::OkStatus();
}

Status ConcatGradient(GradientContext& c) {
  const int count = c.num_inputs() - 1;
  const Ints axis_value = ConstantInput(c, count);
  const PartialShape y = c.output(0).shape();
  if (!axis_value || axis_value->size() != 1 || !y.has_rank()) {
    SetPartsFoundInTheStep(c, count);
    return absl::OkStatus();
  }
  const int rank = y.rank();
  MR_ASSIGN_OR_RETURN(const int axis, NormalizeAxis((*axis_value)[0], rank));
  GraphBuilder& b = c.builder();
  int64_t offset = 0;    // while the extents before are known
  Value dynamic_offset;  // from then on
  for (int i = 0; i < count; ++i) {
    const Value x = c.input(i);
    const bool known = x.shape().has_rank() && x.shape().dim_known(axis);
    std::vector<int64_t> all(rank, -1);
    if (known) all[axis] = x.shape().dim(axis);
    if (c.needs_dx(i)) {
      const Value begin = dynamic_offset.ok() ? dynamic_offset : UnitVector(b, rank, axis, offset);
      c.set_dx(i, CallSlice(c.dy(0), begin, known ? IntVector(b, all) : ShapeOf(x)));
    }
    if (known && !dynamic_offset.ok()) {
      offset += x.shape().dim(axis);
      continue;
    }
    const Value extent = known ? UnitVector(b, rank, axis, all[axis])
                               : Mul(ShapeOf(x), UnitVector(b, rank, axis, 1));
    if (!dynamic_offset.ok()) dynamic_offset = UnitVector(b, rank, axis, offset);
    dynamic_offset = Add(dynamic_offset, extent);
  }
  return absl::OkStatus();
}

Status SliceGradient(GradientContext& c) {
  if (const auto paddings = SlicePaddings(c)) {
    c.set_dx(0, Pad(c.dy(0), *paddings));
    return absl::OkStatus();
  }
  const Value begin = c.input(1);
  const DType index = begin.dtype();
  const Value after = Sub(Sub(ShapeOf(c.input(0), index), begin), ShapeOf(c.output(0), index));
  c.set_dx(0, Call("Pad", {c.dy(0), Columns(begin, after)}, {}, SourceLocation::Current()));
  return absl::OkStatus();
}

Status PadGradient(GradientContext& c) {
  const Value x = c.input(0);
  Value dx;
  if (const Ints paddings = ConstantInput(c, 1)) {
    std::vector<int64_t> begin;
    for (size_t i = 0; i < paddings->size(); i += 2) begin.push_back((*paddings)[i]);
    dx = CallSlice(c.dy(0), IntVector(c.builder(), std::move(begin)), ShapeValue(x));
  } else {
    const Value amounts = c.input(1);
    const Value first = Reshape(Slice(amounts, {0, 0}, {-1, 1}), std::vector<int64_t>{-1});
    dx = CallSlice(c.dy(0), first, ShapeOf(x, amounts.dtype()));
  }
  c.set_dx(0, dx);
  // Of PadV2: what is not the input's is the constant's.
  if (c.num_inputs() > 2 && c.needs_dx(2)) c.set_dx(2, Sub(ReduceSum(c.dy(0)), ReduceSum(dx)));
  return absl::OkStatus();
}

// The repetitions get dimensions of their own, [m0, d0, m1, d1, ...], over which to sum.
Status TileGradient(GradientContext& c) {
  const Value x = c.input(0);
  const Ints multiples = ConstantInput(c, 1);
  if (multiples && x.shape().IsFull() && static_cast<int>(multiples->size()) == x.shape().rank()) {
    std::vector<int64_t> split, axes;
    for (int i = 0; i < x.shape().rank(); ++i) {
      if ((*multiples)[i] != 1) {
        axes.push_back(static_cast<int64_t>(split.size()));
        split.push_back((*multiples)[i]);
      }
      split.push_back(x.shape().dim(i));
    }
    const Value dy = c.dy(0);
    c.set_dx(0, axes.empty() ? dy : ReduceSum(Reshape(dy, split), axes));
    return absl::OkStatus();
  }
  const Value shape = ShapeOf(x, c.input(1).dtype());
  const Value split = Reshape(Columns(c.input(1), shape), std::vector<int64_t>{-1});
  GraphBuilder& b = c.builder();
  const Value axes = Range(Scalar(b, 0, DType::kInt32), Size(split), Scalar(b, 2, DType::kInt32));
  c.set_dx(0, Reshape(Reduce("Sum", Reshape(c.dy(0), split), axes, false), shape));
  return absl::OkStatus();
}

Status BroadcastToGradient(GradientContext& c) {
  c.set_dx(0, SumToShapeOf(c.dy(0), c.input(0), c.output(0)));
  return absl::OkStatus();
}

}  // namespace millrace
