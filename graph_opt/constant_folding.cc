#include <utility>
#include <vector>

#include "graph_opt/pass.h"

namespace millrace {
namespace {

// Each round can give constants that let shapes, and so more constants, follow.
constexpr int kMaxRounds = 16;

bool IsConstant(const Node& node) { return node.op().Has(Trait::kConstant); }

// Whether the op may be computed ahead of the step at all.
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

class ConstantFoldingPass final : public Pass {
 public:
  ConstantFoldingPass(Evaluator evaluator, int64_t max_bytes)
      : evaluator_(std::move(evaluator)), max_bytes_(max_bytes) {}

  std::string name() const override { return "constant_folding"; }

  StatusOr<bool> Run(PrunedGraph& pruned) const override {
    bool changed = false;
    for (int round = 0; round < kMaxRounds; ++round) {
      MR_ASSIGN_OR_RETURN(const bool again, RunRound(pruned));
      if (!again) break;
      changed = true;
    }
    return changed;
  }

 private:
  StatusOr<bool> RunRound(PrunedGraph& pruned) const {
    Graph& graph = pruned.graph;
    MR_ASSIGN_OR_RETURN(std::vector<NodeId> order, TopologicalOrder(graph));
    std::vector<bool> constant(graph.num_ids(), false);  // itself, or computable from constants
    std::vector<std::pair<Port, Tensor>> known;
    std::vector<Port> wanted;
    for (NodeId id : order) {
      MR_RETURN_IF_ERROR(graph.InferShapes(id));
      const Node& node = *graph.node(id);
      if (IsConstant(node)) {
        constant[id] = true;
        continue;
      }
      if (!IsPure(node)) continue;
      MR_ASSIGN_OR_RETURN(const bool from_shapes, FromShapes(graph, node, known));
      if (from_shapes) continue;
      bool from_constants = FitsLimit(node);
      for (Port input : node.inputs()) from_constants = from_constants && constant[input.node];
      constant[id] = from_constants;
    }
    CollectFrontier(pruned, constant, wanted);
    if (!wanted.empty()) {
      MR_ASSIGN_OR_RETURN(std::vector<Tensor> values, evaluator_(graph, wanted));
      for (size_t i = 0; i < wanted.size(); ++i) known.emplace_back(wanted[i], values[i]);
    }
    if (known.empty()) return false;
    return Replace(pruned, known);
  }

  // A node whose outputs' sizes are known and small; those whose shape depends on values (with
  // constant inputs they are computed all the same) count as small.
  bool FitsLimit(const Node& node) const {
    for (int i = 0; i < node.num_outputs(); ++i) {
      StatusOr<Shape> shape = node.output_shape(i).ToShape();
      if (!shape.ok()) continue;
      const int64_t size = static_cast<int64_t>(SizeOf(node.output_dtype(i)));
      if (shape->num_elements() > max_bytes_ / size) return false;
    }
    return true;
  }

  // Values that the shapes of the inputs fix, whatever the inputs' values.
  StatusOr<bool> FromShapes(const Graph& graph, const Node& node,
                            std::vector<std::pair<Port, Tensor>>& known) const {
    if (!node.op().value_from_shapes()) return false;
    std::vector<PartialShape> shapes;
    for (Port input : node.inputs()) shapes.push_back(graph.shape(input));
    const std::vector<const Tensor*> host(shapes.size(), nullptr);
    const ShapeContext context(node.attrs(), shapes, host, node.signature().inputs,
                               node.num_outputs());
    std::vector<Tensor> values;
    for (int i = 0; i < node.num_outputs(); ++i) {
      MR_ASSIGN_OR_RETURN(Tensor value, node.op().value_from_shapes()(context, i));
      if (!value.valid()) return false;
      values.push_back(std::move(value));
    }
    for (int i = 0; i < node.num_outputs(); ++i) {
      known.emplace_back(Port{node.id(), i}, std::move(values[i]));
    }
    return true;
  }

  // Ports of computable nodes that something not computable reads: what is between needs no value.
  static void CollectFrontier(const PrunedGraph& pruned, const std::vector<bool>& constant,
                              std::vector<Port>& wanted) {
    const Graph& graph = pruned.graph;
    absl::flat_hash_map<Port, bool> seen;
    auto want = [&](Port port) {
      if (!constant[port.node] || IsConstant(*graph.node(port.node))) return;
      if (!seen.emplace(port, true).second) return;
      wanted.push_back(port);
    };
    for (NodeId id = 0; id < graph.num_ids(); ++id) {
      if (!graph.IsLive(id) || constant[id]) continue;
      for (Port input : graph.node(id)->inputs()) want(input);
    }
    for (Port fetch : pruned.fetches) want(fetch);
  }

  StatusOr<bool> Replace(PrunedGraph& pruned,
                         const std::vector<std::pair<Port, Tensor>>& known) const {
    Graph& graph = pruned.graph;
    absl::flat_hash_map<Port, Port> replaced;
    for (const auto& [port, value] : known) {
      const Node& node = *graph.node(port.node);
      NodeSpec spec;
      spec.name = graph.UniqueName(StrCat(node.name(), "/folded"));
      spec.op = "Const";
      spec.attrs = {{"dtype", value.dtype()}, {"value", value}};
      spec.device = node.requested_device();
      spec.location = node.location();
      MR_ASSIGN_OR_RETURN(NodeId id, graph.AddNode(std::move(spec)));
      replaced[port] = Port{id, 0};
    }
    bool changed = false;
    for (NodeId id = 0; id < graph.num_ids(); ++id) {
      if (!graph.IsLive(id)) continue;
      for (size_t i = 0; i < graph.node(id)->inputs().size(); ++i) {
        auto found = replaced.find(graph.node(id)->inputs()[i]);
        if (found == replaced.end()) continue;
        MR_RETURN_IF_ERROR(graph.ReplaceInput(id, static_cast<int>(i), found->second));
        changed = true;
      }
    }
    for (Port& fetch : pruned.fetches) {
      auto found = replaced.find(fetch);
      if (found == replaced.end()) continue;
      fetch = found->second;
      changed = true;
    }
    // The new constants are of no use if nobody reads what they stand for.
    for (const auto& [from, to] : replaced) {
      if (!changed) graph.RemoveNode(to.node);
    }
    return changed;
  }

  const Evaluator evaluator_;
  const int64_t max_bytes_;
};

}  // namespace

std::unique_ptr<Pass> NewConstantFoldingPass(Evaluator evaluator, int64_t max_bytes) {
  return std::make_unique<ConstantFoldingPass>(std::move(evaluator), max_bytes);
}

}  // namespace millrace
