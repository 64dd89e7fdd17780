#include <algorithm>

#include "core/framework/strided_slice.h"
#include "ops/array_ops.h"
#include "ops/gradient_shapes.h"
#include "ops/node_call.h"
#include "ops/op_families.h"
#include "ops/shape_functions.h"
#include "ops/sharding_rules.h"

namespace millrace {

Value TakeSlice(Value x, const SliceOptions& slice, SourceLocation where) {
  if (!x.ok()) return x;
  GraphBuilder& b = *x.builder();
  const std::vector<int64_t> strides =
      slice.strides.empty() ? std::vector<int64_t>(slice.begin.size(), 1) : slice.strides;
  return Call("StridedSlice",
              {x, IntVector(b, slice.begin, where), IntVector(b, slice.end, where),
               IntVector(b, strides, where)},
              {{"begin_mask", slice.begin_mask},
               {"end_mask", slice.end_mask},
               {"ellipsis_mask", slice.ellipsis_mask},
               {"new_axis_mask", slice.new_axis_mask},
               {"shrink_axis_mask", slice.shrink_axis_mask}},
              where);
}

namespace {

// Of operands `first`, first + 1 and first + 2: begin, end, strides. `known` is false if not even
// their length is.
struct Spec {
  StridedSliceSpec spec;
  bool known = false;
};
StatusOr<Spec> SpecOf(const ShapeContext& c, int first) {
  std::optional<int64_t> count;
  constexpr absl::string_view kNames[] = {"begin", "end", "strides"};
  for (int i = first; i < first + 3; ++i) {
    MR_RETURN_IF_ERROR(c.WithRank(i, 1).status());
    const Tensor* const value = c.host_value(i);
    const auto own =
        value != nullptr ? std::optional(value->num_elements()) : NumElements(c.input(i));
    if (!own) continue;
    if (count && *count != *own) {
      return InvalidArgument(kNames[i - first], " has ", *own, " entries, but others have ",
                             *count);
    }
    count = own;
  }
  Spec result;
  if (!count) return result;
  result.known = true;
  MR_ASSIGN_OR_RETURN(
      result.spec, StridedSliceSpec::Create(
                       c.attrs(), IntElements(c.host_value(first)),
                       IntElements(c.host_value(first + 1)), IntElements(c.host_value(first + 2)),
                       static_cast<int>(std::min<int64_t>(*count, kMaxSliceEntries + 1))));
  return result;
}

Status StridedSliceShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const Spec spec, SpecOf(c, 1));
  if (!spec.known) return absl::OkStatus();
  MR_ASSIGN_OR_RETURN(const StridedSlice slice, ResolveStridedSlice(spec.spec, c.input(0)));
  c.set_output(0, slice.shape);
  return absl::OkStatus();
}

Status StridedSliceGradShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape whole, ShapeOperand(c, 0, "shape"));
  c.set_output(0, whole);
  MR_ASSIGN_OR_RETURN(const Spec spec, SpecOf(c, 1));
  if (!spec.known) return absl::OkStatus();
  MR_ASSIGN_OR_RETURN(const StridedSlice slice, ResolveStridedSlice(spec.spec, whole));
  if (!slice.shape.MergeWith(c.input(4)).ok()) {
    return InvalidArgument("dy has shape ", c.input(4).ToString(), ", but the slice of ",
                           whole.ToString(), " is ", slice.shape.ToString());
  }
  return absl::OkStatus();
}

AttrMap MasksOf(const AttrMap& attrs) {
  AttrMap masks;
  for (const char* name :
       {"begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"}) {
    masks.Set(name, attrs.GetOr<int64_t>(name, 0));
  }
  return masks;
}

Status StridedSliceGradient(GradientContext& c) {
  const Value shape = ShapeOf(c.input(0), c.input(1).dtype());
  c.set_dx(0, Call("StridedSliceGrad", {shape, c.input(1), c.input(2), c.input(3), c.dy(0)},
                   MasksOf(c.attrs()), SourceLocation::Current()));
  return absl::OkStatus();
}

Status StridedSliceGradGradient(GradientContext& c) {
  c.set_dx(4, Call("StridedSlice", {c.dy(0), c.input(1), c.input(2), c.input(3)},
                   MasksOf(c.attrs()), SourceLocation::Current()));
  return absl::OkStatus();
}

OpDef WithMasks(OpDef def) {
  def.Attr("T: type").Attr("Index: {int32, int64}");
  for (const char* name :
       {"begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"}) {
    def.Attr(StrCat(name, ": int = 0"));
  }
  return def;
}

}  // namespace

void RegisterStridedSliceOps(OpRegistry& registry) {
  registry.Add(
      WithMasks(OpDef("StridedSlice")
                    .Input("input: T")
                    .HostInput("begin: Index")
                    .HostInput("end: Index")
                    .HostInput("strides: Index")
                    .Output("output: T"))
          .Shape(StridedSliceShape)
          .Gradient(StridedSliceGradient)
          .Doc("Elements at regular steps of each dimension, some dimensions dropped or added: "
               "x[1:, ..., ::-1, None]."));
  registry.Add(WithMasks(OpDef("StridedSliceGrad")
                             .HostInput("shape: Index")
                             .HostInput("begin: Index")
                             .HostInput("end: Index")
                             .HostInput("strides: Index")
                             .Input("dy: T")
                             .Output("output: T"))
                   .Shape(StridedSliceGradShape)
                   .Gradient(StridedSliceGradGradient)
                   .Doc("dy at the places that StridedSlice takes, and zeros elsewhere."));
}

}  // namespace millrace
