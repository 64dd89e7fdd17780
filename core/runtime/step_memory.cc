#include "core/runtime/step_memory.h"

#include <atomic>
#include <memory>
#include <utility>

namespace millrace {
namespace {

// Gives output 0 the buffer of an input that nobody else will read.
bool TakeInput(const CompiledPlan& plan, const PlanNode& node, const Shape& shape, Tensor** inputs,
               StepState& step) {
  const SlotId* slots = plan.input_slots.data() + node.first_input;
  for (uint32_t left = node.in_place_inputs; left != 0; left &= left - 1) {
    const int i = __builtin_ctz(left);
    if (std::atomic_ref<int32_t>(step.uses[slots[i]]).load(std::memory_order_acquire) != 1) {
      continue;
    }
    Tensor& input = *inputs[i];
    Tensor& output = step.slots[node.first_output];
    if (input.num_elements() != shape.num_elements() || !input.OwnsWholeBuffer()) continue;
    if (input.shape() == shape) {
      // The kernel reads its input where its output is.
      std::construct_at(&output, std::move(input));
      inputs[i] = &output;
    } else {
      std::construct_at(&output, input.Reshaped(shape));
    }
    return true;
  }
  return false;
}

// The same for an input that, by the plan, nobody else reads any more.
void TakePlannedInput(const PlanNode& node, const Shape& shape, Tensor** inputs, StepState& step) {
  Tensor& input = *inputs[node.in_place_inputs];
  Tensor& output = step.slots[node.first_output];
  if (input.shape() == shape) {
    std::construct_at(&output, std::move(input));
    inputs[node.in_place_inputs] = &output;
  } else {
    std::construct_at(&output, input.Reshaped(shape));
  }
}

}  // namespace

void BeginStepMemory(const CompiledPlan& plan, Allocator& allocator, StepState& step) {
  if (plan.memory_bytes == 0) return;
  StatusOr<Shape> shape = Shape::Create({plan.memory_bytes});
  if (!shape.ok()) return;
  StatusOr<Tensor> memory = Tensor::Allocate(allocator, DType::kUint8, *shape);
  if (memory.ok()) step.memory = *std::move(memory);
}

Status EndStepMemory(StepState& step) {
  if (!step.memory.valid()) return absl::OkStatus();
  const Tensor memory = std::exchange(step.memory, Tensor());
  if (memory.OwnsWholeBuffer()) return absl::OkStatus();
  return Internal("a kernel keeps a part of the step's memory (", memory.byte_size(),
                  " bytes) beyond the step");
}

Status AllocateOutputs(const CompiledPlan& plan, Allocator& allocator, const PlanNode& node,
                       const ShapeFacts& facts, Tensor** inputs, StepState& step) {
  Tensor* outputs = step.slots.get() + node.first_output;
  const PlanSlot* planned = plan.slots.data() + node.first_output;
  uint32_t i = 0;
  if ((node.flags & PlanNode::kTakesInput) != 0) {
    TakePlannedInput(node, facts.outputs[0], inputs, step);
    i = 1;
  } else if ((node.flags & PlanNode::kInPlace) != 0 &&
             TakeInput(plan, node, facts.outputs[0], inputs, step)) {
    i = 1;
  }
  for (; i < node.num_outputs; ++i) {
    if (planned[i].made_by_kernel) continue;
    // Slots are empty until their node runs.
    if (planned[i].memory_line >= 0 && step.memory.valid()) {
      std::construct_at(&outputs[i], step.memory.View(plan.MemoryOffset(planned[i]),
                                                      planned[i].dtype, facts.outputs[i]));
      continue;
    }
    Allocator& source = planned[i].host_memory ? HostAllocator() : allocator;
    StatusOr<Tensor> made = Tensor::Allocate(source, planned[i].dtype, facts.outputs[i]);
    if (!made.ok()) return std::move(made).status();
    std::construct_at(&outputs[i], *std::move(made));
  }
  return absl::OkStatus();
}

}  // namespace millrace
