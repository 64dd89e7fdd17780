#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/strip.h"
#include "core/graph/algorithms.h"
#include "core/runtime/byte_text.h"
#include "core/runtime/compiled_plan.h"
#include "core/runtime/step_memory.h"

namespace millrace {
namespace {

// Below this, handing a node to another thread costs more than running it.
constexpr int64_t kInlineBytes = 16 << 10;
constexpr double kInlineFlops = 32 << 10;

bool Changes(const OpDef& op) {
  return op.Has(Trait::kOptimizerUpdate) || op.Has(Trait::kWritesVariable);
}

}  // namespace

// Fills the arrays of a CompiledPlan. Node by node in topological order: inputs are compiled
// before their readers.
class PlanCompiler {
 public:
  PlanCompiler(CompiledPlan& plan, const KernelRegistry& kernels)
      : plan_(plan), graph_(plan.graph()), kernels_(kernels) {}

  Status Run() {
    MR_ASSIGN_OR_RETURN(const std::vector<NodeId> order, TopologicalOrder(graph_));
    slot_of_output_.assign(graph_.num_ids(), CompiledPlan::kNoSlot);
    index_of_node_.assign(graph_.num_ids(), -1);
    host_memory_ = plan_.device().allocator().IsHostMemory();
    AddFeeds();
    for (NodeId id : order) {
      if (slot_of_output_[id] != CompiledPlan::kNoSlot) continue;  // fed
      MR_RETURN_IF_ERROR(AddNode(*graph_.node(id)));
    }
    AddFetches();
    MarkUnread();
    MarkInPlace();
    AddEdges();
    for (PlanNode& planned : plan_.nodes) MR_RETURN_IF_ERROR(FixShapes(planned));
    FindRoots();
    AssignStepMemory(plan_);
    return absl::OkStatus();
  }

 private:
  SlotId SlotOf(Port port) const {
    const SlotId first = slot_of_output_[port.node];
    return first < 0 ? first : first + port.index;
  }

  SlotId AddSlots(const Node& node) {
    const auto first = static_cast<SlotId>(plan_.slots.size());
    for (int i = 0; i < node.num_outputs(); ++i) {
      PlanSlot slot;
      slot.dtype = node.output_dtype(i);
      slot.made_by_kernel = SizeOf(slot.dtype) == 0;
      slot.host_memory = !host_memory_ && node.signature().host_outputs[i];
      plan_.slots.push_back(slot);
      plan_.slot_shapes.push_back(node.output_shape(i));
    }
    slot_of_output_[node.id()] = first;
    plan_.initial_uses.resize(plan_.slots.size(), 0);
    return first;
  }

  void AddFeeds() {
    for (const Partition::Feed& feed : plan_.partition_.feeds) {
      plan_.feed_indices_.push_back(feed.index);
      const SlotId slot = AddSlots(*graph_.node(feed.port.node)) + feed.port.index;
      plan_.slots[slot].never_in_place = true;
      plan_.feed_slots.push_back(slot);
    }
  }

