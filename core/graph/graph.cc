#include "core/graph/graph.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"
#include "core/graph/node_name.h"
#include "core/graph/shape_inference.h"

namespace millrace {
namespace {

// Enough for graphs that people write.
constexpr int kMostIdentities = 1000;

std::string Describe(absl::string_view op, absl::string_view name) {
  return StrCat(op, " '", name, "'");
}

// `status`, which may begin with "op 'MatMul'", said of a node: "MatMul 'y': ...".
Status AtNode(const Status& status, const OpDef& op, absl::string_view name) {
  absl::string_view message = status.message();
  if (absl::ConsumePrefix(&message, StrCat("op '", op.name(), "'"))) {
    absl::ConsumePrefix(&message, ":");
    message = absl::StripLeadingAsciiWhitespace(message);
  }
  return Status(status.code(), StrCat(Describe(op.name(), name), ": ", message));
}

Status UnknownOp(const OpRegistry& ops, const NodeSpec& spec) {
  NearestName nearest(spec.op);
  for (const OpDef* op : ops.All()) nearest.Consider(op->name());
  return InvalidArgument("unknown op '", spec.op, "' of node '", spec.name, "'",
                         nearest.Suggestion());
}

// "attribute T is float", or "it must be int32" where the op fixes the dtype.
std::string WhyDType(const OpDef& op, const AttrMap& attrs, int input, DType wanted) {
  int i = 0;
  for (const ArgDef& arg : op.inputs()) {
    int64_t count = 1;
    if (!arg.number_attr.empty()) count = attrs.GetOr<int64_t>(arg.number_attr, 1);
    if (!arg.type_list_attr.empty()) {
      count = static_cast<int64_t>(
          attrs.GetOr<std::vector<DType>>(arg.type_list_attr, std::vector<DType>()).size());
    }
    if (input < i + count) {
      const std::string& attr = arg.type_list_attr.empty() ? arg.type_attr : arg.type_list_attr;
      if (attr.empty()) return StrCat("but ", arg.name, " must be ", Name(wanted));
      return StrCat(
          "but attribute ", attr, " is ",
          arg.type_list_attr.empty() ? std::string(Name(wanted)) : attrs.Find(attr)->ToString());
    }
    i += static_cast<int>(count);
  }
  return StrCat("but must be ", Name(wanted));
}

Status CheckInputDTypes(const Graph& graph, const Node& node) {
  const std::vector<DType>& wanted = node.signature().inputs;
  if (node.inputs().size() != wanted.size()) {
    return InvalidArgument("has ", node.inputs().size(), " inputs, but the op takes ",
                           wanted.size());
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    const DType given = graph.dtype(node.inputs()[i]);
    if (given == wanted[i]) continue;
    return InvalidArgument("input ", i, " (", graph.PortName(node.inputs()[i]), ") is ",
                           Name(given), ", ",
                           WhyDType(node.op(), node.attrs(), static_cast<int>(i), wanted[i]));
  }
  return absl::OkStatus();
}

}  // namespace

Graph::Graph(std::shared_ptr<const OpRegistry> ops) : ops_(std::move(ops)) {}

Graph::Graph(const Graph& other)
    : ops_(other.ops_),
      by_name_(other.by_name_),
      next_suffix_(other.next_suffix_),
      live_(other.live_),
      library_(other.library_) {
  nodes_.reserve(other.nodes_.size());
  for (const std::unique_ptr<Node>& node : other.nodes_) {
    nodes_.push_back(node == nullptr ? nullptr : std::make_unique<Node>(*node));
  }
}

StatusOr<NodeId> Graph::AddNode(NodeSpec spec) {
  const OpDef* op = ops_->Find(spec.op);
  if (op == nullptr) return UnknownOp(*ops_, spec);
  auto node = std::make_unique<Node>();
  node->op_ = op;
  node->name_ = std::move(spec.name);
  const Status status = InitNode(std::move(spec), *node);
  if (!status.ok()) return AtNode(status, *op, node->name_);
  return Insert(std::move(node));
}

// Fills in all but the name and the op, which are there.
Status Graph::InitNode(NodeSpec spec, Node& node) const {
  if (!IsNodeName(node.name_)) {
    return InvalidArgument(
        "not a name for a node (letters, digits and _.-/\\> with a letter, digit, _ or . first)");
  }
  if (by_name_.contains(node.name_)) return AlreadyExists("another node has that name");
  std::vector<DType> dtypes;
  dtypes.reserve(spec.inputs.size());
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    const Port port = spec.inputs[i];
    if (!IsLive(port.node) || port.index < 0 || port.index >= nodes_[port.node]->num_outputs()) {
      return InvalidArgument("input ", i, " does not exist");
    }
    dtypes.push_back(dtype(port));
  }
  for (const NodeId before : spec.control_inputs) {
    if (!IsLive(before)) return InvalidArgument("a control input does not exist");
  }
  if (!spec.device.empty()) MR_RETURN_IF_ERROR(DeviceName::Parse(spec.device).status());
  node.inputs_ = std::move(spec.inputs);
  node.control_inputs_ = std::move(spec.control_inputs);
  std::sort(node.control_inputs_.begin(), node.control_inputs_.end());
  node.control_inputs_.erase(std::unique(node.control_inputs_.begin(), node.control_inputs_.end()),
                             node.control_inputs_.end());
  node.requested_device_ = std::move(spec.device);
  node.location_ = spec.location;
  node.attrs_ = std::move(spec.attrs);
  MR_RETURN_IF_ERROR(InferTypeAttrs(*node.op_, dtypes, node.attrs_));
  MR_ASSIGN_OR_RETURN(node.signature_, ResolveSignature(*node.op_, node.attrs_));
  MR_RETURN_IF_ERROR(CheckInputDTypes(*this, node));
  MR_ASSIGN_OR_RETURN(node.output_shapes_, InferOutputShapes(*this, node));
  return absl::OkStatus();
}

