#include "ops/gather_gradients.h"

#include <algorithm>

#include "ops/array_ops.h"
#include "ops/gradient_shapes.h"
#include "ops/math_ops.h"
#include "ops/node_call.h"
#include "ops/shape_functions.h"

namespace millrace {
namespace {

// The extent of dimension `i` of x, a constant if it is known.
Value ExtentOf(Value x, int i) {
  const PartialShape shape = x.shape();
  if (shape.has_rank() && shape.dim_known(i)) {
    return Scalar(*x.builder(), static_cast<double>(shape.dim(i)), DType::kInt32);
  }
  SliceOptions element;
  element.begin = {i};
  element.end = {i + 1};
  element.shrink_axis_mask = 1;
  return TakeSlice(ShapeOf(x), element);
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

Status GatherGradient(GradientContext& c) {
  const Value params = c.input(0), indices = c.input(1);
  const auto axis_value = IntElement(c.builder().graph().ConstantValue(c.node().inputs()[2]));
  if (!axis_value || !params.shape().has_rank() || !indices.shape().has_rank()) {
    return Unimplemented("the gradient of a gather needs a constant axis and known ranks");
  }
  const int rank = params.shape().rank(), picks = indices.shape().rank();
  MR_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(*axis_value, rank));
  const int64_t given = c.attrs().GetOr<int64_t>("batch_dims", 0);
  const int batch = static_cast<int>(given < 0 ? given + picks : given);
  const Value dy = c.dy(0);
  if (!dy.ok()) return absl::OkStatus();  // poisoned: the builder knows why
  // dy[batch, outer, picks, inner] to [batch, picks, outer, inner], whose slices are summed by
  // index to [batch * extent, outer, inner].
  std::vector<int64_t> order;
  AppendRange(&order, 0, batch);
  AppendRange(&order, axis, axis + picks - batch);
  AppendRange(&order, batch, axis);
  AppendRange(&order, axis + picks - batch, rank - 1 + picks - batch);
  const Value slices = Permuted(dy, order);
  // ... and from [batch, extent, outer, inner] to params' own order.
  std::vector<int64_t> summed;
  AppendRange(&summed, 0, batch);
  summed.push_back(axis);
  AppendRange(&summed, batch, axis);
  AppendRange(&summed, axis + 1, rank);
  if (batch == 0) {
    c.set_dx(
        0, Permuted(UnsortedSegmentSum(slices, indices, ExtentOf(params, axis)), Inverse(summed)));
    return absl::OkStatus();
  }
  // Indices count within their batch; ids count through all of them.
  GraphBuilder& b = c.builder();
  const DType index = indices.dtype();
  const Value zero = Scalar(b, 0, DType::kInt32), one = Scalar(b, 1, DType::kInt32);
  const Value shape = ShapeValue(params), extent = ExtentOf(params, axis);
  const Value batch_shape = Slice(shape, {0}, {batch});
  const Value batches = ReduceProd(batch_shape);
  Value offsets = Cast(Range(zero, batches, one), index) * Cast(extent, index);
  const Value ones = IntVector(b, std::vector<int64_t>(picks - batch, 1));
  offsets = Reshape(offsets, Concat({batch_shape, ones}, 0));
  const Value sums = UnsortedSegmentSum(slices, Add(indices, offsets), batches * extent);
  const Value own_shape = Gather(shape, IntVector(b, summed), 0, SourceLocation::Current());
  c.set_dx(0, Permuted(Reshape(sums, own_shape), Inverse(summed)));
  return absl::OkStatus();
}

Status SegmentSumGradient(GradientContext& c) {
  const Value data = c.input(0), ids = c.input(1);
  if (!data.shape().has_rank() || !ids.shape().has_rank()) {
    return Unimplemented("the gradient of a segment sum needs known ranks");
  }
  const Value dy = c.dy(0);
  if (!dy.ok()) return absl::OkStatus();
  const Value zero = Scalar(c.builder(), 0, ids.dtype());
  const Value rows = Gather(dy, Maximum(ids, zero), 0, SourceLocation::Current());
  Value counts = GreaterEqual(ids, zero);
  for (int i = ids.shape().rank(); i < data.shape().rank(); ++i) counts = ExpandDims(counts, -1);
  c.set_dx(0, Select(counts, rows, Scalar(c.builder(), 0, dy.dtype())));
  return absl::OkStatus();
}

Status TopKGradient(GradientContext& c) {
  const Value x = c.input(0);
  if (!x.shape().has_rank()) {
    return Unimplemented("the gradient of TopKV2 needs the rank of its input");
  }
  const int rank = x.shape().rank();
  GraphBuilder& b = c.builder();
  const Value one = Scalar(b, 1, DType::kInt32), zero = Scalar(b, 0, DType::kInt32);
  // Where each row of x begins among all elements, to be added to the indices in it.
  const Value size = Size(x);
  const Value starts = Range(zero, size, Maximum(ExtentOf(x, rank - 1), one));
  const Value outer = Slice(ShapeOf(x), {0}, {rank - 1});
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
