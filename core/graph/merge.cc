#include "core/graph/merge.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/graph/algorithms.h"

namespace millrace {
namespace {

// Names, as ids differ between graphs.
std::vector<std::string> InputNames(const Graph& graph, const Node& node) {
  std::vector<std::string> names;
  for (const Port& input : node.inputs()) names.push_back(graph.PortName(input));
  const auto data = static_cast<std::ptrdiff_t>(names.size());
  for (const NodeId before : node.control_inputs()) {
    names.push_back(StrCat("^", graph.node(before)->name()));
  }
  std::sort(names.begin() + data, names.end());
  return names;
}

bool IsSame(const Graph& a, const Node& in_a, const Graph& b, const Node& in_b) {
  return &in_a.op() == &in_b.op() && in_a.attrs() == in_b.attrs() &&
         in_a.requested_device() == in_b.requested_device() &&
         InputNames(a, in_a) == InputNames(b, in_b);
}

}  // namespace

StatusOr<std::vector<NodeId>> MergeGraph(const Graph& more, Graph& base) {
  if (more.shared_ops() != base.shared_ops()) {
    return InvalidArgument("the graph is over other ops than the session's");
  }
  MR_ASSIGN_OR_RETURN(const std::vector<NodeId> order, TopologicalOrder(more));
  std::vector<NodeId> here(more.num_ids(), -1);
  std::vector<NodeId> added;
  for (const NodeId id : order) {
    const Node& node = *more.node(id);
    const Node* known = base.Find(node.name());
    if (known == nullptr) {
      added.push_back(id);
    } else if (IsSame(base, *known, more, node)) {
      here[id] = known->id();
    } else {
      return InvalidArgument("node '", node.name(), "' (", node.op().name(),
                             ") is in the session already and differs from it (",
                             known->op().name(), "); a session's graph only grows");
    }
  }
  for (const NodeId id : added) {
    const Node& node = *more.node(id);
    std::vector<Port> inputs;
    for (const Port& input : node.inputs()) inputs.push_back({here[input.node], input.index});
    std::vector<NodeId> control_inputs;
    for (const NodeId before : node.control_inputs()) control_inputs.push_back(here[before]);
    here[id] = base.AddCopy(node, node.name(), std::move(inputs), std::move(control_inputs));
  }
  return added;
}

}  // namespace millrace
