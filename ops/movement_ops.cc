#include <limits>

#include "core/base/checked_math.h"
#include "ops/array_ops.h"
#include "ops/movement_gradients.h"
#include "ops/node_call.h"
#include "ops/op_families.h"
#include "ops/shape_functions.h"
#include "ops/sharding_rules.h"

// The same elements elsewhere, some of them, or all of them several times.
namespace millrace {

Value Transpose(Value x, std::vector<int64_t> permutation, SourceLocation where) {
  if (!x.ok()) return x;
  return Call("Transpose", {x, IntVector(*x.builder(), std::move(permutation), where)}, {}, where);
}

Value Slice(Value x, std::vector<int64_t> begin, std::vector<int64_t> size, SourceLocation where) {
  if (!x.ok()) return x;
  GraphBuilder& b = *x.builder();
  const Value from = IntVector(b, std::move(begin), where);
  return Call("Slice", {x, from, IntVector(b, std::move(size), where)}, {}, where);
}

Value Pad(Value x, std::vector<std::pair<int64_t, int64_t>> paddings, SourceLocation where) {
  if (!x.ok()) return x;
  std::vector<int32_t> flat;
  for (const auto& [before, after] : paddings) {
    for (int64_t extent : {before, after}) {
      if (extent < 0 || extent > std::numeric_limits<int32_t>::max()) {
        x.builder()->Fail(InvalidArgument("a padding of ", extent, " elements"), where);
        return Value(x.builder(), Port{});
      }
      flat.push_back(static_cast<int32_t>(extent));
    }
  }
  const Shape shape{static_cast<int64_t>(paddings.size()), 2};
  const Value amounts = Const(*x.builder(), Tensor::Of<int32_t>(shape, flat), "", where);
  return Call("Pad", {x, amounts}, {}, where);
}

Value Tile(Value x, Value multiples, SourceLocation where) {
  return Call("Tile", {x, multiples}, {}, where);
}
Value BroadcastTo(Value x, Value shape, SourceLocation where) {
  return Call("BroadcastTo", {x, shape}, {}, where);
}

namespace {

// A vector operand with an element for each dimension of x.
Status CheckPerDimension(const ShapeContext& c, int i, absl::string_view what) {
  const PartialShape& x = c.input(0);
  MR_RETURN_IF_ERROR(c.WithRank(i, 1).status());
  const auto elements = c.host_value(i) != nullptr ? std::optional(c.host_value(i)->num_elements())
                                                   : NumElements(c.input(i));
  if (!x.has_rank() || !elements || *elements == x.rank()) return absl::OkStatus();
  return InvalidArgument(what, " has ", *elements, " elements, but the input ", x.ToString(),
                         " has rank ", x.rank());
}

// How many dimensions x has, by its own shape or that of a vector operand; -1 if neither tells.
int RankOf(const ShapeContext& c, int operand) {
  if (c.input(0).has_rank()) return c.input(0).rank();
  const PartialShape& own = c.input(operand);
  return own.has_rank() && own.rank() > 0 ? static_cast<int>(own.dim(0)) : -1;
}

// The permutation that host operand `tensor` holds; empty if not known.
StatusOr<std::vector<int64_t>> Permutation(const Tensor* tensor) {
  const auto perm = IntElements(tensor);
  if (!perm) return std::vector<int64_t>();
  std::vector<bool> seen(perm->size(), false);
  for (int64_t p : *perm) {
    if (p < 0 || p >= static_cast<int64_t>(perm->size()) || seen[p]) {
      return InvalidArgument(
          "not a permutation: element ", p, " is ",
          p < 0 || p >= static_cast<int64_t>(perm->size()) ? "out of range" : "there twice");
    }
    seen[p] = true;
  }
  return *perm;
}

Status TransposeShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(CheckPerDimension(c, 1, "perm"));
  MR_ASSIGN_OR_RETURN(const std::vector<int64_t> perm, Permutation(c.host_value(1)));
  const PartialShape& x = c.input(0);
  if (c.host_value(1) == nullptr || !x.has_rank()) {
    c.set_output(0, UnknownOfRank(RankOf(c, 1)));
    return absl::OkStatus();
  }
  std::vector<int64_t> dims;
  for (int64_t p : perm) dims.push_back(x.dim(static_cast<int>(p)));
  return SetOutput(c, 0, PartialShape::Create(dims));
}

Status TransposeSharding(ShardingContext& c) {
  c.Require(1, Sharding::Replicated());
  if (c.input(0).kind != Sharding::kSplit) {
    c.set_output(0, c.input(0));
    return absl::OkStatus();
  }
  MR_ASSIGN_OR_RETURN(const std::vector<int64_t> perm, Permutation(c.host_value(1)));
  for (size_t i = 0; i < perm.size(); ++i) {
    if (perm[i] == c.input(0).dim) {
      c.set_output(0, Sharding::Split(static_cast<int>(i)));
      return absl::OkStatus();
    }
  }
  c.Require(0, Sharding::Replicated());
  return absl::OkStatus();
}

Status InvertPermutationShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape x, c.WithRank(0, 1));
  MR_RETURN_IF_ERROR(Permutation(c.host_value(0)).status());
  c.set_output(0, x);
  return absl::OkStatus();
}

