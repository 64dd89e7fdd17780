#include "core/graph/algorithms.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "core/graph/cycle.h"

namespace millrace {
namespace {

// Calls `visit` for each node that `node` reads, as often as it does. Inputs that do not exist are
// left out: Verify reports them, and may do so after it has looked for cycles.
template <typename Visit>
void ForEachInput(const Graph& graph, const Node& node, Visit visit) {
  for (const Port& port : node.inputs()) {
    if (graph.IsLive(port.node)) visit(port.node);
  }
  for (const NodeId before : node.control_inputs()) {
    if (graph.IsLive(before)) visit(before);
  }
}

// The users of each node, in one array: users of `id` are users[begin[id]] to users[begin[id+1]].
struct Users {
  std::vector<int32_t> begin;
  std::vector<NodeId> users;
};

Users ComputeUsers(const Graph& graph) {
  Users result;
  result.begin.assign(graph.num_ids() + 1, 0);
  for (NodeId id = 0; id < graph.num_ids(); ++id) {
    if (!graph.IsLive(id)) continue;
    ForEachInput(graph, *graph.node(id), [&](NodeId input) { ++result.begin[input + 1]; });
  }
  for (NodeId id = 0; id < graph.num_ids(); ++id) result.begin[id + 1] += result.begin[id];
  result.users.resize(result.begin.back());
  std::vector<int32_t> next(result.begin.begin(), result.begin.end() - 1);
  for (NodeId id = 0; id < graph.num_ids(); ++id) {
    if (!graph.IsLive(id)) continue;
    ForEachInput(graph, *graph.node(id), [&](NodeId input) { result.users[next[input]++] = id; });
  }
  return result;
}

// `pending` counts, for nodes on a cycle or behind one, inputs that are so, too.
Status CycleError(const Graph& graph, const std::vector<int32_t>& pending) {
  const auto inputs = [&graph](NodeId id, absl::FunctionRef<void(NodeId)> visit) {
    ForEachInput(graph, *graph.node(id), visit);
  };
  const auto name = [&graph](NodeId id) { return graph.node(id)->name(); };
  return InvalidArgument("the graph has a cycle: ", DescribeCycle(pending, inputs, name));
}

// Whether every node comes after its inputs by id already, as in graphs that were only added to.
bool IdsAreInOrder(const Graph& graph) {
  for (NodeId id = 0; id < graph.num_ids(); ++id) {
    if (!graph.IsLive(id)) continue;
    bool in_order = true;
    ForEachInput(graph, *graph.node(id), [&](NodeId input) { in_order &= input < id; });
    if (!in_order) return false;
  }
  return true;
}

}  // namespace

StatusOr<std::vector<NodeId>> TopologicalOrder(const Graph& graph) {
  std::vector<NodeId> order;
  order.reserve(graph.num_nodes());
  if (IdsAreInOrder(graph)) {
    for (NodeId id = 0; id < graph.num_ids(); ++id) {
      if (graph.IsLive(id)) order.push_back(id);
    }
    return order;
  }
  const Users users = ComputeUsers(graph);
  std::vector<int32_t> pending(graph.num_ids(), 0);
  for (const NodeId user : users.users) ++pending[user];
  std::priority_queue<NodeId, std::vector<NodeId>, std::greater<NodeId>> ready;
  for (NodeId id = 0; id < graph.num_ids(); ++id) {
    if (graph.IsLive(id) && pending[id] == 0) ready.push(id);
  }
  while (!ready.empty()) {
    const NodeId id = ready.top();
    ready.pop();
    order.push_back(id);
    for (int32_t i = users.begin[id]; i < users.begin[id + 1]; ++i) {
      if (--pending[users.users[i]] == 0) ready.push(users.users[i]);
    }
  }
  if (static_cast<int>(order.size()) != graph.num_nodes()) return CycleError(graph, pending);
  return order;
}

FanOut ComputeFanOut(const Graph& graph) {
  FanOut result;
  result.data.resize(graph.num_ids());
  result.control.resize(graph.num_ids());
  // Users come in ascending order, so that a user is there already only if it is the last.
  const auto add = [&graph](std::vector<std::vector<NodeId>>& users, NodeId input, NodeId user) {
    if (!graph.IsLive(input)) return;
    if (users[input].empty() || users[input].back() != user) users[input].push_back(user);
  };
  for (NodeId id = 0; id < graph.num_ids(); ++id) {
    if (!graph.IsLive(id)) continue;
    for (const Port& port : graph.node(id)->inputs()) add(result.data, port.node, id);
    for (const NodeId before : graph.node(id)->control_inputs()) add(result.control, before, id);
  }
  return result;
}

std::vector<bool> ReachableBackwards(const Graph& graph, absl::Span<const NodeId> from) {
  std::vector<bool> reached(graph.num_ids(), false);
  std::vector<NodeId> open;
  const auto reach = [&](NodeId id) {
    if (reached[id]) return;
    reached[id] = true;
    open.push_back(id);
  };
  for (const NodeId id : from) {
    if (graph.IsLive(id)) reach(id);
  }
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    ForEachInput(graph, *graph.node(id), reach);
  }
  return reached;
}

Status SpecializeShapes(Graph& graph, absl::Span<const std::pair<Port, PartialShape>> known) {
  for (const auto& [port, shape] : known) {
    if (!graph.IsLive(port.node) || port.index < 0 ||
        port.index >= graph.node(port.node)->num_outputs()) {
      return InvalidArgument("a shape is given for output ", port.index, " of node ", port.node,
                             ", which does not exist");
    }
    const StatusOr<PartialShape> merged = graph.shape(port).MergeWith(shape);
    if (!merged.ok()) {
      return InvalidArgument("'", graph.PortName(port), "' has shape ",
                             graph.shape(port).ToString(), ", which ", shape.ToString(),
                             " does not fit");
    }
    graph.SetOutputShape(port, *merged);
  }
  MR_ASSIGN_OR_RETURN(const std::vector<NodeId> order, TopologicalOrder(graph));
  for (const NodeId id : order) MR_RETURN_IF_ERROR(graph.InferShapes(id));
  return absl::OkStatus();
}

}  // namespace millrace
