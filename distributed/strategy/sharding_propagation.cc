#include "distributed/strategy/sharding_propagation.h"

#include "core/graph/algorithms.h"

namespace millrace {
namespace {

Status ApplyRule(const Graph& graph, const Node& node, const std::vector<NodeSharding>& so_far,
                 NodeSharding& result) {
  const int num_inputs = static_cast<int>(node.inputs().size());
  std::vector<Sharding> inputs(num_inputs);
  std::vector<PartialShape> input_shapes(num_inputs);
  std::vector<const Tensor*> host_values(num_inputs);
  bool all_replicated = true;
  for (int i = 0; i < num_inputs; ++i) {
    const Port port = node.inputs()[i];
    inputs[i] = so_far[port.node].outputs[port.index];
    input_shapes[i] = graph.shape(port);
    host_values[i] = graph.ConstantValue(port);
    all_replicated &= inputs[i].kind == Sharding::kReplicated;
  }
  if (all_replicated) {
    // Every op can run on whole values, whatever its rule would prefer.
    result.inputs = std::move(inputs);
    result.outputs.assign(node.num_outputs(), Sharding::Replicated());
    result.mean_over_parts.assign(node.num_outputs(), false);
    return absl::OkStatus();
  }
  std::vector<PartialShape> output_shapes(node.num_outputs());
  for (int i = 0; i < node.num_outputs(); ++i) output_shapes[i] = node.output_shape(i);
  ShardingContext context(node.attrs(), inputs, input_shapes, host_values, output_shapes);
  const ShardingFn& rule = node.op().sharding_fn();
  MR_RETURN_IF_ERROR(rule ? rule(context) : ReplicatedSharding(context));
  for (int i = 0; i < num_inputs; ++i) result.inputs.push_back(context.input(i));
  for (int i = 0; i < node.num_outputs(); ++i) {
    result.outputs.push_back(context.output(i));
    result.mean_over_parts.push_back(context.mean_over_parts(i));
  }
  result.localized.assign(context.localized().begin(), context.localized().end());
  return absl::OkStatus();
}

}  // namespace

bool NodeSharding::OncePerPart() const {
  for (const Sharding& s : inputs) {
    if (s.kind != Sharding::kReplicated) return true;
  }
  for (const Sharding& s : outputs) {
    if (s.kind != Sharding::kReplicated) return true;
  }
  return false;
}

StatusOr<std::vector<NodeSharding>> PropagateShardings(
    const Graph& graph, const absl::flat_hash_map<Port, Sharding>& given) {
  MR_ASSIGN_OR_RETURN(std::vector<NodeId> order, TopologicalOrder(graph));
  std::vector<NodeSharding> result(graph.num_ids());
  for (NodeId id : order) {
    const Node& node = *graph.node(id);
    Status status = ApplyRule(graph, node, result, result[id]);
    if (!status.ok()) {
      return Annotate(status, StrCat("splitting ", node.op().name(), " '", node.name(), "'"));
    }
    for (int i = 0; i < node.num_outputs(); ++i) {
      auto it = given.find(Port{id, i});
      if (it != given.end()) result[id].outputs[i] = it->second;
    }
  }
  return result;
}

}  // namespace millrace