Status SliceShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(CheckPerDimension(c, 1, "begin"));
  MR_RETURN_IF_ERROR(CheckPerDimension(c, 2, "size"));
  const PartialShape& x = c.input(0);
  const auto begin = IntElements(c.host_value(1)), size = IntElements(c.host_value(2));
  if (!x.has_rank() || (!begin && !size)) {
    c.set_output(0, UnknownOfRank(x.has_rank() ? x.rank() : RankOf(c, 1)));
    return absl::OkStatus();
  }
  std::vector<int64_t> dims;
  for (int i = 0; i < x.rank(); ++i) {
    const int64_t from = begin ? (*begin)[i] : 0;
    const int64_t many = size ? (*size)[i] : PartialShape::kUnknown;
    int64_t end = 0;
    if (from < 0 || many < -1 || !CheckedAdd(from, std::max<int64_t>(many, 0), &end) ||
        (x.dim_known(i) && end > x.dim(i))) {
      return InvalidArgument("dimension ", i, " of the input ", x.ToString(), " does not have ",
                             many, " elements from ", from);
    }
    const bool to_end = size && many == -1;
    if (to_end && begin && x.dim_known(i)) {
      dims.push_back(x.dim(i) - from);
    } else {
      dims.push_back(to_end ? PartialShape::kUnknown : many);
    }
  }
  return SetOutput(c, 0, PartialShape::Create(dims));
}

// A split dimension must be taken as a whole.
Status SliceSharding(ShardingContext& c) {
  c.Require(1, Sharding::Replicated());
  c.Require(2, Sharding::Replicated());
  c.set_output(0, c.input(0));
  if (c.input(0).kind != Sharding::kSplit) return absl::OkStatus();
  const int dim = c.input(0).dim;
  MR_ASSIGN_OR_RETURN(const int64_t extent, SplitExtent(c, 0, dim));
  const PartialShape& y = c.output_shape(0);
  if (!y.has_rank() || y.dim(dim) != extent || c.host_value(2) == nullptr) {
    c.Require(0, Sharding::Replicated());
    c.set_output(0, Sharding::Replicated());
    return absl::OkStatus();
  }
  LocalizeUnlessRest(c, 2, dim);
  return absl::OkStatus();
}

}  // namespace

void RegisterMovementOps(OpRegistry& registry) {
  registry.Add(
      OpDef("Transpose")
          .Input("x: T")
          .HostInput("perm: Tperm")
          .Output("y: T")
          .Attr("T: type")
          .Attr("Tperm: {int32, int64} = int32")
          .Shape(TransposeShape)
          .Gradient(TransposeGradient)
          .Sharding(TransposeSharding)
          .Doc("The same elements with the dimensions permuted: y's i-th is x's perm[i]."));
  registry.Add(OpDef("InvertPermutation")
                   .HostInput("x: T")
                   .HostOutput("y: T")
                   .Attr("T: {int32, int64} = int32")
                   .Shape(InvertPermutationShape)
                   .NotDifferentiable("its output is an integer")
                   .Traits({Trait::kCheap})
                   .Doc("The permutation that undoes x: y[x[i]] = i."));
  registry.Add(OpDef("Slice")
                   .Input("input: T")
                   .HostInput("begin: Index")
                   .HostInput("size: Index")
                   .Output("output: T")
                   .Attr("T: type")
                   .Attr("Index: {int32, int64}")
                   .Shape(SliceShape)
                   .Gradient(SliceGradient)
                   .Sharding(SliceSharding)
                   .Doc("The block of given begin and size; a size of -1 goes to the end."));
}

}  // namespace millrace