  Status AddNode(const Node& node) {
    if (node.op().Has(Trait::kPlaceholder)) {
      return InvalidArgument("placeholder '", node.name(), "' is neither fed nor pruned");
    }
    if (node.op().Has(Trait::kConstant) && node.control_inputs().empty() && host_memory_) {
      const AttrValue* value = node.attrs().Find("value");
      const Tensor* tensor = value == nullptr ? nullptr : value->get<Tensor>();
      if (tensor != nullptr && tensor->valid()) {
        // Readers trust the node's dtype and shape.
        if (tensor->dtype() != node.output_dtype(0) ||
            !node.output_shape(0).IsCompatibleWith(tensor->shape())) {
          return InvalidArgument(node.op().name(), " '", node.name(), "' is ",
                                 Name(node.output_dtype(0)), node.output_shape(0).ToString(),
                                 ", but its value is ", tensor->ToString());
        }
        slot_of_output_[node.id()] = ~static_cast<SlotId>(plan_.constants.size());
        plan_.constants.push_back(*tensor);
        return absl::OkStatus();
      }
    }
    const KernelConstruction construction{node.name(), node.op(), node.attrs(), node.signature(),
                                          plan_.device()};
    StatusOr<std::unique_ptr<Kernel>> kernel = kernels_.Create(construction);
    PlanNode planned;
    planned.id = node.id();
    if (!kernel.ok()) {
      // The registry's own mention of the node would be its second one.
      absl::string_view message = kernel.status().message();
      absl::ConsumePrefix(&message, StrCat("node '", node.name(), "' (", node.op().name(), "): "));
      return plan_.NodeError(planned, Status(kernel.status().code(), message), {});
    }
    planned.kernel = kernel->get();
    planned.first_input = static_cast<uint32_t>(plan_.input_slots.size());
    planned.num_inputs = static_cast<uint32_t>(node.inputs().size());
    planned.first_output = AddSlots(node);
    planned.num_outputs = static_cast<uint32_t>(node.num_outputs());
    plan_.kernels_.push_back(*std::move(kernel));
    SetFlags(node, planned);
    const auto host_begin = static_cast<int32_t>(plan_.host_inputs_.size());
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      const SlotId slot = SlotOf(node.inputs()[i]);
      plan_.input_slots.push_back(slot);
      if (slot >= 0) ++plan_.initial_uses[slot];
      if (node.signature().host_inputs[i]) {
        plan_.host_inputs_.push_back(static_cast<int32_t>(i));
      }
    }
    plan_.host_spans_.emplace_back(host_begin, static_cast<int32_t>(plan_.host_inputs_.size()));
    plan_.most_inputs = std::max(plan_.most_inputs, static_cast<int>(planned.num_inputs));
    index_of_node_[node.id()] = static_cast<int32_t>(plan_.nodes.size());
    plan_.nodes.push_back(planned);
    return absl::OkStatus();
  }

  void SetFlags(const Node& node, PlanNode& planned) {
    const OpDef& op = node.op();
    if (planned.kernel->async() != nullptr) {
      planned.flags |= PlanNode::kAsync;
      planned.async_index = static_cast<uint32_t>(plan_.num_async++);
    } else if (planned.kernel->IsExpensive()) {
      planned.flags |= PlanNode::kExpensive;
    }
    bool makes_some = op.Has(Trait::kAllocatesOutputs);
    for (uint32_t i = 0; i < planned.num_outputs; ++i) {
      makes_some = makes_some || plan_.slots[planned.first_output + i].made_by_kernel;
    }
    if (makes_some && planned.num_outputs > 0) planned.flags |= PlanNode::kCheckOutputs;
    if (!op.Has(Trait::kAllocatesOutputs) && planned.num_outputs > 0) {
      planned.flags |= PlanNode::kAllocate;
    }
    if (Changes(op)) NoteUpdate(node, planned);
    // Ops that draw numbers declare the public attribute; what else is stateful draws none.
    if (op.Has(Trait::kStateful) && op.FindAttr("seed") != nullptr) plan_.draws_random_ = true;
  }

  void NoteUpdate(const Node& node, PlanNode& planned) {
    planned.flags |= PlanNode::kUpdate;
    ++plan_.num_updates_;
    const size_t handles = node.op().Has(Trait::kOptimizerUpdate) ? node.inputs().size() : 1;
    for (size_t i = 0; i < handles && i < node.inputs().size(); ++i) {
      if (graph_.dtype(node.inputs()[i]) != DType::kResource) continue;
      const Node* origin = graph_.node(node.inputs()[i].node);
      while (!origin->op().Has(Trait::kVariable) && !origin->inputs().empty()) {
        origin = graph_.node(origin->inputs()[0].node);
      }
      if (!origin->op().Has(Trait::kVariable)) continue;  // an argument of a function
      std::string name = origin->attrs().GetOr<std::string>("shared_name", "");
      if (name.empty()) name = origin->name();
      std::pair key(origin->attrs().GetOr<std::string>("container", ""), std::move(name));
      auto& keys = plan_.updated_keys_;
      if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
      plan_.updated_names_.push_back(key.second);
      keys.push_back(std::move(key));
    }
  }

