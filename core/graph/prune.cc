#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "core/graph/algorithms.h"

namespace millrace {
namespace {

// More placeholders than these are counted only.
constexpr int kMostNamed = 5;

// Each piece with its length before it, so that no two lists give one text.
void AppendKey(const std::vector<std::string>& names, std::string* key) {
  absl::StrAppend(key, names.size(), ";");
  for (const std::string& name : names) absl::StrAppend(key, name.size(), ":", name);
}

class Pruner {
 public:
  explicit Pruner(const Graph& graph)
      : graph_(graph),
        needed_(graph.num_ids(), false),
        fed_outputs_(graph.num_ids(), 0),
        new_id_(graph.num_ids(), -1),
        result_{Graph(graph.shared_ops()), {}, {}, {}} {}

  StatusOr<PrunedGraph> Run(const StepSignature& signature) {
    MR_RETURN_IF_ERROR(ResolveFeeds(signature.feeds));
    MR_RETURN_IF_ERROR(ResolveFetches(signature.fetches));
    MR_RETURN_IF_ERROR(ResolveTargets(signature.targets));
    FindNeeded();
    MR_RETURN_IF_ERROR(CheckPlaceholders());
    MR_ASSIGN_OR_RETURN(const std::vector<NodeId> order, TopologicalOrder(graph_));
    for (const NodeId id : order) {
      if (fed_outputs_[id] > 0) MR_RETURN_IF_ERROR(AddPlaceholders(*graph_.node(id)));
      if (needed_[id]) {
        AddNeeded(*graph_.node(id));
      } else {
        PassOnOrder(*graph_.node(id));
      }
    }
    for (const Port& port : feeds_) result_.feeds.push_back(NewPort(port));
    for (const Port& port : fetches_) result_.fetches.push_back(NewPort(port));
    for (const NodeId id : targets_) result_.targets.push_back(new_id_[id]);
    result_.graph.set_library(graph_.library());
    return std::move(result_);
  }

 private:
  Status ResolveFeeds(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      const StatusOr<Port> port = graph_.FindPort(name);
      if (!port.ok()) return Annotate(port.status(), "cannot feed");
      if (graph_.dtype(*port) == DType::kResource) {
        return InvalidArgument("cannot feed '", name, "': it is the handle of a resource");
      }
      if (!fed_.try_emplace(*port, Port()).second) {
        return InvalidArgument("'", graph_.PortName(*port), "' is fed twice");
      }
      feeds_.push_back(*port);
      ++fed_outputs_[port->node];
    }
    return absl::OkStatus();
  }

  Status ResolveFetches(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      const Node* node = graph_.Find(name);
      if (node != nullptr && node->num_outputs() == 0) {
        return InvalidArgument("cannot fetch ", node->op().name(), " '", name,
                               "': it has no outputs; use it as a target");
      }
      const StatusOr<Port> port = graph_.FindPort(name);
      if (!port.ok()) return Annotate(port.status(), "cannot fetch");
      fetches_.push_back(*port);
    }
    return absl::OkStatus();
  }

