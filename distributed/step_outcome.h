#ifndef DISTRIBUTED_STEP_OUTCOME_H_
#define DISTRIBUTED_STEP_OUTCOME_H_

#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "core/framework/step_stats.pb.h"
#include "core/framework/tensor.pb.h"

namespace millrace {

// What became of a step, as its client hears it.
struct StepOutcome {
  Status status;
  uint64_t step = 0;
  std::vector<TensorProto> fetches;  // in the plan's order
  StepStats stats;                   // if traced; of all tasks

  int64_t fetched_bytes() const {
    int64_t bytes = 0;
    for (const TensorProto& fetch : fetches) bytes += static_cast<int64_t>(fetch.ByteSizeLong());
    return bytes;
  }
};

}  // namespace millrace

#endif  // DISTRIBUTED_STEP_OUTCOME_H_
