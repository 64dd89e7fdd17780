#ifndef CORE_RUNTIME_COMPILED_PLAN_H_
#define CORE_RUNTIME_COMPILED_PLAN_H_

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/runtime/execution_plan.h"
#include "core/runtime/shape_memo.h"

namespace millrace {

// The value of a node output during a step, by number. Negative: constant ~number of the plan.
using SlotId = int32_t;

// What a step reads for each node, in one cache line. Spans are indices into the plan's arrays.
struct PlanNode {
  enum Flag : uint32_t {
    kExpensive = 1 << 0,       // worth a task of its own
    kAsync = 1 << 1,           // completes later
    kAllocate = 1 << 2,        // the executor allocates the outputs
    kInPlace = 1 << 3,         // some input may give output 0 its buffer (in_place_inputs)
    kCheckOutputs = 1 << 4,    // the kernel makes outputs: look at what it made
    kUpdate = 1 << 5,          // changes variables
    kDropOutputs = 1 << 6,     // some output has no reader
    kVariableShapes = 1 << 7,  // the shape behind some handle is known at run time only
    kTakesInput = 1 << 8,      // output 0 takes over the memory of input in_place_inputs
  };
  const Kernel* kernel = nullptr;
  const ShapeFacts* facts = nullptr;  // if nothing is left to find out at run time
  ShapeMemo* memo = nullptr;          // else
  uint32_t flags = 0;
  uint32_t first_input = 0;
  uint32_t num_inputs = 0;
  SlotId first_output = 0;
  uint32_t num_outputs = 0;
  uint32_t first_successor = 0;
  uint32_t num_successors = 0;
  uint32_t async_index = 0;
  uint32_t in_place_inputs = 0;  // bit i: input i, of the first 32; with kTakesInput: which input
  NodeId id = -1;
};

// What is known of an output at compile time, but for its shape (slot_shapes). Small, as a step
// reads it for each output.
struct PlanSlot {
  DType dtype = DType::kInvalid;
  bool made_by_kernel = false;  // strings, resources: nothing can be allocated for them
  bool host_memory = false;     // on a device whose own memory is not the host's
  bool never_in_place = false;  // fed or fetched: not ours to overwrite
  int32_t memory_line = -1;     // its place in the step's memory, in lines of kAlignment bytes
};

// The one implementation of ExecutionPlan. Public arrays: the executor's inner loop reads them.
class CompiledPlan final : public ExecutionPlan {
 public:
  CompiledPlan(Partition partition, Device& device)
      : partition_(std::move(partition)), device_(device) {}

  const DeviceName& device_name() const override { return partition_.device; }
  int num_nodes() const override { return static_cast<int>(nodes.size()); }
  absl::Span<const int> feed_indices() const override { return feed_indices_; }
  absl::Span<const int> fetch_indices() const override { return fetch_indices_; }
  DType feed_dtype(int i) const override { return graph().dtype(partition_.feeds[i].port); }
  const PartialShape& feed_shape(int i) const override {
    return graph().shape(partition_.feeds[i].port);
  }
  absl::Span<const std::string> updated_variables() const override { return updated_names_; }
  int num_updates() const override { return num_updates_; }
  void MarkTorn(uint64_t step) const override;
  bool draws_random() const override { return draws_random_; }
  int64_t planned_bytes() const override { return memory_bytes; }
  int64_t prepared_count() const override {
    return prepared_count_.load(std::memory_order_relaxed);
  }

  const Graph& graph() const { return partition_.graph; }
  Device& device() const { return device_; }
  const Node& node(const PlanNode& planned) const { return *graph().node(planned.id); }
  const std::string& feed_name(int i) const {
    return graph().node(partition_.feeds[i].port.node)->name();
  }
  // InvalidArgument, naming the feed, unless there is a tensor for each feed that fits.
  Status CheckFeeds(absl::Span<const Tensor> feeds) const;
  static size_t MemoryOffset(const PlanSlot& slot) {
    return static_cast<size_t>(slot.memory_line) * Allocator::kAlignment;
  }
  // The indices of a node's host inputs.
  absl::Span<const int32_t> HostInputs(const PlanNode& planned) const;
  // Runs shape function and Prepare. `shapes` of all inputs (behind handles: of the variables),
  // `inputs` with values where they are known, null elsewhere.
  StatusOr<std::unique_ptr<ShapeFacts>> MakeFacts(const PlanNode& planned,
                                                  absl::Span<const Shape> shapes,
                                                  absl::Span<const Tensor* const> inputs) const;
  // `status` of a node: "<op> '<node>' on <device>: <message> (inputs: float[2,3])".
  Status NodeError(const PlanNode& planned, const Status& status,
                   absl::Span<const Tensor* const> inputs) const;

  std::vector<PlanNode> nodes;      // in topological order
  std::vector<SlotId> input_slots;  // PlanNode::first_input
  std::vector<int32_t> successors;  // PlanNode::first_successor: indices into nodes
  std::vector<PlanSlot> slots;
  std::vector<PartialShape> slot_shapes;  // by slot: the static ones
  std::vector<Tensor> constants;
  std::vector<int32_t> initial_pending;  // by node: predecessors
  std::vector<int32_t> initial_uses;     // by slot: readers, and one more if it is fetched
  std::vector<int32_t> roots;            // wait for nothing; asynchronous ones first
  std::vector<SlotId> feed_slots;        // kNoSlot: read by none
  std::vector<SlotId> fetch_slots;
  std::vector<bool> fetch_is_last;  // of this slot: no later fetch needs it
  int64_t memory_bytes = 0;         // of the step's memory, in which some outputs have their place
  int num_async = 0;
  int most_inputs = 0;  // of a node
  static constexpr SlotId kNoSlot = INT32_MAX;

 private:
  friend class PlanCompiler;
  const Partition partition_;
  Device& device_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::deque<ShapeMemo> memos_;
  std::deque<ShapeFacts> facts_;
  std::vector<int32_t> host_inputs_;                     // of nodes that have some
  std::vector<std::pair<int32_t, int32_t>> host_spans_;  // by node: into host_inputs_
  std::vector<int> feed_indices_;
  std::vector<int> fetch_indices_;
  std::vector<std::string> updated_names_;
  std::vector<std::pair<std::string, std::string>> updated_keys_;  // container and name
  int num_updates_ = 0;
  bool draws_random_ = false;
  mutable std::atomic<int64_t> prepared_count_{0};
};

}  // namespace millrace

#endif  // CORE_RUNTIME_COMPILED_PLAN_H_
