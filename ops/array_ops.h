#ifndef OPS_ARRAY_OPS_H_
#define OPS_ARRAY_OPS_H_

#include <vector>

#include "core/graph/graph_builder.h"

// Sources, shapes and the movement of elements.
namespace millrace {

class OpRegistry;
void RegisterArrayOps(OpRegistry& registry);

// The value `tensor`, part of the graph.
Value Const(GraphBuilder& builder, Tensor tensor, absl::string_view name = "",
            SourceLocation where = SourceLocation::Current());
// A scalar of any numeric dtype.
Value Scalar(GraphBuilder& builder, double value, DType dtype = DType::kFloat,
             SourceLocation where = SourceLocation::Current());
// An int32 vector, as shapes and axes are.
Value IntVector(GraphBuilder& builder, std::vector<int64_t> values,
                SourceLocation where = SourceLocation::Current());
// A value that each step must feed.
Value Placeholder(GraphBuilder& builder, DType dtype, PartialShape shape,
                  absl::string_view name = "", SourceLocation where = SourceLocation::Current());
// `fallback`, unless the step feeds a value of that shape.
Value PlaceholderWithDefault(Value fallback, PartialShape shape, absl::string_view name = "",
                             SourceLocation where = SourceLocation::Current());

Value Identity(Value x, SourceLocation where = SourceLocation::Current());
// All at once: what needs one of the results needs all of `values`.
std::vector<Value> IdentityN(absl::Span<const Value> values,
                             SourceLocation where = SourceLocation::Current());
// x; a gradient through it is an error, which gives `message`.
Value PreventGradient(Value x, absl::string_view message,
                      SourceLocation where = SourceLocation::Current());
// x, through which no gradient flows.
Value StopGradient(Value x, SourceLocation where = SourceLocation::Current());
// `value` (a scalar) at every element of the shape held by `dims` (int32 or int64 vector).
Value Fill(Value dims, Value value, SourceLocation where = SourceLocation::Current());
Value ZerosLike(Value x, SourceLocation where = SourceLocation::Current());
Value OnesLike(Value x, SourceLocation where = SourceLocation::Current());
// The shape of x as an int32 vector (int64 if asked); its number of elements; its rank.
Value ShapeOf(Value x, DType dtype = DType::kInt32,
              SourceLocation where = SourceLocation::Current());
Value Size(Value x, SourceLocation where = SourceLocation::Current());
Value Rank(Value x, SourceLocation where = SourceLocation::Current());
// Same elements, new shape; one extent may be -1.
Value Reshape(Value x, Value shape, SourceLocation where = SourceLocation::Current());
Value Reshape(Value x, std::vector<int64_t> shape,
              SourceLocation where = SourceLocation::Current());
Value ExpandDims(Value x, int64_t axis, SourceLocation where = SourceLocation::Current());
// Drops extents of 1: all, or those named.
Value Squeeze(Value x, std::vector<int64_t> axes = {},
              SourceLocation where = SourceLocation::Current());
Value Transpose(Value x, std::vector<int64_t> permutation,
                SourceLocation where = SourceLocation::Current());
Value Concat(absl::Span<const Value> values, int64_t axis,
             SourceLocation where = SourceLocation::Current());
// `size` elements from `begin` along each dimension; -1: to the end.
// Values of one shape along a new axis, and back: `count` slices along an axis, each without it.
Value Stack(absl::Span<const Value> values, int64_t axis = 0,
            SourceLocation where = SourceLocation::Current());
std::vector<Value> Unstack(Value x, int count, int64_t axis = 0,
                           SourceLocation where = SourceLocation::Current());
// `count` equal parts along an axis; parts of given sizes, of which one may be -1: the rest.
std::vector<Value> Split(Value x, int count, int64_t axis,
                         SourceLocation where = SourceLocation::Current());
std::vector<Value> Split(Value x, std::vector<int64_t> sizes, int64_t axis,
                         SourceLocation where = SourceLocation::Current());
// What TakeSlice takes: entry i of begin, end and strides (1 each, if empty) is for dimension i;
// bit i of a mask changes what entry i means.
struct SliceOptions {
  std::vector<int64_t> begin, end, strides;
  int64_t begin_mask = 0;        // from the first element
  int64_t end_mask = 0;          // to the last element
  int64_t ellipsis_mask = 0;     // all dimensions that the other entries leave
  int64_t new_axis_mask = 0;     // a new dimension of extent 1
  int64_t shrink_axis_mask = 0;  // element begin[i] alone; the dimension goes
};
Value TakeSlice(Value x, const SliceOptions& slice,
                SourceLocation where = SourceLocation::Current());
Value Slice(Value x, std::vector<int64_t> begin, std::vector<int64_t> size,
            SourceLocation where = SourceLocation::Current());
// {before, after} zeros along each dimension.
Value Pad(Value x, std::vector<std::pair<int64_t, int64_t>> paddings,
          SourceLocation where = SourceLocation::Current());
Value Tile(Value x, Value multiples, SourceLocation where = SourceLocation::Current());
Value BroadcastTo(Value x, Value shape, SourceLocation where = SourceLocation::Current());
// The axes over which to sum the gradient of each operand of a broadcast, given their shapes.
std::vector<Value> BroadcastGradientArgs(Value shape0, Value shape1,
                                         SourceLocation where = SourceLocation::Current());
// 1 at `indices`, 0 elsewhere, along a new last axis of extent `depth`.
Value OneHot(Value indices, int64_t depth, DType dtype = DType::kFloat,
             SourceLocation where = SourceLocation::Current());
// start, start+delta, ... below limit.
Value Range(Value start, Value limit, Value delta,
            SourceLocation where = SourceLocation::Current());
// The slices of x along an axis that `indices` (int32 or int64) name.
Value Gather(Value x, Value indices, int64_t axis = 0,
             SourceLocation where = SourceLocation::Current());
// The slices of x that the last dimension of `indices` names; zeros of `shape` with `updates` added
// at such indices.
Value GatherNd(Value x, Value indices, SourceLocation where = SourceLocation::Current());
Value ScatterNd(Value indices, Value updates, Value shape,
                SourceLocation where = SourceLocation::Current());
// Sums of the slices of `data` that have one id, for ids from 0 to `num_segments` - 1. A negative
// id counts nowhere.
Value UnsortedSegmentSum(Value data, Value segment_ids, Value num_segments,
                         SourceLocation where = SourceLocation::Current());

// int64[n, rank]: the indices of the elements that are true, or not 0.
Value WhereTrue(Value condition, SourceLocation where = SourceLocation::Current());
// {the different elements of a vector, for each element which one it is}
std::vector<Value> Unique(Value x, SourceLocation where = SourceLocation::Current());
// {the k largest elements of each row along the last dimension, their places in it}
std::vector<Value> TopK(Value x, int64_t k, bool sorted = true,
                        SourceLocation where = SourceLocation::Current());
// The slices of data[i] at indices[i], all in one tensor; a later one wins.
Value DynamicStitch(absl::Span<const Value> indices, absl::Span<const Value> data,
                    SourceLocation where = SourceLocation::Current());

// Strings joined element by element; scalars are repeated.
Value StringJoin(absl::Span<const Value> values, absl::string_view separator = "",
                 SourceLocation where = SourceLocation::Current());
// "base-00002-of-00005" of a string and two int32 scalars.
Value ShardedFilename(Value base, Value shard, Value shards,
                      SourceLocation where = SourceLocation::Current());

// Ends the step with an error that shows `data`, unless `condition` (a boolean scalar) is true.
Operation Assert(Value condition, absl::Span<const Value> data,
                 SourceLocation where = SourceLocation::Current());
// x; logs `message` and `data` whenever it is computed.
Value Print(Value x, absl::Span<const Value> data, absl::string_view message = "",
            SourceLocation where = SourceLocation::Current());
// x; an error, with `message`, if an element is infinite or NaN.
Value CheckNumerics(Value x, absl::string_view message,
                    SourceLocation where = SourceLocation::Current());

// Draws keyed by (seed, this op's id, step): see docs/architecture.md, "Randomness". `shape` is an
// int32 or int64 vector.
// Uniform in [0,1).
Value RandomUniform(Value shape, DType dtype, uint64_t seed,
                    SourceLocation where = SourceLocation::Current());
// Normal with mean 0 and deviation 1.
Value RandomNormal(Value shape, DType dtype, uint64_t seed,
                   SourceLocation where = SourceLocation::Current());
// As RandomNormal, draws beyond two deviations drawn anew.
Value TruncatedNormal(Value shape, DType dtype, uint64_t seed,
                      SourceLocation where = SourceLocation::Current());

// The same draws as functions of their arguments alone: `seed` is an int32 or int64 vector of a
// stream and a place in it, such as the number of a step. For what must come out the same in a run
// that is begun or resumed on servers which have run others.
Value StatelessRandomUniform(Value shape, Value seed, DType dtype,
                             SourceLocation where = SourceLocation::Current());
Value StatelessRandomNormal(Value shape, Value seed, DType dtype,
                            SourceLocation where = SourceLocation::Current());
Value StatelessTruncatedNormal(Value shape, Value seed, DType dtype,
                               SourceLocation where = SourceLocation::Current());
// A stream for these: unrelated ones for different seeds or names; the same in every build.
int64_t RandomStream(uint64_t seed, absl::string_view name);

}  // namespace millrace

#endif  // OPS_ARRAY_OPS_H_
