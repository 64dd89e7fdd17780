#ifndef DISTRIBUTED_STEP_STATS_PROTO_H_
#define DISTRIBUTED_STEP_STATS_PROTO_H_

#include <vector>

#include "absl/types/span.h"
#include "core/framework/step_stats.pb.h"
#include "core/runtime/step_stats.h"

namespace millrace {

// Between the events of a traced step and their wire form, which public tools read: a node's op
// stands in its label, "conv1 = Conv2D()", and the channel of a Send or Recv in the brackets.
void EventsToProto(absl::Span<const KernelEvent> events, StepStats* stats);
std::vector<KernelEvent> EventsFromProto(const StepStats& stats);

}  // namespace millrace

#endif  // DISTRIBUTED_STEP_STATS_PROTO_H_
