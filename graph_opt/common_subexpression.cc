#include <algorithm>
#include <string>
#include <vector>

#include "graph_opt/pass.h"

namespace millrace {
namespace {

constexpr size_t kMaxConstantBytes = 4096;

bool CanMerge(const Node& node) {
  for (Trait trait : {Trait::kStateful, Trait::kPlaceholder, Trait::kVariable,
                      Trait::kReadsVariable, Trait::kWritesVariable, Trait::kSend, Trait::kRecv}) {
    if (node.op().Has(trait)) return false;
  }
  // Keys hold constants whole: large ones would cost more than they save.
  const AttrValue* value = node.attrs().Find("value");
  const Tensor* tensor = value == nullptr ? nullptr : value->get<Tensor>();
  return node.num_outputs() > 0 && (tensor == nullptr || tensor->byte_size() <= kMaxConstantBytes);
}

// Equal for nodes that compute the same on the same device.
std::string KeyOf(const Node& node) {
  std::string key = StrCat(node.op().name(), "|", node.requested_device(), "|");
  std::vector<Port> inputs = node.inputs();
  if (node.op().Has(Trait::kCommutative) && inputs.size() >= 2 && inputs[1] < inputs[0]) {
    std::swap(inputs[0], inputs[1]);
  }
  for (Port input : inputs) absl::StrAppend(&key, input.node, ":", input.index, ",");
  std::vector<NodeId> controls = node.control_inputs();
  std::sort(controls.begin(), controls.end());
  for (NodeId before : controls) absl::StrAppend(&key, "^", before, ",");
  for (const auto& [name, value] : node.attrs()) {
    if (name == kRequestReasonAttr) continue;
    absl::StrAppend(&key, "|", name, "=");
    if (const Tensor* tensor = value.get<Tensor>()) {
      // All of it: the text of a large tensor is shortened.
      absl::StrAppend(&key, Name(tensor->dtype()), tensor->shape().ToString(), ":",
                      absl::string_view(static_cast<const char*>(tensor->raw_data()),
                                        tensor->byte_size()));
    } else {
      absl::StrAppend(&key, value.ToString());
    }
  }
  return key;
}

class CommonSubexpressionPass final : public Pass {
 public:
  std::string name() const override { return "common_subexpression"; }

  StatusOr<bool> Run(PrunedGraph& pruned) const override {
    Graph& graph = pruned.graph;
    MR_ASSIGN_OR_RETURN(std::vector<NodeId> order, TopologicalOrder(graph));
    absl::flat_hash_map<std::string, NodeId> first;
    std::vector<NodeId> merged(graph.num_ids(), -1);
    std::vector<bool> fed(graph.num_ids(), false);
    for (Port feed : pruned.feeds) fed[feed.node] = true;
    bool changed = false;
    for (NodeId id : order) {
      // Inputs come first in the order, so that equal chains merge in one sweep.
      for (size_t i = 0; i < graph.node(id)->inputs().size(); ++i) {
        const Port input = graph.node(id)->inputs()[i];
        if (merged[input.node] < 0) continue;
        MR_RETURN_IF_ERROR(
            graph.ReplaceInput(id, static_cast<int>(i), Port{merged[input.node], input.index}));
      }
      const std::vector<NodeId> controls = graph.node(id)->control_inputs();
      for (NodeId before : controls) {
        if (merged[before] < 0) continue;
        graph.RemoveControlInput(id, before);
        graph.AddControlInput(id, merged[before]);
      }
      if (fed[id] || !CanMerge(*graph.node(id))) continue;
      auto [it, inserted] = first.emplace(KeyOf(*graph.node(id)), id);
      if (inserted) continue;
      merged[id] = it->second;
      changed = true;
    }
    for (Port& fetch : pruned.fetches) {
      if (merged[fetch.node] >= 0) fetch.node = merged[fetch.node];
    }
    for (NodeId& target : pruned.targets) {
      if (merged[target] >= 0) target = merged[target];
    }
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      if (merged[*it] >= 0) graph.RemoveNode(*it);
    }
    return changed;
  }
};

}  // namespace

std::unique_ptr<Pass> NewCommonSubexpressionPass() {
  return std::make_unique<CommonSubexpressionPass>();
}

}  // namespace millrace
