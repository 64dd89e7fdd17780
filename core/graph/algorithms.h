#ifndef CORE_GRAPH_ALGORITHMS_H_
#define CORE_GRAPH_ALGORITHMS_H_

#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace millrace {

// Live nodes, every node after all of its (data and control) inputs; ties by id, so equal graphs
// give equal orders. InvalidArgument, with the cycle, if there is one.
StatusOr<std::vector<NodeId>> TopologicalOrder(const Graph& graph);

// By id: the ids of nodes that read an output of it (once each, ascending), data and control.
struct FanOut {
  std::vector<std::vector<NodeId>> data;
  std::vector<std::vector<NodeId>> control;
};
FanOut ComputeFanOut(const Graph& graph);

// By id: whether the node is one of `from` or can be reached from them by going from nodes to their
// inputs, data and control: what runs when `from` run.
std::vector<bool> ReachableBackwards(const Graph& graph, absl::Span<const NodeId> from);

// What one step feeds, fetches and runs: names of ports ("x", "x:0") and of operations.
struct StepSignature {
  std::vector<std::string> feeds;
  std::vector<std::string> fetches;
  std::vector<std::string> targets;
  friend bool operator==(const StepSignature& a, const StepSignature& b) {
    return a.feeds == b.feeds && a.fetches == b.fetches && a.targets == b.targets;
  }
  // Text that is equal for equal signatures.
  std::string Key() const;
};

// A graph that holds what one step needs and nothing else. Feeds replace what they name: each fed
// port is a Placeholder of the same node name (made so if the node was another op).
struct PrunedGraph {
  Graph graph;
  std::vector<Port> feeds;  // in the signature's order
  std::vector<Port> fetches;
  std::vector<NodeId> targets;
};
// NotFound for names that do not exist; InvalidArgument for a port fed twice, for fetching an
// operation without outputs (the message says to use it as a target), and for a placeholder that
// is needed but not fed.
StatusOr<PrunedGraph> Prune(const Graph& graph, const StepSignature& signature);

// Refines shapes through the whole graph, given better shapes for some ports (feeds). Constants
// that follow (Shape of a known shape) are not folded here.
Status SpecializeShapes(Graph& graph, absl::Span<const std::pair<Port, PartialShape>> known);

}  // namespace millrace

#endif  // CORE_GRAPH_ALGORITHMS_H_