  void AddFetches() {
    std::vector<int> last(plan_.slots.size(), -1);  // by slot: its last fetch
    for (const Partition::Feed& fetch : plan_.partition_.fetches) {
      const SlotId slot = SlotOf(fetch.port);
      plan_.fetch_indices_.push_back(fetch.index);
      plan_.fetch_is_last.push_back(slot >= 0);
      if (slot >= 0) {
        plan_.slots[slot].never_in_place = true;
        if (last[slot] < 0) {
          ++plan_.initial_uses[slot];
        } else {
          plan_.fetch_is_last[last[slot]] = false;
        }
        last[slot] = static_cast<int>(plan_.fetch_slots.size());
      }
      plan_.fetch_slots.push_back(slot);
    }
  }

  void MarkUnread() {
    for (SlotId& slot : plan_.feed_slots) {
      if (plan_.initial_uses[slot] == 0) slot = CompiledPlan::kNoSlot;
    }
    for (PlanNode& planned : plan_.nodes) {
      for (uint32_t i = 0; i < planned.num_outputs; ++i) {
        if (plan_.initial_uses[planned.first_output + i] == 0) {
          planned.flags |= PlanNode::kDropOutputs;
        }
      }
    }
  }

  void MarkInPlace() {
    for (PlanNode& planned : plan_.nodes) {
      const Node& node = plan_.node(planned);
      if (!node.op().Has(Trait::kInPlace) || (planned.flags & PlanNode::kAllocate) == 0) continue;
      const PlanSlot& output = plan_.slots[planned.first_output];
      if (output.made_by_kernel || output.host_memory) continue;
      for (uint32_t i = 0; i < planned.num_inputs && i < 32; ++i) {
        const SlotId slot = plan_.input_slots[planned.first_input + i];
        if (slot < 0 || plan_.slots[slot].never_in_place || plan_.slots[slot].host_memory ||
            plan_.slots[slot].dtype != output.dtype || node.signature().host_inputs[i]) {
          continue;
        }
        planned.in_place_inputs |= 1u << i;
        planned.flags |= PlanNode::kInPlace;
      }
    }
  }

  // Each pair of nodes once, however many tensors and control edges go between them. What is fed
  // or constant is there from the start.
  void AddEdges() {
    const size_t count = plan_.nodes.size();
    plan_.initial_pending.assign(count, 0);
    std::vector<std::pair<int32_t, int32_t>> edges;
    std::vector<int32_t> before;
    for (size_t to = 0; to < count; ++to) {
      const Node& node = plan_.node(plan_.nodes[to]);
      before.clear();
      for (const Port& input : node.inputs()) before.push_back(index_of_node_[input.node]);
      for (NodeId control : node.control_inputs()) before.push_back(index_of_node_[control]);
      std::sort(before.begin(), before.end());
      before.erase(std::unique(before.begin(), before.end()), before.end());
      for (int32_t from : before) {
        if (from < 0) continue;
        edges.emplace_back(from, static_cast<int32_t>(to));
        ++plan_.initial_pending[to];
      }
    }
    for (const auto& [from, to] : edges) ++plan_.nodes[from].num_successors;
    uint32_t next = 0;
    for (PlanNode& planned : plan_.nodes) {
      planned.first_successor = next;
      next += planned.num_successors;
      planned.num_successors = 0;
    }
    plan_.successors.resize(edges.size());
    for (const auto& [from, to] : edges) {
      PlanNode& planned = plan_.nodes[from];
      plan_.successors[planned.first_successor + planned.num_successors++] = to;
    }
  }

  // What is known of an input's shape before any step: behind a handle, the variable's.
  const PartialShape& InputShape(const Node& node, size_t i) const {
    return graph_.shape(node.inputs()[i]);
  }