NodeId Graph::Insert(std::unique_ptr<Node> node) {
  node->id_ = num_ids();
  by_name_.emplace(node->name_, node->id_);
  nodes_.push_back(std::move(node));
  ++live_;
  return num_ids() - 1;
}

NodeId Graph::AddCopy(const Node& node, std::string name, std::vector<Port> inputs,
                      std::vector<NodeId> control_inputs) {
  auto copy = std::make_unique<Node>(node);
  copy->name_ = std::move(name);
  copy->inputs_ = std::move(inputs);
  std::sort(control_inputs.begin(), control_inputs.end());
  control_inputs.erase(std::unique(control_inputs.begin(), control_inputs.end()),
                       control_inputs.end());
  copy->control_inputs_ = std::move(control_inputs);
  return Insert(std::move(copy));
}

void Graph::RemoveNode(NodeId id) {
  if (!IsLive(id)) return;
  by_name_.erase(nodes_[id]->name_);
  nodes_[id].reset();
  --live_;
}

void Graph::Rollback(NodeId num_ids) {
  for (NodeId id = num_ids; id < this->num_ids(); ++id) RemoveNode(id);
  if (num_ids < this->num_ids()) nodes_.resize(num_ids);
}

const Node* Graph::Find(absl::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : nodes_[found->second].get();
}

StatusOr<Port> Graph::FindPort(absl::string_view name) const {
  const millrace::PortName parts = SplitPortName(name);
  const Node* node = Find(parts.node);
  if (node == nullptr) {
    NearestName nearest(parts.node);
    for (const std::unique_ptr<Node>& other : nodes_) {
      if (other != nullptr) nearest.Consider(other->name());
    }
    return NotFound("there is no '", name, "' in the graph", nearest.Suggestion());
  }
  if (parts.index < node->num_outputs()) return Port{node->id(), parts.index};
  if (node->num_outputs() == 0) {
    return NotFound(Describe(node->op().name(), node->name()), " has no outputs");
  }
  return NotFound("there is no '", name,
                  "' in the graph: ", Describe(node->op().name(), node->name()), " has ",
                  node->num_outputs(), node->num_outputs() == 1 ? " output" : " outputs");
}

std::string Graph::PortName(Port port) const {
  const std::string& name = nodes_[port.node]->name();
  return port.index == 0 ? name : StrCat(name, ":", port.index);
}

