#ifndef CORE_RUNTIME_PLACEMENT_GROUPS_H_
#define CORE_RUNTIME_PLACEMENT_GROUPS_H_

#include <string>
#include <vector>

#include "core/graph/graph.h"

// The placer's first half: which nodes must share a device, and what they request together.
namespace millrace {

struct PlacementGroup {
  std::vector<NodeId> nodes;  // in topological order
  DeviceName request;         // of all its nodes together; parts may be open
  NodeId requester = -1;      // the first of `nodes` that requests something; -1: none does
  // Soft placement only: what was requested but contradicts `request`, in words.
  std::string dropped;
};

struct PlacementGroups {
  std::vector<PlacementGroup> groups;  // in topological order of their first node
  std::vector<int> group_of_node;      // by node id, -1 for none
  // By node id: "colocated with variable 'w' through its handle". Empty for a node that follows no
  // other.
  std::vector<std::string> link_of_node;
};

// Joins the nodes of each "_class" group, the users of a handle with its variable, and the handles
// of one variable. InvalidArgument, naming both nodes, if requests within a group contradict (with
// `soft`, the first one wins); InvalidArgument for a request that is no device name.
StatusOr<PlacementGroups> FindPlacementGroups(const Graph& graph, absl::Span<const NodeId> order,
                                              bool soft);

// What one node requests: its requested device, or the device that it already has.
StatusOr<DeviceName> RequestOf(const Node& node);

}  // namespace millrace

#endif  // CORE_RUNTIME_PLACEMENT_GROUPS_H_
