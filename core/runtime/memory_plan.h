#ifndef CORE_RUNTIME_MEMORY_PLAN_H_
#define CORE_RUNTIME_MEMORY_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace millrace {

// A value that one node makes and others read, for the planner of its memory. Nodes are numbered
// in a topological order.
struct PlannedValue {
  int64_t bytes = 0;
  int32_t producer = 0;
  std::vector<int32_t> readers;  // nodes that read it under any name, in any order
  // The values whose memory this one may take over as it is made, if nobody else needs theirs any
  // more: indices of values of the same size that its producer reads, the best first.
  std::vector<int32_t> in_place_of;
};

// Where each value lies in one piece of memory.
struct MemoryPlan {
  int64_t bytes = 0;                // of the whole
  std::vector<int64_t> offsets;     // by value, multiples of Allocator::kAlignment
  std::vector<int32_t> takes_over;  // by value: whose memory it takes over, or -1
};

// More nodes than this are not planned: the work grows with their square.
inline constexpr int32_t kMostPlannedNodes = 8192;

// Lets values share memory if in every legal order of the nodes, on any number of threads, one is
// read for the last time before the other is made. `predecessors[i]`: the nodes that node i waits
// for, all below i. Values are placed by falling size, each at the lowest gap that fits (greedy by
// size: Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020).
// REQUIRES: at most kMostPlannedNodes predecessors; values in the order of their producers.
MemoryPlan PlanMemory(absl::Span<const std::vector<int32_t>> predecessors,
                      absl::Span<const PlannedValue> values);

}  // namespace millrace

#endif  // CORE_RUNTIME_MEMORY_PLAN_H_
