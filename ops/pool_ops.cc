#include "ops/gradient_shapes.h"
#include "ops/nn_ops.h"
#include "ops/node_call.h"
#include "ops/op_families.h"
#include "ops/shape_functions.h"
#include "ops/sharding_rules.h"
#include "ops/window.h"

namespace millrace {
namespace {

AttrMap PoolAttrs(const PoolOptions& options) {
  const std::vector<int64_t> ksize = {1, options.window_height, options.window_width, 1};
  const std::vector<int64_t> strides = {1, options.stride_height, options.stride_width, 1};
  return {{"ksize", ksize},
          {"strides", strides},
          {"padding", options.padding == Padding::kSame ? "SAME" : "VALID"}};
}

}  // namespace

Value MaxPool(Value x, PoolOptions options, SourceLocation where) {
  return Call("MaxPool", {x}, PoolAttrs(options), where);
}
Value AvgPool(Value x, PoolOptions options, SourceLocation where) {
  return Call("AvgPool", {x}, PoolAttrs(options), where);
}

namespace {

StatusOr<PartialShape> PooledShape(const AttrMap& attrs, const PartialShape& x) {
  MR_ASSIGN_OR_RETURN(const Window w, WindowFromAttrs(attrs));
  int64_t extent[2];
  MR_RETURN_IF_ERROR(PairFromAttr(attrs, "ksize", extent));
  MR_ASSIGN_OR_RETURN(const int64_t height, WindowCount(w, 0, x.dim(1), extent[0]));
  MR_ASSIGN_OR_RETURN(const int64_t width, WindowCount(w, 1, x.dim(2), extent[1]));
  return PartialShape{x.dim(0), height, width, x.dim(3)};
}

Status PoolShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape x, c.WithRank(0, 4));
  return SetOutput(c, 0, PooledShape(c.attrs(), x));
}

Status CheckPooled(const AttrMap& attrs, const PartialShape& x, const PartialShape& y,
                   absl::string_view what) {
  MR_ASSIGN_OR_RETURN(const PartialShape pooled, PooledShape(attrs, x));
  if (pooled.IsCompatibleWith(y)) return absl::OkStatus();
  return InvalidArgument(what, " has shape ", y.ToString(), ", but pooling ", x.ToString(),
                         " gives ", pooled.ToString());
}

Status MaxPoolGradShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape x, c.WithRank(0, 4));
  MR_ASSIGN_OR_RETURN(const PartialShape y, c.WithRank(1, 4));
  MR_ASSIGN_OR_RETURN(const PartialShape dy, c.WithRank(2, 4));
  MR_RETURN_IF_ERROR(CheckPooled(c.attrs(), x, y, "orig_output"));
  MR_RETURN_IF_ERROR(CheckPooled(c.attrs(), x, dy, "grad"));
  c.set_output(0, x);
  return absl::OkStatus();
}

Status AvgPoolGradShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape x, ShapeOperand(c, 0, "orig_input_shape"));
  if (!x.has_rank()) x = UnknownOfRank(4);
  if (x.rank() != 4) {
    return InvalidArgument("orig_input_shape must have 4 elements, but has ", x.rank());
  }
  MR_ASSIGN_OR_RETURN(const PartialShape dy, c.WithRank(1, 4));
  MR_RETURN_IF_ERROR(CheckPooled(c.attrs(), x, dy, "grad"));
  const PartialShape told{dy.dim(0), PartialShape::kUnknown, PartialShape::kUnknown, dy.dim(3)};
  return SetOutput(c, 0, x.MergeWith(told));
}

AttrMap SharedAttrs(const AttrMap& attrs) {
  AttrMap shared;
  for (const char* name : {"ksize", "strides", "padding", "explicit_paddings", "data_format"}) {
    if (const AttrValue* value = attrs.Find(name)) shared.Set(name, *value);
  }
  return shared;
}

Status MaxPoolGradient(GradientContext& c) {
  c.set_dx(0, Call("MaxPoolGrad", {c.input(0), c.output(0), c.dy(0)}, SharedAttrs(c.attrs()),
                   SourceLocation::Current()));
  return absl::OkStatus();
}

Status AvgPoolGradient(GradientContext& c) {
  c.set_dx(0, Call("AvgPoolGrad", {ShapeValue(c.input(0)), c.dy(0)}, SharedAttrs(c.attrs()),
                   SourceLocation::Current()));
  return absl::OkStatus();
}

// AvgPoolGrad is linear, and the transpose of AvgPool.
Status AvgPoolGradGradient(GradientContext& c) {
  c.set_dx(1, Call("AvgPool", {c.dy(0)}, SharedAttrs(c.attrs()), SourceLocation::Current()));
  return absl::OkStatus();
}

