#include "ops/sharding_rules.h"

#include <algorithm>
#include <utility>

#include "ops/shape_functions.h"

namespace millrace {
namespace {

// Partial sums where no operand is split. Sets the output and gives true if they can stay.
bool KeepPartialSum(ShardingContext& c, Linearity linearity, const std::vector<int>& linear) {
  int partial = 0;
  for (int i = 0; i < c.num_inputs(); ++i) partial += c.input(i).kind == Sharding::kPartialSum;
  if (partial == 0) return false;
  if (linearity == Linearity::kTogether && partial == c.num_inputs()) {
    c.set_output(0, Sharding::PartialSum());
    return true;
  }
  if (linearity != Linearity::kEach) return false;
  // One operand may stay a partial sum; a product of two would lose the mixed terms.
  const auto keep = std::find_if(linear.begin(), linear.end(),
                                 [&](int i) { return c.input(i).kind == Sharding::kPartialSum; });
  if (keep == linear.end()) return false;
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (i != *keep) c.Require(i, Sharding::Replicated());
  }
  c.set_output(0, Sharding::PartialSum());
  return true;
}

// The first split operand, -1 if there is none.
int SplitOperand(const ShardingContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (c.input(i).kind == Sharding::kSplit) return i;
  }
  return -1;
}

// What operand i must be when the output is split along `out_dim`.
StatusOr<Sharding> AlignedOperand(const ShardingContext& c, int i, int out_dim) {
  const PartialShape& shape = c.input_shape(i);
  if (!shape.has_rank()) {
    return InvalidArgument("input ", i, " has an unknown shape, so that it cannot be split");
  }
  const int dim = out_dim - (c.output_shape(0).rank() - shape.rank());
  if (dim < 0) return Sharding::Replicated();
  const Sharding aligned = Sharding::Split(dim);
  if (c.input(i) == aligned) return aligned;
  MR_ASSIGN_OR_RETURN(const int64_t extent, SplitExtent(c, i, dim));
  return extent == 1 ? Sharding::Replicated() : aligned;
}

}  // namespace

ShardingFn ElementwiseSharding(Linearity linearity, std::vector<int> linear) {
  return [linearity, linear = std::move(linear)](ShardingContext& c) -> Status {
    const int split = SplitOperand(c);
    if (split < 0) {
      if (KeepPartialSum(c, linearity, linear)) return absl::OkStatus();
      RequireReplicated(c);
      c.set_output(0, Sharding::Replicated());
      return absl::OkStatus();
    }
    if (!c.output_shape(0).has_rank() || !c.input_shape(split).has_rank()) {
      return InvalidArgument("a tensor of unknown rank cannot be split");
    }
    const int out_dim = c.input(split).dim + c.output_shape(0).rank() - c.input_shape(split).rank();
    for (int i = 0; i < c.num_inputs(); ++i) {
      if (i == split) continue;
      MR_ASSIGN_OR_RETURN(const Sharding operand, AlignedOperand(c, i, out_dim));
      c.Require(i, operand);
    }
    c.set_output(0, Sharding::Split(out_dim));
    return absl::OkStatus();
  };
}

Status SameSharding(ShardingContext& c) {
  c.set_output(0, c.input(0));
  return absl::OkStatus();
}

void RequireReplicated(ShardingContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) c.Require(i, Sharding::Replicated());
}

bool AnyOf(const ShardingContext& c, Sharding::Kind kind) {
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (c.input(i).kind == kind) return true;
  }
  return false;
}

StatusOr<int64_t> SplitExtent(const ShardingContext& c, int i, int dim) {
  const PartialShape& shape = c.input_shape(i);
  if (shape.has_rank() && dim < shape.rank() && shape.dim_known(dim)) return shape.dim(dim);
  return InvalidArgument("the shape ", shape.ToString(), " of input ", i,
                         " is unresolved along the split dimension ", dim);
}

void LocalizeUnlessRest(ShardingContext& c, int i, int element) {
  const auto values = IntElements(c.host_value(i));
  if (values && element < static_cast<int>(values->size()) && (*values)[element] < 0) return;
  c.LocalizeHostElement(i, element);
}

}  // namespace millrace
