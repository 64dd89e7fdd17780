#include "distributed/graph_extension.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "core/graph/algorithms.h"
#include "core/graph/graph_def.h"

namespace millrace {
namespace {

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
  return in_a.op().name() == in_b.op().name() && in_a.attrs() == in_b.attrs() &&
         in_a.requested_device() == in_b.requested_device() &&
         InputNames(a, in_a) == InputNames(b, in_b);
}

}  // namespace

Status ExtendGraph(const Graph& graph, Graph& base, GraphDef* def) {
  MR_ASSIGN_OR_RETURN(const std::vector<NodeId> order, TopologicalOrder(graph));
  absl::flat_hash_set<std::string> added;
  for (const NodeId id : order) {
    const Node& node = *graph.node(id);
    const Node* known = base.Find(node.name());
    if (known == nullptr) {
      added.insert(node.name());
    } else if (!IsSame(base, *known, graph, node)) {
      return InvalidArgument("node '", node.name(), "' (", node.op().name(),
                             ") is in the session already and differs from it (",
                             known->op().name(), "); a session's graph only grows");
    }
  }
  GraphDef whole;
  ExportGraphDef(graph, &whole);
  def->Clear();
  *def->mutable_versions() = whole.versions();
  *def->mutable_library() = std::move(*whole.mutable_library());
  for (NodeDef& node : *whole.mutable_node()) {
    if (added.contains(node.name())) *def->add_node() = std::move(node);
  }
  std::vector<NodeId> here(graph.num_ids(), -1);
  for (const NodeId id : order) {
    const Node& node = *graph.node(id);
    if (!added.contains(node.name())) {
      here[id] = base.Find(node.name())->id();
      continue;
    }
    std::vector<Port> inputs;
    for (const Port& input : node.inputs()) inputs.push_back({here[input.node], input.index});
    std::vector<NodeId> control_inputs;
    for (const NodeId before : node.control_inputs()) control_inputs.push_back(here[before]);
    here[id] = base.AddCopy(node, node.name(), std::move(inputs), std::move(control_inputs));
  }
  return absl::OkStatus();
}

}  // namespace millrace
