#include <vector>

#include "graph_opt/pass.h"

namespace millrace {
namespace {

class PrunePass final : public Pass {
 public:
  std::string name() const override { return "prune"; }

  StatusOr<bool> Run(PrunedGraph& pruned) const override {
    std::vector<NodeId> roots = pruned.targets;
    for (Port fetch : pruned.fetches) roots.push_back(fetch.node);
    // Feeds stay, whether they are still read or not: the step's signature names them.
    for (Port feed : pruned.feeds) roots.push_back(feed.node);
    const std::vector<bool> needed = ReachableBackwards(pruned.graph, roots);
    bool changed = false;
    for (NodeId id = 0; id < pruned.graph.num_ids(); ++id) {
      if (!pruned.graph.IsLive(id) || needed[id]) continue;
      pruned.graph.RemoveNode(id);
      changed = true;
    }
    return changed;
  }
};

}  // namespace

std::unique_ptr<Pass> NewPrunePass() { return std::make_unique<PrunePass>(); }

}  // namespace millrace
