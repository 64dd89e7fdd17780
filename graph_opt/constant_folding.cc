#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "graph_opt/pass.h"

namespace millrace {
namespace {

bool IsConstant(const Node& node) { return node.op().Has(Trait::kConstant); }

// Whether the op may be computed ahead of the step at all. Control inputs are effects to wait for,
// and reasons to run.
bool IsPure(const Node& node) {
  for (Trait trait : {Trait::kStateful, Trait::kPlaceholder, Trait::kVariable,
                      Trait::kReadsVariable, Trait::kWritesVariable, Trait::kSend, Trait::kRecv}) {
    if (node.op().Has(trait)) return false;
  }
  for (int i = 0; i < node.num_outputs(); ++i) {
    if (SizeOf(node.output_dtype(i)) == 0) return false;
  }
  return node.num_outputs() > 0 && node.control_inputs().empty();
}

// One run of the pass: a sweep in topological order, which learns values that shapes tell as it
// goes, so that each node's shape function sees what is known of its operands, however long the
// chain; then one evaluation of all that is left to compute.
class Folder {
 public:
  Folder(const Evaluator& evaluator, int64_t max_bytes, PrunedGraph& pruned)
      : evaluator_(evaluator),
        max_bytes_(max_bytes),
        pruned_(pruned),
        graph_(pruned.graph),
        state_(pruned.graph.num_ids(), kStays),
        after_write_(pruned.graph.num_ids(), false) {}

  StatusOr<bool> Run() {
    MR_ASSIGN_OR_RETURN(const std::vector<NodeId> order, TopologicalOrder(graph_));
    for (NodeId id : order) MR_RETURN_IF_ERROR(Visit(id));
    MR_RETURN_IF_ERROR(FoldFrontier(order));
    return changed_;
  }

 private:
  enum State : uint8_t {
    kStays,
    kConstant,
    kComputable,  // from constants, small enough
    kKnown,       // all outputs are in known_
  };

  // New nodes are the constants that the pass made.
  State StateOf(NodeId id) const {
    return id < static_cast<NodeId>(state_.size()) ? state_[id] : kConstant;
  }

  Status Visit(NodeId id) {
    MR_RETURN_IF_ERROR(ReadKnownValues(id));
    MR_RETURN_IF_ERROR(SettleHostOperands(id));
    MR_RETURN_IF_ERROR(graph_.InferShapes(id));
    const Node& node = *graph_.node(id);
    after_write_[id] = IsAfterWrite(node);
    if (IsConstant(node)) {
      if (node.control_inputs().empty()) state_[id] = kConstant;
      return absl::OkStatus();
    }
    if (!IsPure(node)) return absl::OkStatus();
    // A value that waits for a write, be it through data that only give their shape, may be what
    // orders that write before others.
    if (!after_write_[id]) {
      MR_ASSIGN_OR_RETURN(const bool from_shapes, LearnFromShapes(node));
      if (from_shapes) {
        state_[id] = kKnown;
        return absl::OkStatus();
      }
    }
    if (IsComputable(node)) state_[id] = kComputable;
    return absl::OkStatus();
  }

  bool IsAfterWrite(const Node& node) const {
    bool after = node.op().Has(Trait::kWritesVariable);
    auto look = [&](NodeId before) {
      after = after || (before < static_cast<NodeId>(after_write_.size()) && after_write_[before]);
    };
    for (Port input : node.inputs()) look(input.node);
    for (NodeId before : node.control_inputs()) look(before);
    return after;
  }

  bool IsComputable(const Node& node) const {
    for (Port input : node.inputs()) {
      const State state = StateOf(input.node);
      if (state != kConstant && state != kComputable) return false;
    }
    for (int i = 0; i < node.num_outputs(); ++i) {
      // A shape that depends on values is known once they are; the result is measured then.
      const StatusOr<Shape> shape = node.output_shape(i).ToShape();
      if (!shape.ok()) continue;
      const auto size = static_cast<int64_t>(SizeOf(node.output_dtype(i)));
      if (shape->num_elements() > max_bytes_ / size) return false;
    }
    return true;
  }

  // Values that the shapes of the inputs fix, whatever the inputs' values.
  StatusOr<bool> LearnFromShapes(const Node& node) {
    if (!node.op().value_from_shapes()) return false;
    std::vector<PartialShape> shapes;
    for (Port input : node.inputs()) shapes.push_back(graph_.shape(input));
    const std::vector<const Tensor*> host(shapes.size(), nullptr);
    const ShapeContext context(node.attrs(), shapes, host, node.signature().inputs,
                               node.num_outputs());
    std::vector<Tensor> values;
    for (int i = 0; i < node.num_outputs(); ++i) {
      MR_ASSIGN_OR_RETURN(Tensor value, node.op().value_from_shapes()(context, i));
      if (!value.valid()) return false;
      values.push_back(std::move(value));
    }
    for (int i = 0; i < node.num_outputs(); ++i) known_[Port{node.id(), i}] = std::move(values[i]);
    return true;
  }

  // Shapes depend on the values of host operands (sizes, axes), and on shapes what else can be
  // known: these are computed at once.
  Status SettleHostOperands(NodeId id) {
    const Node& node = *graph_.node(id);
    std::vector<Port> wanted;
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      const Port input = node.inputs()[i];
      if (node.signature().host_inputs[i] && StateOf(input.node) == kComputable) {
        wanted.push_back(input);
      }
    }
    if (wanted.empty()) return absl::OkStatus();
    Compute(wanted);
    return ReadKnownValues(id);
  }

