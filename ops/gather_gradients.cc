#include "ops/gather_gradients.h"

#include <algorithm>

#include "ops/array_ops.h"
#include "ops/gradient_shapes.h"
#include "ops/math_ops.h"
#include "ops/node_call.h"
#include "ops/shape_functions.h"

namespace millrace {
namespace {

// Element `i` of a vector, counted from its end if negative.
Value Element(Value vector, int64_t i) {
  SliceOptions element;
  element.begin = {i};
  element.end = {i + 1};
  element.shrink_axis_mask = 1;
  return TakeSlice(vector, element);
}

// The extent of dimension `i` of x, a constant if it is known.
Value ExtentOf(Value x, int i) {
  const PartialShape shape = x.shape();
  const int at = i < 0 && shape.has_rank() ? i + shape.rank() : i;
  if (shape.has_rank() && shape.dim_known(at)) {
    return Scalar(*x.builder(), static_cast<double>(shape.dim(at)), DType::kInt32);
  }
  return Element(ShapeOf(x), i);
}

// The product of elements [from, to) of a shape; both ends are scalars.
Value Product(Value shape, Value from, Value to) {
  const Value part = Call("Slice", {shape, ExpandDims(from, 0), ExpandDims(to - from, 0)}, {},
                          SourceLocation::Current());
  return ReduceProd(part);
}

Value AsVector(std::initializer_list<Value> scalars) {
  return Stack(absl::MakeConstSpan(scalars.begin(), scalars.size()), 0, SourceLocation::Current());
}

std::vector<int64_t> Inverse(const std::vector<int64_t>& permutation) {
  std::vector<int64_t> inverse(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i) inverse[permutation[i]] = static_cast<int64_t>(i);
  return inverse;
}

bool IsIdentity(const std::vector<int64_t>& permutation) {
  return std::is_sorted(permutation.begin(), permutation.end());
}

Value Permuted(Value x, const std::vector<int64_t>& permutation) {
  return IsIdentity(permutation) ? x : Transpose(x, permutation);
}

// Appends [begin, end).
void AppendRange(std::vector<int64_t>* to, int begin, int end) {
  for (int i = begin; i < end; ++i) to->push_back(i);
}

}  // namespace

namespace {

// Of a gather without batch dimensions along a known axis of tensors of known ranks.
Value GatheredAlong(int axis, Value params, Value indices, Value dy) {
  const int rank = params.shape().rank(), picks = indices.shape().rank();
  // dy[outer, picks, inner] to [picks, outer, inner], whose slices are summed by index to [extent,
  // outer, inner], and from there to params' own order.
  std::vector<int64_t> order, summed = {axis};
  AppendRange(&order, axis, axis + picks);
  AppendRange(&order, 0, axis);
  AppendRange(&order, axis + picks, rank - 1 + picks);
  AppendRange(&summed, 0, axis);
  AppendRange(&summed, axis + 1, rank);
  const Value sums = UnsortedSegmentSum(Permuted(dy, order), indices, ExtentOf(params, axis));
  return Permuted(sums, Inverse(summed));
}

// Of any gather, by shapes that are known in the step.
Value GatheredInBatches(int64_t batch_dims, Value params, Value indices, Value axis, Value dy) {
  GraphBuilder& b = *params.builder();
  const Value zero = Scalar(b, 0, DType::kInt32), one = Scalar(b, 1, DType::kInt32);
  const Value shape = ShapeValue(params), picked = ShapeValue(indices);
  const Value rank = Rank(params), pick_rank = Rank(indices);
  const Value at = FloorMod(Cast(axis, DType::kInt32), rank);
  Value batch_end = Scalar(b, static_cast<double>(batch_dims), DType::kInt32);
  if (batch_dims < 0) batch_end = batch_end + pick_rank;
  // params[batches, outer, extent, inner], indices[batches, picks], dy[batches, outer, picks,
  // inner]; ids count through all batches.
  const Value batches = Product(shape, zero, batch_end), outer = Product(shape, batch_end, at);
  const Value extent = Product(shape, at, at + one), inner = Product(shape, at + one, rank);
  const Value picks = Product(picked, batch_end, pick_rank);
  const std::vector<int64_t> swap = {0, 2, 1, 3};
  const Value slices = Transpose(Reshape(dy, AsVector({batches, outer, picks, inner})), swap);
  const Value starts = ExpandDims(Range(zero, batches, one) * extent, 1);
  const Value ids = Reshape(indices, AsVector({batches, picks})) + Cast(starts, indices.dtype());
  const Value sums = UnsortedSegmentSum(slices, ids, batches * extent);
  const Value parts = Reshape(sums, AsVector({batches, extent, outer, inner}));
  return Reshape(Transpose(parts, swap), shape);
}

}  // namespace

Status GatherGradient(GradientContext& c) {
  const Value params = c.input(0), indices = c.input(1), dy = c.dy(0);
  if (!dy.ok()) return absl::OkStatus();  // poisoned: the builder knows why
  const auto axis = IntElement(c.builder().graph().ConstantValue(c.node().inputs()[2]));
  const int64_t batch_dims = c.attrs().GetOr<int64_t>("batch_dims", 0);
  if (axis && batch_dims == 0 && params.shape().has_rank() && indices.shape().has_rank()) {
    MR_ASSIGN_OR_RETURN(const int at, NormalizeAxis(*axis, params.shape().rank()));
    c.set_dx(0, GatheredAlong(at, params, indices, dy));
  } else {
    c.set_dx(0, GatheredInBatches(batch_dims, params, indices, c.input(2), dy));
  }
  return absl::OkStatus();
}

Status SegmentSumGradient(GradientContext& c) {
  const Value data = c.input(0), ids = c.input(1);
  const Value dy = c.dy(0);
  if (!dy.ok()) return absl::OkStatus();
  const Value zero = Scalar(c.builder(), 0, ids.dtype());
  const Value rows = Gather(dy, Maximum(ids, zero), 0, SourceLocation::Current());
  // As many dimensions as the data has, so that it goes along with whole rows.
  Value counts = GreaterEqual(ids, zero);
  if (data.shape().has_rank() && ids.shape().has_rank()) {
    for (int i = ids.shape().rank(); i < data.shape().rank(); ++i) counts = ExpandDims(counts, -1);
  } else {
    const Value added = ExpandDims(Rank(data) - Rank(ids), 0);
    const Value ones = Fill(added, Scalar(c.builder(), 1, DType::kInt32));
    counts = Reshape(counts, Concat({ShapeOf(ids), ones}, 0));
  }
  c.set_dx(0, Select(counts, rows, Scalar(c.builder(), 0, dy.dtype())));
  return absl::OkStatus();
}

Status TopKGradient(GradientContext& c) {
  const Value x = c.input(0);
  GraphBuilder& b = c.builder();
  const Value one = Scalar(b, 1, DType::kInt32), zero = Scalar(b, 0, DType::kInt32);
  // Where each row of x begins among all elements, to be added to the indices in it.
  const Value size = Size(x);
  const Value starts = Range(zero, size, Maximum(ExtentOf(x, -1), one));
  SliceOptions all_but_last;
  all_but_last.begin = {0};
  all_but_last.end = {-1};
  const Value outer = TakeSlice(ShapeOf(x), all_but_last);
  const Value offsets = ExpandDims(Reshape(starts, outer), -1);
  const Value ids = Add(Cast(c.output(1), DType::kInt32), offsets);
  c.set_dx(0, ReshapeLike(UnsortedSegmentSum(c.dy(0), ids, size), x));
  return absl::OkStatus();
}

Status DynamicStitchGradient(GradientContext& c) {
  const int count = c.num_inputs() / 2;
  for (int i = 0; i < count; ++i) {
    if (c.needs_dx(count + i)) {
      c.set_dx(count + i, Gather(c.dy(0), c.input(i), 0, SourceLocation::Current()));
    }
  }
  return absl::OkStatus();
}

}  // namespace millrace
