#ifndef CORE_RUNTIME_UPDATE_BARRIER_H_
#define CORE_RUNTIME_UPDATE_BARRIER_H_

#include <vector>

#include "core/graph/graph.h"

namespace millrace {

// Updates of variables that must start together: on one device, at one level.
struct UpdateSet {
  std::vector<NodeId> updates;    // in topological order
  std::vector<NodeId> producers;  // of their values, each once; handles are left out
};

// Whether the op changes a variable with a value that it is given.
bool TakesUpdateValue(const Graph& graph, const Node& node);

// Finds, in a whole placed graph, the updates that a barrier on each device must hold back until
// the inputs of all of them are there. A level is the number of updates on the longest way to a
// node, over all devices: the producers of level k depend on no update of level k or above, so a
// barrier from them to the updates of level k closes no cycle, not even through other devices.
// Sets of one update are left out: it waits for its own inputs anyway.
std::vector<UpdateSet> FindUpdateSets(const Graph& graph, absl::Span<const NodeId> order);

}  // namespace millrace

#endif  // CORE_RUNTIME_UPDATE_BARRIER_H_
