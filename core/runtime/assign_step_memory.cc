#include <algorithm>
#include <limits>
#include <numeric>

#include "core/runtime/byte_text.h"
#include "core/runtime/memory_plan.h"
#include "core/runtime/step_memory.h"

namespace millrace {
namespace {

constexpr int32_t kNone = -1;

bool MayKeepInputs(const PlanNode& planned, const OpDef& op) {
  return (planned.flags & PlanNode::kAsync) != 0 || op.Has(Trait::kSend) ||
         (op.Has(Trait::kWritesVariable) && !op.Has(Trait::kOptimizerUpdate));
}

class Assignment {
 public:
  explicit Assignment(CompiledPlan& plan) : plan_(plan) {}

  void Run() {
    Connect();
    MarkKept();
    for (size_t i = 0; i < plan_.nodes.size(); ++i) AddValues(static_cast<int32_t>(i));
    const MemoryPlan memory = PlanMemory(Predecessors(), values_);
    constexpr int64_t kLine = Allocator::kAlignment;
    if (memory.bytes / kLine > std::numeric_limits<int32_t>::max()) return;
    plan_.memory_bytes = memory.bytes;
    for (size_t i = 0; i < values_.size(); ++i) {
      plan_.slots[slot_of_value_[i]].memory_line = static_cast<int32_t>(memory.offsets[i] / kLine);
    }
    for (PlanNode& planned : plan_.nodes) SettleInPlace(planned, memory);
  }

 private:
  const Node& NodeOf(const PlanNode& planned) const { return plan_.node(planned); }

  // Slots under which the same memory may be seen are one group; who made and who reads each.
  void Connect() {
    const size_t count = plan_.slots.size();
    producer_.assign(count, kNone);
    readers_.resize(count);
    alias_of_.assign(count, kNone);
    value_of_.assign(count, kNone);
    group_.resize(count);
    std::iota(group_.begin(), group_.end(), 0);
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      const PlanNode& planned = plan_.nodes[i];
      const bool passes_on = NodeOf(planned).op().Has(Trait::kAllocatesOutputs);
      for (uint32_t j = 0; j < planned.num_outputs; ++j) {
        producer_[planned.first_output + j] = static_cast<int32_t>(i);
      }
      for (uint32_t k = 0; k < planned.num_inputs; ++k) {
        const SlotId input = plan_.input_slots[planned.first_input + k];
        if (input < 0) continue;
        readers_[input].push_back(static_cast<int32_t>(i));
        if (plan_.slots[input].dtype == DType::kResource) continue;
        for (uint32_t j = 0; passes_on && j < planned.num_outputs; ++j) {
          group_[Group(planned.first_output + j)] = Group(input);
        }
      }
      if (passes_on) NoteAlias(planned);
    }
  }

  // The one output is the one input under another shape, or memory that nobody else knows.
  void NoteAlias(const PlanNode& planned) {
    const Node& node = NodeOf(planned);
    if (planned.num_outputs != 1 || node.op().Has(Trait::kStateful)) return;
    SlotId only = kNone;
    for (uint32_t k = 0; k < planned.num_inputs; ++k) {
      if (node.signature().host_inputs[k]) continue;
      const SlotId input = plan_.input_slots[planned.first_input + k];
      if (input < 0 || only != kNone) return;
      only = input;
    }
    alias_of_[planned.first_output] = only;
  }

  SlotId Group(SlotId slot) {
    while (group_[slot] != slot) slot = group_[slot] = group_[group_[slot]];
    return slot;
  }

  void MarkKept() {
    is_kept_.assign(plan_.slots.size(), false);
    for (SlotId slot : plan_.fetch_slots) {
      if (slot >= 0) is_kept_[Group(slot)] = true;
    }
    for (const PlanNode& planned : plan_.nodes) {
      if (!MayKeepInputs(planned, NodeOf(planned).op())) continue;
      for (uint32_t k = 0; k < planned.num_inputs; ++k) {
        const SlotId slot = plan_.input_slots[planned.first_input + k];
        if (slot >= 0) is_kept_[Group(slot)] = true;
      }
    }
    for (size_t i = plan_.nodes.size(); i-- > 0;) KeepWhatItTakes(plan_.nodes[i]);
    group_readers_.resize(plan_.slots.size());
    for (size_t slot = 0; slot < plan_.slots.size(); ++slot) {
      std::vector<int32_t>& all = group_readers_[Group(static_cast<SlotId>(slot))];
      all.insert(all.end(), readers_[slot].begin(), readers_[slot].end());
    }
  }

  // What is kept had better be made in the buffer of an input, as ever, than in one more.
  void KeepWhatItTakes(const PlanNode& planned) {
    if (planned.in_place_inputs == 0 || planned.facts == nullptr) return;
    if (!is_kept_[Group(planned.first_output)]) return;
    for (uint32_t left = planned.in_place_inputs; left != 0; left &= left - 1) {
      const int k = __builtin_ctz(left);
      const SlotId input = plan_.input_slots[planned.first_input + k];
      if (readers_[input].size() != 1 || ReadsVariable(input) ||
          planned.facts->inputs[k].num_elements() != planned.facts->outputs[0].num_elements()) {
        continue;
      }
      is_kept_[Group(input)] = true;
      return;
    }
  }

