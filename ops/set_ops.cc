#include <algorithm>

#include "ops/array_ops.h"
#include "ops/gather_gradients.h"
#include "ops/node_call.h"
#include "ops/op_families.h"
#include "ops/shape_functions.h"

// Tensors as sets of their elements: which are there, which differ, which are largest.
namespace millrace {

Value WhereTrue(Value condition, SourceLocation where) {
  return Call("Where", {condition}, {}, where);
}
std::vector<Value> Unique(Value x, SourceLocation where) {
  return CallMany("Unique", {x}, {}, 2, where);
}
std::vector<Value> TopK(Value x, int64_t k, bool sorted, SourceLocation where) {
  if (!x.ok()) return {x, x};
  const Value count = Scalar(*x.builder(), static_cast<double>(k), DType::kInt32, where);
  return CallMany("TopKV2", {x, count}, {{"sorted", sorted}}, 2, where);
}
Value DynamicStitch(absl::Span<const Value> indices, absl::Span<const Value> data,
                    SourceLocation where) {
  std::vector<Value> inputs(indices.begin(), indices.end());
  inputs.insert(inputs.end(), data.begin(), data.end());
  return Call("DynamicStitch", inputs, {{"N", static_cast<int64_t>(indices.size())}}, where);
}

namespace {

Status WhereShape(ShapeContext& c) {
  const PartialShape& x = c.input(0);
  if (x.has_rank() && x.rank() == 0) return InvalidArgument("a scalar has no indices");
  c.set_output(
      0, PartialShape{PartialShape::kUnknown, x.has_rank() ? x.rank() : PartialShape::kUnknown});
  return absl::OkStatus();
}

Status UniqueShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape x, c.WithRank(0, 1));
  c.set_output(0, PartialShape{PartialShape::kUnknown});
  c.set_output(1, x);
  return absl::OkStatus();
}

Status ListDiffShape(ShapeContext& c) {
  for (int i = 0; i < 2; ++i) {
    MR_RETURN_IF_ERROR(c.WithRank(i, 1).status());
    c.set_output(i, PartialShape{PartialShape::kUnknown});
  }
  return absl::OkStatus();
}

Status TopKShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(CheckScalar(c, 1, "k"));
  const PartialShape& x = c.input(0);
  const int64_t k = IntElement(c.host_value(1)).value_or(PartialShape::kUnknown);
  if (c.host_value(1) != nullptr && k < 0) {
    return InvalidArgument("k must not be negative, but is ", k);
  }
  if (!x.has_rank()) return absl::OkStatus();
  if (x.rank() == 0) return InvalidArgument("a scalar has no largest elements");
  const int last = x.rank() - 1;
  if (x.dim_known(last) && k > x.dim(last)) {
    return InvalidArgument("k is ", k, ", but the last dimension of the input ", x.ToString(),
                           " has ", x.dim(last), " elements");
  }
  std::vector<int64_t> dims = Extents(x);
  dims[last] = k;
  for (int i = 0; i < 2; ++i) MR_RETURN_IF_ERROR(SetOutput(c, i, PartialShape::Create(dims)));
  return absl::OkStatus();
}

// Indices first, then as many tensors of data.
Status DynamicStitchShape(ShapeContext& c) {
  const int count = c.num_inputs() / 2;
  PartialShape rest;  // of each datum behind its index
  int64_t largest = -1;
  bool known = true;
  for (int i = 0; i < count; ++i) {
    const PartialShape &indices = c.input(i), &data = c.input(count + i);
    if (const auto values = IntElements(c.host_value(i))) {
      for (const int64_t value : *values) largest = std::max(largest, value);
    } else {
      known = false;
    }
    if (!indices.has_rank() || !data.has_rank()) continue;
    bool fits = indices.rank() <= data.rank();
    for (int k = 0; fits && k < indices.rank(); ++k) {
      fits = !indices.dim_known(k) || !data.dim_known(k) || indices.dim(k) == data.dim(k);
    }
    if (!fits) {
      return InvalidArgument("data ", i, " has shape ", data.ToString(),
                             ", which does not begin with that of its indices, ",
                             indices.ToString());
    }
    std::vector<int64_t> dims = Extents(data);
    dims.erase(dims.begin(), dims.begin() + indices.rank());
    MR_ASSIGN_OR_RETURN(const PartialShape own, PartialShape::Create(dims));
    const auto merged = rest.MergeWith(own);
    if (!merged.ok()) {
      return InvalidArgument("the elements of data ", i, " have shape ", own.ToString(),
                             ", but those before have ", rest.ToString());
    }
    rest = *merged;
  }
  if (!rest.has_rank()) return absl::OkStatus();
  std::vector<int64_t> dims = Extents(rest);
  dims.insert(dims.begin(), known ? largest + 1 : PartialShape::kUnknown);
  return SetOutput(c, 0, PartialShape::Create(dims));
}

}  // namespace

void RegisterSetOps(OpRegistry& registry) {
  constexpr char kIndices[] = "its output is integers";
  registry.Add(OpDef("Where")
                   .Input("input: T")
                   .Output("index: int64")
                   .Attr("T: {float, double, int32, int64, uint8, int8, bool} = bool")
                   .Shape(WhereShape)
                   .NotDifferentiable(kIndices)
                   .Traits({Trait::kAllocatesOutputs})
                   .Doc("The indices of the elements that are not zero, in order, a row each."));
  registry.Add(OpDef("Unique")
                   .Input("x: T")
                   .Output("y: T")
                   .Output("idx: out_idx")
                   .Attr("T: {float, double, int32, int64, uint8, int8, bool, string}")
                   .Attr("out_idx: {int32, int64} = int32")
                   .Shape(UniqueShape)
                   .NotDifferentiable("which elements are equal does not change smoothly")
                   .Traits({Trait::kAllocatesOutputs})
                   .Doc("The different elements in the order of their first places, and for each "
                        "element of x which one it is."));
  registry.Add(OpDef("ListDiff")
                   .Input("x: T")
                   .Input("y: T")
                   .Output("out: T")
                   .Output("idx: out_idx")
                   .Attr("T: {float, double, int32, int64, uint8, int8, bool, string}")
                   .Attr("out_idx: {int32, int64} = int32")
                   .Shape(ListDiffShape)
                   .NotDifferentiable("which elements are equal does not change smoothly")
                   .Traits({Trait::kAllocatesOutputs})
                   .Doc("The elements of x that are not in y, and their places in x."));
  registry.Add(OpDef("TopKV2")
                   .Input("input: T")
                   .HostInput("k: Tk")
                   .Output("values: T")
                   .Output("indices: index_type")
                   .Attr("sorted: bool = true")
                   .Attr("T: {float, double, int32, int64, uint8, int8}")
                   .Attr("Tk: {int32, int64} = int32")
                   .Attr("index_type: {int32, int64} = int32")
                   .Shape(TopKShape)
                   .Gradient(TopKGradient)
                   .Doc("The k largest elements of each row along the last dimension, and their "
                        "places; of equal ones the first. NaN counts as the largest."));
  registry.Add(OpDef("DynamicStitch")
                   .HostInput("indices: N * int32")
                   .Input("data: N * T")
                   .Output("merged: T")
                   .Attr("N: int >= 1")
                   .Attr("T: type")
                   .Shape(DynamicStitchShape)
                   .Gradient(DynamicStitchGradient)
                   .Traits({Trait::kAllocatesOutputs})
                   .Doc("Slices of several tensors put at the indices given with each; a later one "
                        "wins, and a place that none names is zero."));
}

}  // namespace millrace