  Status ResolveTargets(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      const Node* node = graph_.Find(name);
      if (node == nullptr) {
        const StatusOr<Port> port = graph_.FindPort(name);
        if (!port.ok()) return Annotate(port.status(), "cannot run");
        return NotFound("cannot run '", name, "': it names an output; the operation is '",
                        graph_.node(port->node)->name(), "'");
      }
      targets_.push_back(node->id());
    }
    return absl::OkStatus();
  }

  // Whether feeds stand for all of the node, so that it does not run.
  bool IsReplaced(NodeId id) const {
    return fed_outputs_[id] > 0 && fed_outputs_[id] == graph_.node(id)->num_outputs();
  }

  void Need(NodeId id) {
    if (needed_[id] || IsReplaced(id)) return;
    needed_[id] = true;
    open_.push_back(id);
  }

  void FindNeeded() {
    for (const Port& port : fetches_) {
      if (!fed_.contains(port)) Need(port.node);
    }
    for (const NodeId id : targets_) Need(id);
    while (!open_.empty()) {
      const Node& node = *graph_.node(open_.back());
      open_.pop_back();
      for (const Port& port : node.inputs()) {
        if (!fed_.contains(port)) Need(port.node);
      }
      const absl::flat_hash_set<absl::string_view> order_only = OrderOnly(node);
      for (const NodeId before : node.control_inputs()) {
        if (!order_only.contains(graph_.node(before)->name())) Need(before);
      }
    }
  }

  static absl::flat_hash_set<absl::string_view> OrderOnly(const Node& node) {
    const AttrValue* value = node.attrs().Find(kOrderOnlyAttr);
    const auto* names = value == nullptr ? nullptr : value->get<std::vector<std::string>>();
    if (names == nullptr) return {};
    return {names->begin(), names->end()};
  }

  Status CheckPlaceholders() const {
    int missing = 0;
    std::string names;
    for (NodeId id = 0; id < graph_.num_ids(); ++id) {
      if (!needed_[id] || !graph_.node(id)->op().Has(Trait::kPlaceholder)) continue;
      const Node& node = *graph_.node(id);
      if (++missing > kMostNamed) continue;
      absl::StrAppend(&names, missing == 1 ? "" : ", ", "'", node.name(), "'");
      if (node.num_outputs() > 0) {
        absl::StrAppend(&names, " (", Name(node.output_dtype(0)), " ",
                        node.output_shape(0).ToString(), ")");
      }
    }
    if (missing == 0) return absl::OkStatus();
    if (missing > kMostNamed) absl::StrAppend(&names, " and ", missing - kMostNamed, " more");
    return InvalidArgument(missing == 1 ? "placeholder " : "placeholders ", names,
                           " must be fed: what is fetched or run depends on ",
                           missing == 1 ? "it" : "them");
  }

  // One for each fed output. The one that stands for all of the node takes its name.
  Status AddPlaceholders(const Node& node) {
    for (int i = 0; i < node.num_outputs(); ++i) {
      const auto fed = fed_.find(Port{node.id(), i});
      if (fed == fed_.end()) continue;
      const bool takes_name = IsReplaced(node.id()) && new_id_[node.id()] < 0;
      std::string name = takes_name ? node.name() : FreeName(StrCat(node.name(), "/feed_", i));
      NodeId id = -1;
      if (takes_name && node.op().Has(Trait::kPlaceholder)) {
        id = result_.graph.AddCopy(node, std::move(name), {}, {});
      } else {
        MR_ASSIGN_OR_RETURN(id, AddPlaceholder(node, i, std::move(name)));
      }
      fed->second = Port{id, 0};
      if (takes_name) new_id_[node.id()] = id;
    }
    return absl::OkStatus();
  }

  StatusOr<NodeId> AddPlaceholder(const Node& node, int output, std::string name) {
    NodeSpec spec;
    spec.name = std::move(name);
    spec.op = "Placeholder";
    spec.attrs.Set("dtype", node.output_dtype(output));
    spec.attrs.Set("shape", node.output_shape(output));
    if (const AttrValue* colocation = node.attrs().Find(kColocationAttr)) {
      spec.attrs.Set(kColocationAttr, *colocation);
    }
    spec.device = node.requested_device();
    spec.location = node.location();
    const StatusOr<NodeId> id = result_.graph.AddNode(std::move(spec));
    if (!id.ok()) {
      return Annotate(id.status(), StrCat("feeding '", graph_.PortName({node.id(), output}), "'"));
    }
    return id;
  }

  std::string FreeName(std::string name) {
    while (graph_.Find(name) != nullptr || result_.graph.Find(name) != nullptr) name += "_";
    return name;
  }

  // REQUIRES: what `port` stands for has been added.
  Port NewPort(Port port) const {
    const auto fed = fed_.find(port);
    return fed != fed_.end() ? fed->second : Port{new_id_[port.node], port.index};
  }

  void AddNeeded(const Node& node) {
    std::vector<Port> inputs;
    inputs.reserve(node.inputs().size());
    for (const Port& port : node.inputs()) inputs.push_back(NewPort(port));
    std::vector<NodeId> control_inputs;
    for (const NodeId before : node.control_inputs()) AppendOrder(before, &control_inputs);
    new_id_[node.id()] =
        result_.graph.AddCopy(node, node.name(), std::move(inputs), std::move(control_inputs));
  }

  // What only orders may not be there; then what it would have come after does.
  void AppendOrder(NodeId before, std::vector<NodeId>* control_inputs) const {
    if (new_id_[before] >= 0) {
      control_inputs->push_back(new_id_[before]);
      return;
    }
    const auto passed = passed_on_.find(before);
    if (passed == passed_on_.end()) return;
    control_inputs->insert(control_inputs->end(), passed->second.begin(), passed->second.end());
  }

  // For a node that is left out.
  void PassOnOrder(const Node& node) {
    const absl::flat_hash_set<absl::string_view> order_only = OrderOnly(node);
    if (order_only.empty()) return;
    std::vector<NodeId> passed;
    for (const NodeId before : node.control_inputs()) {
      if (order_only.contains(graph_.node(before)->name())) AppendOrder(before, &passed);
    }
    std::sort(passed.begin(), passed.end());
    passed.erase(std::unique(passed.begin(), passed.end()), passed.end());
    if (!passed.empty()) passed_on_.emplace(node.id(), std::move(passed));
  }

  const Graph& graph_;
  std::vector<Port> feeds_;
  std::vector<Port> fetches_;
  std::vector<NodeId> targets_;
  absl::flat_hash_map<Port, Port> fed_;  // to the placeholder, once there
  std::vector<bool> needed_;             // runs in the step, by id
  std::vector<int> fed_outputs_;         // how many, by id
  std::vector<NodeId> open_;
  std::vector<NodeId> new_id_;  // of the node or of what took its place; -1 if none
  // What a node that is left out would have come after, for those that would have come after it.
  absl::flat_hash_map<NodeId, std::vector<NodeId>> passed_on_;
  PrunedGraph result_;
};

}  // namespace

std::string StepSignature::Key() const {
  std::string key;
  AppendKey(feeds, &key);
  AppendKey(fetches, &key);
  AppendKey(targets, &key);
  return key;
}

StatusOr<PrunedGraph> Prune(const Graph& graph, const StepSignature& signature) {
  return Pruner(graph).Run(signature);
}

}  // namespace millrace
