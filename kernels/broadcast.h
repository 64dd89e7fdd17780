#ifndef KERNELS_BROADCAST_H_
#define KERNELS_BROADCAST_H_

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/framework/kernel.h"

namespace millrace {

// How N operands are broadcast to one output: dimensions that all operands walk alike are one
// dimension here, extents of 1 are none. Strides are in elements, 0 where an operand repeats.
// The innermost stride of each operand is 0 or 1.
template <int N>
struct BroadcastPlan final : public PreparedShapes {
  int rank = 0;
  int64_t num_elements = 0;
  std::array<int64_t, kMaxRank> dims;
  std::array<std::array<int64_t, N>, kMaxRank> strides;
};

// InvalidArgument if an operand does not broadcast to `output`.
template <int N>
StatusOr<std::unique_ptr<BroadcastPlan<N>>> MakeBroadcastPlan(
    const std::array<const Shape*, N>& operands, const Shape& output) {
  auto plan = std::make_unique<BroadcastPlan<N>>();
  plan->num_elements = output.num_elements();
  std::array<int64_t, N> step;
  step.fill(1);  // the operand's stride at the dimension looked at
  // From the innermost dimension on; reversed at the end.
  for (int i = output.rank() - 1; i >= 0; --i) {
    const int64_t extent = output[i];
    std::array<int64_t, N> strides;
    for (int k = 0; k < N; ++k) {
      const int j = i - (output.rank() - operands[k]->rank());
      const int64_t own = j >= 0 ? (*operands[k])[j] : 1;
      if (own != extent && own != 1) {
        return InvalidArgument("shape ", operands[k]->ToString(), " does not broadcast to ",
                               output.ToString());
      }
      strides[k] = own == 1 ? 0 : step[k];
      step[k] *= own;
    }
    if (extent == 1) continue;
    if (plan->rank > 0) {
      const int last = plan->rank - 1;
      bool merges = true;
      for (int k = 0; k < N; ++k) {
        merges &= strides[k] == plan->strides[last][k] * plan->dims[last];
      }
      if (merges) {
        plan->dims[last] *= extent;
        continue;
      }
    }
    plan->dims[plan->rank] = extent;
    plan->strides[plan->rank] = strides;
    ++plan->rank;
  }
  for (int k = 0; k < N; ++k) {
    if (operands[k]->rank() > output.rank()) {
      return InvalidArgument("shape ", operands[k]->ToString(), " does not broadcast to ",
                             output.ToString());
    }
  }
  if (plan->rank == 0) {  // one element
    plan->rank = 1;
    plan->dims[0] = 1;
    plan->strides[0].fill(0);
  }
  std::reverse(plan->dims.begin(), plan->dims.begin() + plan->rank);
  std::reverse(plan->strides.begin(), plan->strides.begin() + plan->rank);
  return plan;
}

// Calls row(output offset, operand offsets, n) for the runs of the innermost dimension that make up
// the elements [begin, end) of the output.
template <int N, typename Row>
void ForEachRow(const BroadcastPlan<N>& plan, int64_t begin, int64_t end, Row row) {
  const int inner = plan.rank - 1;
  const int64_t extent = plan.dims[inner];
  std::array<int64_t, kMaxRank> index;
  std::array<int64_t, N> offsets{};  // at the start of the row
  int64_t rest = begin / extent;
  int64_t column = begin - rest * extent;
  for (int i = inner - 1; i >= 0; --i) {
    index[i] = rest % plan.dims[i];
    rest /= plan.dims[i];
    for (int k = 0; k < N; ++k) offsets[k] += index[i] * plan.strides[i][k];
  }
  for (int64_t position = begin; position < end;) {
    const int64_t n = std::min(extent - column, end - position);
    std::array<int64_t, N> at = offsets;
    for (int k = 0; k < N; ++k) at[k] += column * plan.strides[inner][k];
    row(position, at, n);
    position += n;
    column = 0;
    for (int i = inner - 1; i >= 0; --i) {
      for (int k = 0; k < N; ++k) offsets[k] += plan.strides[i][k];
      if (++index[i] < plan.dims[i]) break;
      index[i] = 0;
      for (int k = 0; k < N; ++k) offsets[k] -= plan.dims[i] * plan.strides[i][k];
    }
  }
}

}  // namespace millrace

#endif  // KERNELS_BROADCAST_H_
