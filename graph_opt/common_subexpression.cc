#include <algorithm>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/strip.h"
#include "graph_opt/pass.h"

namespace millrace {
namespace {

constexpr size_t kMaxConstantBytes = 4096;
constexpr char kColocationPrefix[] = "loc:@";

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

// Equal for nodes that compute the same on the same device, and for hardly any others.
std::string KeyOf(const Node& node) {
  std::string key = StrCat(node.op().name(), "|", node.requested_device(), "|");
  std::vector<Port> inputs = node.inputs();
  if (node.op().Has(Trait::kCommutative) && inputs.size() >= 2 && inputs[1] < inputs[0]) {
    std::swap(inputs[0], inputs[1]);
  }
  for (Port input : inputs) absl::StrAppend(&key, input.node, ":", input.index, ",");
  for (NodeId before : node.control_inputs()) absl::StrAppend(&key, "^", before, ",");
  for (const auto& [name, value] : node.attrs()) {
    if (name == kRequestReasonAttr) continue;
    absl::StrAppend(&key, "|", name, "=");
    if (const Tensor* tensor = value.get<Tensor>()) {
      // All of it: the text of a large tensor is shortened.
      absl::StrAppend(
          &key, Name(tensor->dtype()), tensor->shape().ToString(), ":",
          absl::string_view(static_cast<const char*>(tensor->raw_data()), tensor->byte_size()));
    } else {
      absl::StrAppend(&key, value.ToString());
    }
  }
  return key;
}

// Of nodes with one key: texts of attributes may leave out what is long.
bool SameAttrs(const Node& a, const Node& b) {
  AttrMap of_a = a.attrs();
  AttrMap of_b = b.attrs();
  of_a.Erase(kRequestReasonAttr);
  of_b.Erase(kRequestReasonAttr);
  return of_a == of_b;
}

// Nodes that others want to be placed with: without them, those would go elsewhere.
absl::flat_hash_set<std::string> ColocationTargets(const Graph& graph) {
  absl::flat_hash_set<std::string> targets;
  for (NodeId id = 0; id < graph.num_ids(); ++id) {
    if (!graph.IsLive(id)) continue;
    const AttrValue* classes = graph.node(id)->attrs().Find(kColocationAttr);
    const auto* list = classes == nullptr ? nullptr : classes->get<std::vector<std::string>>();
    if (list == nullptr) continue;
    for (absl::string_view entry : *list) {
      if (absl::ConsumePrefix(&entry, kColocationPrefix)) targets.insert(std::string(entry));
    }
  }
  return targets;
}

// One run of the pass.
class Merger {
 public:
  explicit Merger(PrunedGraph& pruned)
      : pruned_(pruned),
        graph_(pruned.graph),
        merged_(graph_.num_ids(), -1),
        kept_(ColocationTargets(graph_)) {}

  StatusOr<bool> Run() {
    MR_ASSIGN_OR_RETURN(const std::vector<NodeId> order, TopologicalOrder(graph_));
    bool changed = false;
    for (NodeId id : order) {
      // Inputs come first in the order, so that equal chains merge in one sweep.
      MR_RETURN_IF_ERROR(ReadMerged(id));
      const Node& node = *graph_.node(id);
      if (!CanMerge(node)) continue;
      merged_[id] = FirstLike(node);
      changed = changed || merged_[id] >= 0;
    }
    for (Port& fetch : pruned_.fetches) {
      if (merged_[fetch.node] >= 0) fetch.node = merged_[fetch.node];
    }
    for (NodeId& target : pruned_.targets) {
      if (merged_[target] >= 0) target = merged_[target];
    }
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      if (merged_[*it] >= 0) graph_.RemoveNode(*it);
    }
    return changed;
  }

 private:
  Status ReadMerged(NodeId id) {
    for (size_t i = 0; i < graph_.node(id)->inputs().size(); ++i) {
      const Port input = graph_.node(id)->inputs()[i];
      if (merged_[input.node] < 0) continue;
      MR_RETURN_IF_ERROR(
          graph_.ReplaceInput(id, static_cast<int>(i), Port{merged_[input.node], input.index}));
    }
    const std::vector<NodeId> controls = graph_.node(id)->control_inputs();
    for (NodeId before : controls) {
      if (merged_[before] < 0) continue;
      graph_.RemoveControlInput(id, before);
      graph_.AddControlInput(id, merged_[before]);
    }
    return absl::OkStatus();
  }

  // The first node that computes the same; -1 if `node` is that, or must stay.
  NodeId FirstLike(const Node& node) {
    std::vector<NodeId>& alike = first_[KeyOf(node)];
    for (NodeId other : alike) {
      if (!SameAttrs(*graph_.node(other), node)) continue;
      return kept_.contains(node.name()) ? -1 : other;
    }
    alike.push_back(node.id());
    return -1;
  }

  PrunedGraph& pruned_;
  Graph& graph_;
  std::vector<NodeId> merged_;  // by id, the node that took its place; -1 for none
  const absl::flat_hash_set<std::string> kept_;
  absl::flat_hash_map<std::string, std::vector<NodeId>> first_;  // by key
};

class CommonSubexpressionPass final : public Pass {
 public:
  std::string name() const override { return "common_subexpression"; }
  StatusOr<bool> Run(PrunedGraph& pruned) const override { return Merger(pruned).Run(); }
};

}  // namespace

std::unique_ptr<Pass> NewCommonSubexpressionPass() {
  return std::make_unique<CommonSubexpressionPass>();
}

}  // namespace millrace
