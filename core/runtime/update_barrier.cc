#include "core/runtime/update_barrier.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace millrace {

bool TakesUpdateValue(const Graph& graph, const Node& node) {
  if (!node.op().Has(Trait::kOptimizerUpdate) && !node.op().Has(Trait::kWritesVariable)) {
    return false;
  }
  return std::any_of(node.inputs().begin(), node.inputs().end(),
                     [&](const Port& input) { return graph.dtype(input) != DType::kResource; });
}

std::vector<UpdateSet> FindUpdateSets(const Graph& graph, absl::Span<const NodeId> order) {
  std::vector<int> level(graph.num_ids(), 0);  // by id: updates before the node
  std::vector<bool> is_update(graph.num_ids());
  std::map<std::pair<std::string, int>, UpdateSet> sets;
  for (NodeId id : order) {
    const Node& node = *graph.node(id);
    const auto follow = [&](NodeId before) {
      level[id] = std::max(level[id], level[before] + (is_update[before] ? 1 : 0));
    };
    for (const Port& input : node.inputs()) follow(input.node);
    for (NodeId before : node.control_inputs()) follow(before);
    if (!TakesUpdateValue(graph, node)) continue;
    is_update[id] = true;
    UpdateSet& set = sets[{node.assigned_device().ToString(), level[id]}];
    set.updates.push_back(id);
    for (const Port& input : node.inputs()) {
      if (graph.dtype(input) != DType::kResource) set.producers.push_back(input.node);
    }
  }
  std::vector<UpdateSet> result;
  for (auto& [key, set] : sets) {
    if (set.updates.size() < 2) continue;
    std::sort(set.producers.begin(), set.producers.end());
    set.producers.erase(std::unique(set.producers.begin(), set.producers.end()),
                        set.producers.end());
    result.push_back(std::move(set));
  }
  return result;
}

}  // namespace millrace
