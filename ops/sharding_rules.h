#ifndef OPS_SHARDING_RULES_H_
#define OPS_SHARDING_RULES_H_

#include <vector>

#include "core/framework/op_def.h"

// Sharding rules (core/framework/sharding.h) that several families share. Where a rule cannot use
// what it is given, it requires the operand replicated: never wrong, at the price of a collective.
namespace millrace {

// How a function of several tensors behaves under sums of its operands.
enum class Linearity {
  kNone,      // partial sums must be summed first
  kTogether,  // f(sum a, sum b) = sum f(a, b): all operands partial sums at once
  kEach,      // linear in each of the operands named, the others fixed
};

// The output is split as an operand is; dimensions are aligned from the right, as in broadcasting;
// an operand that is broadcast along the split dimension stays whole. `linear`: the operands of
// which kEach speaks.
ShardingFn ElementwiseSharding(Linearity linearity, std::vector<int> linear = {});

// Output 0 like input 0, whatever it is: an op that only hands its input on.
Status SameSharding(ShardingContext& c);

// Requires every input replicated.
void RequireReplicated(ShardingContext& c);
// Whether some input is split, or a partial sum.
bool AnyOf(const ShardingContext& c, Sharding::Kind kind);

// The extent of input i along its split dimension `dim` as a known number; else an error that names
// the shape: sizes must be settled before a graph is split.
StatusOr<int64_t> SplitExtent(const ShardingContext& c, int i, int dim);

// Element `element` of host operand i is localised unless it is -1 ("what is left").
void LocalizeUnlessRest(ShardingContext& c, int i, int element);

}  // namespace millrace

#endif  // OPS_SHARDING_RULES_H_
