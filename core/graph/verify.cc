#include "core/graph/verify.h"

#include "core/graph/algorithms.h"
#include "core/graph/node_name.h"
#include "core/graph/shape_inference.h"

// Each invariant is a function of its own. They run in an order in which each may rely on those
// before it.
namespace millrace {
namespace {

Status CheckName(const Graph& graph, const Node& node) {
  if (!IsNodeName(node.name())) return InvalidArgument("the name is malformed");
  if (graph.Find(node.name()) != &node) return InvalidArgument("the name is not unique");
  return absl::OkStatus();
}

Status CheckOp(const Graph& graph, const Node& node) {
  if (graph.ops().Find(node.op().name()) == &node.op()) return absl::OkStatus();
  return InvalidArgument("the op is not of the graph's registry");
}

// Each input is an existing port of the dtype that the op wants.
Status CheckInputs(const Graph& graph, const Node& node) {
  const std::vector<DType>& wanted = node.signature().inputs;
  if (node.inputs().size() != wanted.size()) {
    return InvalidArgument("has ", node.inputs().size(), " inputs, but its attributes say ",
                           wanted.size());
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    const Port port = node.inputs()[i];
    if (!graph.IsLive(port.node)) return InvalidArgument("input ", i, " has been removed");
    if (port.index < 0 || port.index >= graph.node(port.node)->num_outputs()) {
      return InvalidArgument("input ", i, " is output ", port.index, " of '",
                             graph.node(port.node)->name(), "', which has ",
                             graph.node(port.node)->num_outputs());
    }
    if (graph.dtype(port) != wanted[i]) {
      return InvalidArgument("input ", i, " (", graph.PortName(port), ") is ",
                             Name(graph.dtype(port)), ", but must be ", Name(wanted[i]));
    }
  }
  return absl::OkStatus();
}

// Control inputs exist, ascend, and so are no duplicates.
Status CheckControlInputs(const Graph& graph, const Node& node) {
  const std::vector<NodeId>& before = node.control_inputs();
  for (size_t i = 0; i < before.size(); ++i) {
    if (!graph.IsLive(before[i])) {
      return InvalidArgument("control input ", i, " has been removed");
    }
    if (i > 0 && before[i - 1] >= before[i]) {
      return InvalidArgument("control input ", i, " (^", graph.node(before[i])->name(),
                             ") is there twice or out of order");
    }
  }
  return absl::OkStatus();
}

// The attributes resolve against the op, to the signature that the node has.
Status CheckAttributes(const Node& node) {
  AttrMap attrs = node.attrs();
  MR_ASSIGN_OR_RETURN(const NodeSignature signature, ResolveSignature(node.op(), attrs));
  const NodeSignature& held = node.signature();
  if (signature.inputs != held.inputs || signature.outputs != held.outputs ||
      signature.host_inputs != held.host_inputs || signature.host_outputs != held.host_outputs) {
    return InvalidArgument("the attributes were changed so that they say other inputs or outputs");
  }
  return absl::OkStatus();
}

Status CheckDevices(const Node& node) {
  if (!node.requested_device().empty()) {
    MR_RETURN_IF_ERROR(DeviceName::Parse(node.requested_device()).status());
  }
  const DeviceName& assigned = node.assigned_device();
  if (!(assigned == DeviceName()) && !assigned.IsFull()) {
    return InvalidArgument("the assigned device ", assigned.ToString(), " is not a full name");
  }
  return absl::OkStatus();
}

// Shapes are at least as good as what follows from those of the inputs.
Status CheckShapes(const Graph& graph, const Node& node) {
  MR_ASSIGN_OR_RETURN(const std::vector<PartialShape> inferred, InferOutputShapes(graph, node));
  for (int i = 0; i < node.num_outputs(); ++i) {
    std::vector<PartialShape> shape = {node.output_shape(i)};
    if (MergeShapes({&inferred[i], 1}, shape).ok() && shape[0] == node.output_shape(i)) continue;
    return InvalidArgument("output ", i, " has shape ", node.output_shape(i).ToString(),
                           ", but from its inputs follows ", inferred[i].ToString());
  }
  return absl::OkStatus();
}

Status CheckNode(const Graph& graph, const Node& node) {
  MR_RETURN_IF_ERROR(CheckName(graph, node));
  MR_RETURN_IF_ERROR(CheckOp(graph, node));
  MR_RETURN_IF_ERROR(CheckInputs(graph, node));
  MR_RETURN_IF_ERROR(CheckControlInputs(graph, node));
  MR_RETURN_IF_ERROR(CheckAttributes(node));
  return CheckDevices(node);
}

Status AtNode(const Status& status, const Node& node) {
  return Annotate(status, StrCat(node.op().name(), " '", node.name(), "'"));
}

}  // namespace

Status Verify(const Graph& graph) {
  for (NodeId id = 0; id < graph.num_ids(); ++id) {
    if (!graph.IsLive(id)) continue;
    const Node& node = *graph.node(id);
    if (const Status status = CheckNode(graph, node); !status.ok()) return AtNode(status, node);
  }
  MR_RETURN_IF_ERROR(TopologicalOrder(graph).status());
  for (NodeId id = 0; id < graph.num_ids(); ++id) {
    if (!graph.IsLive(id)) continue;
    const Node& node = *graph.node(id);
    if (const Status status = CheckShapes(graph, node); !status.ok()) return AtNode(status, node);
  }
  return absl::OkStatus();
}

}  // namespace millrace