// Windows cross rows and columns, but neither images nor channels.
bool IsPoolSplit(const Sharding& s) { return s == Sharding::Split(0) || s == Sharding::Split(3); }

ShardingFn PoolSharding(bool linear) {
  return [linear](ShardingContext& c) {
    const bool kept =
        IsPoolSplit(c.input(0)) || (linear && c.input(0).kind == Sharding::kPartialSum);
    if (!kept) c.Require(0, Sharding::Replicated());
    return SameSharding(c);
  };
}

Status MaxPoolGradSharding(ShardingContext& c) {
  for (int i = 0; i < 3; ++i) {
    if (!IsPoolSplit(c.input(i))) continue;
    const Sharding split = c.input(i);
    for (int j = 0; j < 3; ++j) c.Require(j, split);
    c.set_output(0, split);
    return absl::OkStatus();
  }
  const bool partial = c.input(2).kind == Sharding::kPartialSum;
  c.Require(0, Sharding::Replicated());
  c.Require(1, Sharding::Replicated());
  if (!partial) c.Require(2, Sharding::Replicated());
  c.set_output(0, c.input(2));
  return absl::OkStatus();
}

Status AvgPoolGradSharding(ShardingContext& c) {
  c.Require(0, Sharding::Replicated());
  if (IsPoolSplit(c.input(1))) {
    c.LocalizeHostElement(0, c.input(1).dim);
  } else if (c.input(1).kind == Sharding::kSplit) {
    c.Require(1, Sharding::Replicated());
  }
  c.set_output(0, c.input(1));
  return absl::OkStatus();
}

// One operation for each element of each window.
OpCost PoolCost(const ShapeContext& c, const PartialShape& pooled) {
  int64_t extent[2] = {1, 1};
  if (!PairFromAttr(c.attrs(), "ksize", extent).ok()) return {0, TouchedBytes(c)};
  return {Elements(pooled) * static_cast<double>(extent[0]) * static_cast<double>(extent[1]),
          TouchedBytes(c, c.num_inputs() - 1)};
}

OpDef Pool(const char* name, bool explicit_paddings, const char* types) {
  OpDef op(name);
  op.Attr("ksize: list(int) >= 4").Attr("strides: list(int) >= 4");
  if (explicit_paddings) {
    op.Attr("padding: {'SAME', 'VALID', 'EXPLICIT'}").Attr("explicit_paddings: list(int) = []");
  } else {
    op.Attr("padding: {'SAME', 'VALID'}");
  }
  op.Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'").Attr(types);
  return op;
}

}  // namespace

void RegisterPoolOps(OpRegistry& registry) {
  constexpr char kFloatByDefault[] = "T: {float, double} = float";
  constexpr char kFloats[] = "T: {float, double}";
  registry.Add(Pool("MaxPool", true, kFloatByDefault)
                   .Input("input: T")
                   .Output("output: T")
                   .Shape(PoolShape)
                   .Gradient(MaxPoolGradient)
                   .Sharding(PoolSharding(false))
                   .Cost([](const ShapeContext& c) { return PoolCost(c, c.output(0)); })
                   .Doc("The largest element of each window."));
  registry.Add(Pool("MaxPoolGrad", true, kFloatByDefault)
                   .Input("orig_input: T")
                   .Input("orig_output: T")
                   .Input("grad: T")
                   .Output("output: T")
                   .Shape(MaxPoolGradShape)
                   .NotDifferentiable("second derivatives are not provided")
                   .Sharding(MaxPoolGradSharding)
                   .Cost([](const ShapeContext& c) { return PoolCost(c, c.input(2)); })
                   .Doc("The gradient of MaxPool: to the first largest element of each window."));
  registry.Add(Pool("AvgPool", false, kFloats)
                   .Input("value: T")
                   .Output("output: T")
                   .Shape(PoolShape)
                   .Gradient(AvgPoolGradient)
                   .Sharding(PoolSharding(true))
                   .Cost([](const ShapeContext& c) { return PoolCost(c, c.output(0)); })
                   .Doc("The mean of each window; padding does not count."));
  registry.Add(Pool("AvgPoolGrad", false, kFloats)
                   .HostInput("orig_input_shape: int32")
                   .Input("grad: T")
                   .Output("output: T")
                   .Shape(AvgPoolGradShape)
                   .Gradient(AvgPoolGradGradient)
                   .Sharding(AvgPoolGradSharding)
                   .Cost([](const ShapeContext& c) { return PoolCost(c, c.input(1)); })
                   .Doc("The gradient of AvgPool: a share to each element of each window."));
}

}  // namespace millrace