  // What something that stays reads: what is between constants and that needs no value.
  Status FoldFrontier(const std::vector<NodeId>& order) {
    std::vector<Port> wanted;
    absl::flat_hash_map<Port, bool> seen;
    auto want = [&](Port port) {
      if (StateOf(port.node) != kComputable || known_.contains(port)) return;
      if (seen.emplace(port, true).second) wanted.push_back(port);
    };
    for (NodeId id : order) {
      if (state_[id] != kStays) continue;
      for (Port input : graph_.node(id)->inputs()) want(input);
    }
    for (Port fetch : pruned_.fetches) want(fetch);
    if (!wanted.empty()) Compute(wanted);
    for (NodeId id : order) {
      if (state_[id] == kStays) MR_RETURN_IF_ERROR(ReadKnownValues(id));
    }
    for (Port& fetch : pruned_.fetches) {
      if (!known_.contains(fetch)) continue;
      MR_ASSIGN_OR_RETURN(fetch, ConstantFor(fetch));
      changed_ = true;
    }
    return absl::OkStatus();
  }

  // Adds the values of `ports` to known_. What cannot be computed here (no kernel, or an error that
  // belongs to the step) stays as it is.
  void Compute(const std::vector<Port>& ports) {
    StatusOr<std::vector<Tensor>> values = Evaluate(ports);
    if (!values.ok() || values->size() != ports.size()) {
      if (ports.size() == 1) {
        state_[ports[0].node] = kStays;
        return;
      }
      for (Port port : ports) Compute({port});
      return;
    }
    for (size_t i = 0; i < ports.size(); ++i) {
      Tensor& value = (*values)[i];
      if (static_cast<int64_t>(value.byte_size()) > max_bytes_) {
        state_[ports[i].node] = kStays;
      } else {
        known_[ports[i]] = std::move(value);
      }
    }
  }

  // Hands the evaluator a graph of what the ports are computed from, and no more: the whole one may
  // be large, and there may be many calls.
  StatusOr<std::vector<Tensor>> Evaluate(const std::vector<Port>& ports) const {
    Graph part(graph_.shared_ops());
    absl::flat_hash_map<NodeId, NodeId> copies;
    std::vector<NodeId> stack;
    for (Port port : ports) stack.push_back(port.node);
    while (!stack.empty()) {
      const Node& node = *graph_.node(stack.back());
      std::vector<Port> inputs;
      bool ready = true;
      for (Port input : node.inputs()) {
        const auto copy = copies.find(input.node);
        if (copy == copies.end()) {
          stack.push_back(input.node);
          ready = false;
        } else {
          inputs.push_back(Port{copy->second, input.index});
        }
      }
      if (!ready) continue;
      stack.pop_back();
      if (copies.contains(node.id())) continue;
      const NodeId copy = part.AddCopy(node, node.name(), std::move(inputs), {});
      part.SetRequestedDevice(copy, "");
      copies[node.id()] = copy;
    }
    std::vector<Port> wanted;
    for (Port port : ports) wanted.push_back(Port{copies[port.node], port.index});
    return evaluator_(part, wanted);
  }

  Status ReadKnownValues(NodeId id) {
    for (size_t i = 0; i < graph_.node(id)->inputs().size(); ++i) {
      const Port input = graph_.node(id)->inputs()[i];
      if (!known_.contains(input)) continue;
      MR_ASSIGN_OR_RETURN(const Port constant, ConstantFor(input));
      MR_RETURN_IF_ERROR(graph_.ReplaceInput(id, static_cast<int>(i), constant));
      changed_ = true;
    }
    return absl::OkStatus();
  }

  // The constant that holds a known value; made for its first reader.
  StatusOr<Port> ConstantFor(Port port) {
    const auto found = constants_.find(port);
    if (found != constants_.end()) return found->second;
    const Node& node = *graph_.node(port.node);
    const Tensor& value = known_.at(port);
    NodeSpec spec;
    spec.name = graph_.UniqueName(StrCat(node.name(), "/folded"));
    spec.op = "Const";
    spec.attrs = {{"dtype", value.dtype()}, {"value", value}};
    spec.device = node.requested_device();
    spec.location = node.location();
    MR_ASSIGN_OR_RETURN(const NodeId id, graph_.AddNode(std::move(spec)));
    return constants_[port] = Port{id, 0};
  }

  const Evaluator& evaluator_;
  const int64_t max_bytes_;
  PrunedGraph& pruned_;
  Graph& graph_;
  std::vector<State> state_;  // by id, of the nodes that were there
  std::vector<bool> after_write_;
  absl::flat_hash_map<Port, Tensor> known_;
  absl::flat_hash_map<Port, Port> constants_;
  bool changed_ = false;
};

class ConstantFoldingPass final : public Pass {
 public:
  ConstantFoldingPass(Evaluator evaluator, int64_t max_bytes)
      : evaluator_(std::move(evaluator)), max_bytes_(max_bytes) {}

  std::string name() const override { return "constant_folding"; }

  StatusOr<bool> Run(PrunedGraph& pruned) const override {
    return Folder(evaluator_, max_bytes_, pruned).Run();
  }

 private:
  const Evaluator evaluator_;
  const int64_t max_bytes_;
};

}  // namespace

std::unique_ptr<Pass> NewConstantFoldingPass(Evaluator evaluator, int64_t max_bytes) {
  return std::make_unique<ConstantFoldingPass>(std::move(evaluator), max_bytes);
}

}  // namespace millrace