std::string Graph::UniqueName(absl::string_view base) {
  if (!by_name_.contains(base)) return std::string(base);
  int& suffix = next_suffix_.try_emplace(base, 1).first->second;
  while (true) {
    std::string name = StrCat(base, "_", suffix);
    if (!by_name_.contains(name)) return name;
    ++suffix;
  }
}

Status Graph::ReplaceInput(NodeId node, int input, Port port) {
  if (!IsLive(node) || input < 0 || input >= static_cast<int>(nodes_[node]->inputs_.size())) {
    return InvalidArgument("cannot replace input ", input, " of node ", node,
                           ": it does not exist");
  }
  Node& user = *nodes_[node];
  if (!IsLive(port.node) || port.index < 0 || port.index >= nodes_[port.node]->num_outputs()) {
    return InvalidArgument(Describe(user.op_->name(), user.name_), ": new input ", input,
                           " does not exist");
  }
  const DType wanted = user.signature_.inputs[input];
  if (dtype(port) != wanted) {
    return InvalidArgument(Describe(user.op_->name(), user.name_), ": input ", input, " must be ",
                           Name(wanted), ", but ", PortName(port), " is ", Name(dtype(port)));
  }
  user.inputs_[input] = port;
  return absl::OkStatus();
}

void Graph::AddControlInput(NodeId node, NodeId before) {
  std::vector<NodeId>& inputs = nodes_[node]->control_inputs_;
  const auto place = std::lower_bound(inputs.begin(), inputs.end(), before);
  if (place == inputs.end() || *place != before) inputs.insert(place, before);
}

void Graph::RemoveControlInput(NodeId node, NodeId before) {
  std::vector<NodeId>& inputs = nodes_[node]->control_inputs_;
  const auto place = std::lower_bound(inputs.begin(), inputs.end(), before);
  if (place != inputs.end() && *place == before) inputs.erase(place);
}

Status Graph::ReplaceUses(Port from, Port to) {
  for (const Port port : {from, to}) {
    if (!IsLive(port.node) || port.index < 0 || port.index >= nodes_[port.node]->num_outputs()) {
      return InvalidArgument("cannot replace output ", port.index, " of node ", port.node,
                             ": it does not exist");
    }
  }
  if (dtype(from) != dtype(to)) {
    return InvalidArgument("cannot replace ", PortName(from), " by ", PortName(to), ": one is ",
                           Name(dtype(from)), ", the other ", Name(dtype(to)));
  }
  for (const std::unique_ptr<Node>& node : nodes_) {
    if (node == nullptr || node->id_ == to.node) continue;
    std::replace(node->inputs_.begin(), node->inputs_.end(), from, to);
  }
  return absl::OkStatus();
}

void Graph::SetAttr(NodeId node, absl::string_view name, AttrValue value) {
  nodes_[node]->attrs_.Set(name, std::move(value));
}

void Graph::SetRequestedDevice(NodeId node, std::string device) {
  nodes_[node]->requested_device_ = std::move(device);
}

void Graph::SetAssignedDevice(NodeId node, DeviceName device) {
  nodes_[node]->assigned_device_ = std::move(device);
}

void Graph::SetOutputShape(Port port, PartialShape shape) {
  nodes_[port.node]->output_shapes_[port.index] = shape;
}

Status Graph::InferShapes(NodeId node) {
  Node& n = *nodes_[node];
  const StatusOr<std::vector<PartialShape>> inferred = InferOutputShapes(*this, n);
  std::vector<PartialShape> shapes = n.output_shapes_;
  const Status status = inferred.ok() ? MergeShapes(*inferred, shapes) : inferred.status();
  if (!status.ok()) return Annotate(status, Describe(n.op_->name(), n.name_));
  n.output_shapes_ = std::move(shapes);
  return absl::OkStatus();
}

const Tensor* Graph::ConstantValue(Port port) const {
  for (int i = 0; i <= kMostIdentities; ++i) {
    const Node& node = *nodes_[port.node];
    if (port.index != 0) return nullptr;
    if (node.op().Has(Trait::kConstant)) {
      const AttrValue* value = node.attrs().Find("value");
      return value == nullptr ? nullptr : value->get<Tensor>();
    }
    if (!node.op().Has(Trait::kIdentity) || node.inputs().empty()) return nullptr;
    port = node.inputs()[0];
  }
  return nullptr;
}

}  // namespace millrace
