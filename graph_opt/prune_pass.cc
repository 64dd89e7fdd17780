#include <vector>

#include "graph_opt/pass.h"

namespace millrace {
namespace {

// A stateful op runs once a step, even if an earlier pass has found another source for its result.
bool HasEffect(const Node& node) {
  const OpDef& op = node.op();
  return op.Has(Trait::kWritesVariable) ||
         (op.Has(Trait::kStateful) && !op.Has(Trait::kVariable) && !op.Has(Trait::kReadsVariable));
}

class PrunePass final : public Pass {
 public:
  std::string name() const override { return "prune"; }

  StatusOr<bool> Run(PrunedGraph& pruned) const override {
    Graph& graph = pruned.graph;
    std::vector<NodeId> roots = pruned.targets;
    for (Port fetch : pruned.fetches) roots.push_back(fetch.node);
    // Feeds stay, whether they are still read or not: the step's signature names them.
    for (Port feed : pruned.feeds) roots.push_back(feed.node);
    for (NodeId id = 0; id < graph.num_ids(); ++id) {
      if (graph.IsLive(id) && HasEffect(*graph.node(id))) roots.push_back(id);
    }
    const std::vector<bool> needed = ReachableBackwards(graph, roots);
    bool changed = false;
    for (NodeId id = 0; id < graph.num_ids(); ++id) {
      if (!graph.IsLive(id) || needed[id]) continue;
      graph.RemoveNode(id);
      changed = true;
    }
    return changed;
  }
};

}  // namespace

std::unique_ptr<Pass> NewPrunePass() { return std::make_unique<PrunePass>(); }

}  // namespace millrace
