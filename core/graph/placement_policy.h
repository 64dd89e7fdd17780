#ifndef CORE_GRAPH_PLACEMENT_POLICY_H_
#define CORE_GRAPH_PLACEMENT_POLICY_H_

#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace millrace {

// What constraints leave free: groups of nodes that must share a device, each with the devices that
// can hold it.
struct PlacementProblem {
  struct Group {
    std::vector<NodeId> nodes;
    std::vector<int> candidates;  // indices into devices, ascending, at least one
  };
  const Graph* graph = nullptr;
  std::vector<DeviceInfo> devices;
  std::vector<Group> groups;       // in topological order of their first node
  std::vector<int> group_of_node;  // by node id, -1 for none
};

// A choice, and the comparison that made it: the report shows both.
struct PlacementChoice {
  int device = -1;                        // index into devices
  std::string reason;                     // "fewest bytes of variables so far: 12 KB"
  std::vector<std::string> alternatives;  // "/job:ps/task:1: 48 KB of variables"
};

// Chooses among what is free. Deterministic: equal problems give equal choices.
class PlacementPolicy {
 public:
  virtual ~PlacementPolicy() = default;
  virtual std::string name() const = 0;
  // One choice a group, from its candidates.
  virtual StatusOr<std::vector<PlacementChoice>> Choose(const PlacementProblem& problem) const = 0;
};

}  // namespace millrace

#endif  // CORE_GRAPH_PLACEMENT_POLICY_H_
