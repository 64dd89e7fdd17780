#ifndef CORE_RUNTIME_STEP_MEMORY_H_
#define CORE_RUNTIME_STEP_MEMORY_H_

#include "core/runtime/compiled_plan.h"
#include "core/runtime/step_state.h"

namespace millrace {

// Decides which outputs lie where in a step's one piece of memory: sets PlanSlot::memory_line,
// CompiledPlan::memory_bytes and who takes over an input. Left to the allocator are outputs whose
// size is not known before the step, those that may be kept beyond the life that the plan sees
// (fetched, sent, assigned to a variable), those whose buffers will likely go on to one of these or
// come from an input that is not in the plan, and all outputs of a plan beyond kMostPlannedNodes.
// REQUIRES: the plan is complete but for this.
void AssignStepMemory(CompiledPlan& plan);

// The step's piece of memory. If there is none to be had, the step runs without: each output is
// then allocated as it is made, and an error names the one for which there was no memory.
void BeginStepMemory(const CompiledPlan& plan, Allocator& allocator, StepState& step);

// Gives the piece back. Internal if somebody still refers to it after a step that has succeeded:
// an op that keeps an input or passes it on without its trait saying so.
Status EndStepMemory(StepState& step);

// Memory for the outputs of a node: its place in the step's, the buffer of an input that nobody
// else will read, or the allocator's.
Status AllocateOutputs(const CompiledPlan& plan, Allocator& allocator, const PlanNode& node,
                       const ShapeFacts& facts, Tensor** inputs, StepState& step);

}  // namespace millrace

#endif  // CORE_RUNTIME_STEP_MEMORY_H_
