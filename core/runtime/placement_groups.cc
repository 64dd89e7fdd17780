#include "core/runtime/placement_groups.h"

#include <map>
#include <numeric>
#include <utility>

#include "absl/strings/match.h"

namespace millrace {
namespace {

constexpr char kLocation[] = "loc:@";

// Sets of nodes, by union and find.
class NodeSets {
 public:
  explicit NodeSets(int size) : parent_(size) { std::iota(parent_.begin(), parent_.end(), 0); }
  int Find(int x) {
    while (parent_[x] != x) {
      parent_[x] = parent_[parent_[x]];
      x = parent_[x];
    }
    return x;
  }
  void Join(int a, int b) { parent_[Find(a)] = Find(b); }

 private:
  std::vector<int> parent_;
};

// The node that made the handle: through identities, whose first input it is.
const Node& HandleOrigin(const Graph& graph, Port port) {
  const Node* node = graph.node(port.node);
  while (!node->op().Has(Trait::kVariable)) {
    if (node->inputs().empty() || graph.dtype(node->inputs()[0]) != DType::kResource) break;
    node = graph.node(node->inputs()[0].node);
  }
  return *node;
}

std::string HandleLink(const Node& origin) {
  return StrCat("colocated with ", origin.op().Has(Trait::kVariable) ? "variable " : "", "'",
                origin.name(), "' through its handle");
}

// Joins nodes and remembers, for each node, the first reason to follow another.
class Colocation {
 public:
  Colocation(const Graph& graph, std::vector<std::string>& links)
      : graph_(graph), links_(links), sets_(graph.num_ids()) {}

  void Add(const Node& node) {
    for (const Port& input : node.inputs()) {
      if (graph_.dtype(input) != DType::kResource) continue;
      sets_.Join(node.id(), input.node);
      Link(node, HandleLink(HandleOrigin(graph_, input)));
    }
    if (node.op().Has(Trait::kVariable)) AddVariable(node);
    const AttrValue* classes = node.attrs().Find(kColocationAttr);
    if (classes == nullptr) return;
    const auto* list = classes->get<std::vector<std::string>>();
    if (list == nullptr) return;
    for (const std::string& entry : *list) AddClass(node, entry);
  }

  NodeSets& sets() { return sets_; }

 private:
  void Link(const Node& node, std::string link) {
    if (links_[node.id()].empty()) links_[node.id()] = std::move(link);
  }

  // Two handles of one variable: on different devices they would be different variables.
  void AddVariable(const Node& node) {
    std::string name = node.attrs().GetOr<std::string>("shared_name", "");
    if (name.empty()) name = node.name();
    const auto key = std::pair(node.attrs().GetOr<std::string>("container", ""), std::move(name));
    const auto [found, added] = variables_.try_emplace(key, node.id());
    if (added) return;
    sets_.Join(node.id(), found->second);
    Link(node, StrCat("the same variable as '", graph_.node(found->second)->name(), "'"));
  }

  // The name of a class need not be that of a node that is (still) there.
  void AddClass(const Node& node, absl::string_view entry) {
    if (!absl::StartsWith(entry, kLocation)) return;
    const std::string name(entry.substr(sizeof(kLocation) - 1));
    if (name == node.name()) {
      // Others may have come first.
      const auto [found, added] = classes_.try_emplace(name, node.id());
      if (!added) sets_.Join(node.id(), found->second);
      return;
    }
    const Node* target = graph_.Find(name);
    const auto [found, added] =
        classes_.try_emplace(name, target != nullptr ? target->id() : node.id());
    if (found->second == node.id()) return;
    sets_.Join(node.id(), found->second);
    Link(node,
         StrCat("colocated with '", graph_.node(found->second)->name(), "' (_class ", entry, ")"));
  }

  const Graph& graph_;
  std::vector<std::string>& links_;
  NodeSets sets_;
  std::map<std::pair<std::string, std::string>, NodeId> variables_;
  std::map<std::string, NodeId> classes_;
};

// Merges one node's request into its group's.
Status MergeRequest(const Graph& graph, const Node& node, bool soft, PlacementGroup& group) {
  MR_ASSIGN_OR_RETURN(const DeviceName request, RequestOf(node));
  if (request == DeviceName()) return absl::OkStatus();
  StatusOr<DeviceName> merged = group.request.Combine(request);
  if (merged.ok()) {
    group.request = *std::move(merged);
    if (group.requester < 0) group.requester = node.id();
    return absl::OkStatus();
  }
  if (soft) {
    absl::StrAppend(&group.dropped, group.dropped.empty() ? "" : "; ", "'", node.name(),
                    "' requested '", request.ToString(), "', which was dropped");
    return absl::OkStatus();
  }
  // The parts of a request may come from several nodes: name one that contradicts by itself.
  const Node* other = graph.node(group.requester);
  for (NodeId id : group.nodes) {
    StatusOr<DeviceName> earlier = RequestOf(*graph.node(id));
    if (earlier.ok() && !earlier->Combine(request).ok()) {
      other = graph.node(id);
      break;
    }
  }
  const StatusOr<DeviceName> others = RequestOf(*other);
  return InvalidArgument("nodes '", other->name(), "' and '", node.name(),
                         "' must share a device, but request '",
                         others.ok() ? others->ToString() : "", "' and '", request.ToString(), "'");
}

}  // namespace

StatusOr<DeviceName> RequestOf(const Node& node) {
  if (node.assigned_device().IsFull()) return node.assigned_device();
  if (node.requested_device().empty()) return DeviceName();
  StatusOr<DeviceName> request = DeviceName::Parse(node.requested_device());
  if (!request.ok()) {
    return Annotate(request.status(), StrCat("requested device of node '", node.name(), "'"));
  }
  return request;
}

StatusOr<PlacementGroups> FindPlacementGroups(const Graph& graph, absl::Span<const NodeId> order,
                                              bool soft) {
  PlacementGroups result;
  result.group_of_node.assign(graph.num_ids(), -1);
  result.link_of_node.resize(graph.num_ids());
  Colocation colocation(graph, result.link_of_node);
  for (NodeId id : order) colocation.Add(*graph.node(id));

  std::vector<int> group_of_set(graph.num_ids(), -1);
  for (NodeId id : order) {
    int& group = group_of_set[colocation.sets().Find(id)];
    if (group < 0) {
      group = static_cast<int>(result.groups.size());
      result.groups.emplace_back();
    }
    result.group_of_node[id] = group;
    result.groups[group].nodes.push_back(id);
  }
  for (PlacementGroup& group : result.groups) {
    for (NodeId id : group.nodes) {
      MR_RETURN_IF_ERROR(MergeRequest(graph, *graph.node(id), soft, group));
    }
  }
  return result;
}

}  // namespace millrace