  // The value that the slot shows, if it lies in the step's memory.
  int32_t ValueOf(SlotId slot) const {
    while (value_of_[slot] == kNone && alias_of_[slot] != kNone) slot = alias_of_[slot];
    return value_of_[slot];
  }

  bool ReadsVariable(SlotId slot) const {
    while (alias_of_[slot] != kNone) slot = alias_of_[slot];
    return producer_[slot] != kNone &&
           NodeOf(plan_.nodes[producer_[slot]]).op().Has(Trait::kReadsVariable);
  }

  int TimesRead(const PlanNode& planned, int32_t value) const {
    int times = 0;
    for (uint32_t k = 0; k < planned.num_inputs; ++k) {
      const SlotId input = plan_.input_slots[planned.first_input + k];
      if (input >= 0 && ValueOf(input) == value) ++times;
    }
    return times;
  }

  void AddValues(int32_t index) {
    PlanNode& planned = plan_.nodes[index];
    if (planned.facts == nullptr || (planned.flags & PlanNode::kAllocate) == 0) return;
    PlannedValue first;
    for (uint32_t left = planned.in_place_inputs; left != 0; left &= left - 1) {
      const int k = __builtin_ctz(left);
      const SlotId input = plan_.input_slots[planned.first_input + k];
      const int32_t value = ValueOf(input);
      if (value != kNone) {
        if (TimesRead(planned, value) == 1) first.in_place_of.push_back(value);
        planned.in_place_inputs &= ~(1u << k);
      } else if (ReadsVariable(input)) {
        planned.in_place_inputs &= ~(1u << k);  // the variable holds it too
      }
    }
    for (uint32_t j = 0; j < planned.num_outputs; ++j) {
      const SlotId slot = planned.first_output + static_cast<SlotId>(j);
      const PlanSlot& output = plan_.slots[slot];
      PlannedValue value;
      if (j == 0) value = std::move(first);
      value.bytes = LeastBytes(output.dtype, planned.facts->outputs[j]);
      if (output.made_by_kernel || output.host_memory || value.bytes == 0 ||
          is_kept_[Group(slot)] || (j == 0 && planned.in_place_inputs != 0)) {
        continue;
      }
      value.producer = index;
      value.readers = group_readers_[Group(slot)];
      std::erase_if(value.in_place_of,
                    [&](int32_t old) { return values_[old].bytes != value.bytes; });
      value_of_[slot] = static_cast<int32_t>(values_.size());
      slot_of_value_.push_back(slot);
      values_.push_back(std::move(value));
    }
  }

  std::vector<std::vector<int32_t>> Predecessors() const {
    std::vector<std::vector<int32_t>> predecessors(plan_.nodes.size());
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      const PlanNode& planned = plan_.nodes[i];
      for (uint32_t j = 0; j < planned.num_successors; ++j) {
        predecessors[plan_.successors[planned.first_successor + j]].push_back(
            static_cast<int32_t>(i));
      }
    }
    return predecessors;
  }

  void SettleInPlace(PlanNode& planned, const MemoryPlan& memory) {
    const int32_t value = planned.num_outputs == 0 ? kNone : value_of_[planned.first_output];
    const int32_t old = value == kNone ? kNone : memory.takes_over[value];
    planned.flags &= ~static_cast<uint32_t>(PlanNode::kInPlace);
    if (old == kNone) {
      if (planned.in_place_inputs != 0) planned.flags |= PlanNode::kInPlace;
      return;
    }
    planned.flags |= PlanNode::kTakesInput;
    for (uint32_t k = 0; k < planned.num_inputs; ++k) {
      const SlotId input = plan_.input_slots[planned.first_input + k];
      if (input >= 0 && ValueOf(input) == old) planned.in_place_inputs = k;
    }
  }

  CompiledPlan& plan_;
  std::vector<int32_t> producer_;  // by slot: node index, kNone if fed
  std::vector<std::vector<int32_t>> readers_;
  std::vector<SlotId> alias_of_;  // by slot, or kNone
  std::vector<SlotId> group_;     // by slot: towards the one that stands for its group
  std::vector<bool> is_kept_;     // by slot that stands for a group
  std::vector<std::vector<int32_t>> group_readers_;  // likewise
  std::vector<int32_t> value_of_;                    // by slot
  std::vector<SlotId> slot_of_value_;
  std::vector<PlannedValue> values_;
};

}  // namespace

void AssignStepMemory(CompiledPlan& plan) {
  if (plan.nodes.size() <= static_cast<size_t>(kMostPlannedNodes)) Assignment(plan).Run();
}

}  // namespace millrace