  // If shapes and host values of all inputs are known now, so is all that follows from them.
  // (Static shapes are held to at run time wherever a tensor enters: feeds, and kernels that make
  // their outputs.)
  Status FixShapes(PlanNode& planned) {
    const Node& node = plan_.node(planned);
    std::vector<Shape> shapes;
    std::vector<const Tensor*> values(node.inputs().size(), nullptr);
    bool is_fixed = true;
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      const SlotId slot = plan_.input_slots[planned.first_input + i];
      if (slot < 0) {
        values[i] = &plan_.constants[~slot];
        shapes.push_back(values[i]->shape());
        continue;
      }
      StatusOr<Shape> shape = InputShape(node, i).ToShape();
      if (node.signature().host_inputs[i] || !shape.ok()) is_fixed = false;
      if (!shape.ok() && graph_.dtype(node.inputs()[i]) == DType::kResource) {
        planned.flags |= PlanNode::kVariableShapes;
      }
      shapes.push_back(shape.ok() ? *shape : Shape());
    }
    if (!is_fixed) {
      planned.memo = &plan_.memos_.emplace_back();
      return absl::OkStatus();
    }
    StatusOr<std::unique_ptr<ShapeFacts>> facts = plan_.MakeFacts(planned, shapes, values);
    if (!facts.ok()) return plan_.NodeError(planned, facts.status(), {});
    for (size_t i = 0; i < (*facts)->outputs.size(); ++i) {
      const PartialShape& known = plan_.slot_shapes[planned.first_output + i];
      if (!known.IsCompatibleWith((*facts)->outputs[i])) {
        return plan_.NodeError(
            planned,
            Internal("output ", i, " has shape ", (*facts)->outputs[i].ToString(),
                     ", but the graph says ", known.ToString()),
            {});
      }
    }
    MakeCheapIfSmall(node, **facts, planned);
    planned.facts = &plan_.facts_.emplace_back(std::move(**facts));
    return absl::OkStatus();
  }

  // A kernel says whether it is expensive without knowing shapes.
  void MakeCheapIfSmall(const Node& node, const ShapeFacts& facts, PlanNode& planned) const {
    if ((planned.flags & PlanNode::kExpensive) == 0 || node.op().Has(Trait::kStateful) ||
        node.op().Has(Trait::kAllocatesOutputs) || Changes(node.op())) {
      return;
    }
    int64_t bytes = 0;
    for (size_t i = 0; i < facts.inputs.size() && bytes <= kInlineBytes; ++i) {
      bytes += LeastBytes(node.signature().inputs[i], facts.inputs[i]);
    }
    for (size_t i = 0; i < facts.outputs.size() && bytes <= kInlineBytes; ++i) {
      bytes += LeastBytes(node.output_dtype(static_cast<int>(i)), facts.outputs[i]);
    }
    if (bytes > kInlineBytes) return;
    if (node.op().cost_fn()) {
      const std::vector<PartialShape> inputs(facts.inputs.begin(), facts.inputs.end());
      ShapeContext context(node.attrs(), inputs, {}, node.signature().inputs, node.num_outputs());
      for (size_t i = 0; i < facts.outputs.size(); ++i) {
        context.set_output(static_cast<int>(i), facts.outputs[i]);
      }
      if (node.op().cost_fn()(context).flops > kInlineFlops) return;
    }
    planned.flags &= ~static_cast<uint32_t>(PlanNode::kExpensive);
  }

  void FindRoots() {
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      if (plan_.initial_pending[i] == 0) plan_.roots.push_back(static_cast<int32_t>(i));
    }
    std::stable_partition(plan_.roots.begin(), plan_.roots.end(), [&](int32_t i) {
      return (plan_.nodes[i].flags & PlanNode::kAsync) != 0;
    });
  }

  CompiledPlan& plan_;
  const Graph& graph_;
  const KernelRegistry& kernels_;
  bool host_memory_ = true;
  std::vector<SlotId> slot_of_output_;  // by node id: of output 0
  std::vector<int32_t> index_of_node_;  // by node id: into plan_.nodes, -1 for fed and constant
};

StatusOr<std::unique_ptr<ExecutionPlan>> ExecutionPlan::Create(Partition partition, Device& device,
                                                               const KernelRegistry& kernels) {
  auto plan = std::make_unique<CompiledPlan>(std::move(partition), device);
  MR_RETURN_IF_ERROR(PlanCompiler(*plan, kernels).Run());
  return std::unique_ptr<ExecutionPlan>(std::move(plan));
}

}  // namespace millrace
