#include "core/runtime/executor.h"

#include <utility>

#include "absl/container/inlined_vector.h"
#include "core/base/mutex.h"
#include "core/framework/resource.h"
#include "core/runtime/compiled_plan.h"
#include "core/runtime/step_memory.h"
#include "core/runtime/step_state.h"

namespace millrace {
namespace {

constexpr int32_t kNone = -1;

// One less; true if none is left. Mostly nobody else counts any more: then no bus is locked.
inline bool CountDown(int32_t& count) {
  std::atomic_ref<int32_t> atomic(count);
  return atomic.load(std::memory_order_acquire) == 1 ||
         atomic.fetch_sub(1, std::memory_order_acq_rel) == 1;
}

inline void Drop(Tensor& tensor) {
  if (!tensor.valid()) return;  // its buffer was taken
  std::destroy_at(&tensor);
  std::construct_at(&tensor);
}

// Ready nodes of one thread: a stack of cheap ones, and one expensive one to go on with.
struct ReadyNodes {
  int32_t cheap = kNone;
  int32_t expensive = kNone;
  int64_t now = 0;  // only with an observer: when the last kernel ended
};

using Inputs = absl::InlinedVector<Tensor*, 16>;

}  // namespace

class Executor::Impl {
 public:
  Impl(const CompiledPlan& plan, Scheduler& scheduler)
      : plan_(plan), scheduler_(scheduler), allocator_(plan.device().allocator()) {}

  void Run(ExecutorRun run, Done done) {
    Status fit = plan_.CheckFeeds(run.feeds);
    if (!fit.ok()) {
      if (run.context.cancellation != nullptr) run.context.cancellation->Cancel(fit);
      if (run.context.rendezvous != nullptr) run.context.rendezvous->Abort(fit);
      std::move(done)(std::move(fit), {});
      return;
    }
    StepState& step = *TakeState().release();
    step.Begin(plan_);
    BeginStepMemory(plan_, allocator_, step);
    step.run = std::move(run);
    step.run.context.device = &plan_.device();
    step.done = std::move(done);
    for (size_t i = 0; i < step.run.feeds.size(); ++i) {
      const SlotId slot = plan_.feed_slots[i];
      if (slot != CompiledPlan::kNoSlot) step.slots[slot] = std::move(step.run.feeds[i]);
    }
    if (step.run.observer != nullptr) PrepareObservation(step);
    if (step.run.context.cancellation != nullptr) {
      step.cancel_id = step.run.context.cancellation->OnCancel(
          [s = &step](const Status& reason) { OnCancelled(*s, reason); });
    }
    if (step.run.caller_runs) {
      StartRoots(step);
    } else {
      scheduler_.Schedule([s = &step] { Of(*s).StartRoots(*s); });
    }
  }

 private:
  static Impl& Of(StepState& step) { return *static_cast<Impl*>(step.executor); }

  std::unique_ptr<StepState> TakeState() {
    {
      MutexLock lock(mutex_);
      if (!free_.empty()) {
        std::unique_ptr<StepState> state = std::move(free_.back());
        free_.pop_back();
        return state;
      }
    }
    auto state = std::make_unique<StepState>(plan_);
    state->executor = this;
    return state;
  }

  void PrepareObservation(StepState& step) {
    if (step.ready_nanos == nullptr) {
      step.ready_nanos = std::make_unique<int64_t[]>(plan_.nodes.size());
    }
    const int64_t now = step.run.clock->NowNanos();
    for (int32_t root : plan_.roots) step.ready_nanos[root] = now;
  }

  void StartRoots(StepState& step) {
    ReadyNodes ready;
    // A stack: the first root, which may be one that waits for others, is started first.
    for (size_t i = plan_.roots.size(); i-- > 0;) Push(step, plan_.roots[i], ready);
    Loop(step, ready);
  }

  // Takes a node that has become ready.
  void Push(StepState& step, int32_t index, ReadyNodes& ready) {
    if ((plan_.nodes[index].flags & PlanNode::kExpensive) == 0) {
      step.next[index] = ready.cheap;
      ready.cheap = index;
    } else if (ready.expensive == kNone) {
      ready.expensive = index;
    } else {
      step.activities.fetch_add(1, std::memory_order_relaxed);
      scheduler_.Schedule([s = &step, index] {
        ReadyNodes own;
        own.expensive = index;
        Of(*s).Loop(*s, own);
      });
    }
  }

  // Runs nodes until this thread has none; then ends one activity.
  void Loop(StepState& step, ReadyNodes ready) {
    Inputs inputs(plan_.most_inputs);
    if (step.run.observer != nullptr) ready.now = step.run.clock->NowNanos();
    while (!step.stopped.load(std::memory_order_relaxed)) {
      int32_t index = ready.cheap;
      if (index != kNone) {
        ready.cheap = step.next[index];
      } else if (ready.expensive != kNone) {
        index = std::exchange(ready.expensive, kNone);
      } else {
        break;
      }
      const PlanNode& node = plan_.nodes[index];
      if ((node.flags & PlanNode::kAsync) != 0) {
        StartAsync(step, index, ready);
      } else if (RunNode(step, index, node, inputs.data(), ready)) {
        Complete(step, node, ready);
      }
    }
    EndActivity(step);
  }

  Tensor* Input(StepState& step, SlotId slot) const {
    // Kernels only read inputs, so constants may stand in for slots.
    return slot >= 0 ? &step.slots[slot] : const_cast<Tensor*>(&plan_.constants[~slot]);
  }

  // Finds the inputs, what their shapes imply, and memory for the outputs. `own` keeps facts that
  // the memo has no room for.
  Status Ready(StepState& step, const PlanNode& node, Tensor** inputs, const ShapeFacts*& facts,
               std::unique_ptr<ShapeFacts>& own) {
    const SlotId* slots = plan_.input_slots.data() + node.first_input;
    for (uint32_t i = 0; i < node.num_inputs; ++i) inputs[i] = Input(step, slots[i]);
    facts = node.facts;
    if (facts == nullptr) {
      MR_RETURN_IF_ERROR(FindFacts(node, absl::MakeConstSpan(inputs, node.num_inputs), facts, own));
    }
    if ((node.flags & PlanNode::kAllocate) == 0) return absl::OkStatus();
    return AllocateOutputs(plan_, allocator_, node, *facts, inputs, step);
  }

  // False if the step has failed.
  bool RunNode(StepState& step, int32_t index, const PlanNode& node, Tensor** inputs,
               ReadyNodes& ready) {
    const ShapeFacts* facts = nullptr;
    std::unique_ptr<ShapeFacts> own;
    Status status = Ready(step, node, inputs, facts, own);
    if (status.ok()) {
      KernelContext context(step.run.context, absl::MakeConstSpan(inputs, node.num_inputs),
                            absl::MakeSpan(step.slots.get() + node.first_output, node.num_outputs),
                            facts->prepared.get());
      status = node.kernel->Compute(context);
    }
    if (!Accept(step, node, status, inputs)) return false;
    if (step.run.observer != nullptr) {
      const int64_t start = ready.now;
      ready.now = step.run.clock->NowNanos();
      Observe(step, index, start, ready.now);
    }
    return true;
  }

  // What a finished kernel left behind: whether the step goes on.
  bool Accept(StepState& step, const PlanNode& node, Status& status, Tensor* const* inputs) {
    if ((node.flags & (PlanNode::kCheckOutputs | PlanNode::kUpdate)) != 0 && status.ok()) {
      if ((node.flags & PlanNode::kCheckOutputs) != 0) status = CheckOutputs(step, node);
      if ((node.flags & PlanNode::kUpdate) != 0 && step.run.updates != nullptr) {
        step.run.updates->finished.fetch_add(1, std::memory_order_acq_rel);
      }
    }
    if (status.ok()) return true;
    Fail(step, plan_.NodeError(node, status, absl::MakeConstSpan(inputs, node.num_inputs)));
    return false;
  }

  // Readers trust dtypes and static shapes, whoever sent the tensor.
  Status CheckOutputs(StepState& step, const PlanNode& node) const {
    for (uint32_t i = 0; i < node.num_outputs; ++i) {
      const Tensor& output = step.slots[node.first_output + i];
      const DType dtype = plan_.slots[node.first_output + i].dtype;
      const PartialShape& shape = plan_.slot_shapes[node.first_output + i];
      if (output.dtype() == dtype &&
          (dtype == DType::kResource || shape.IsCompatibleWith(output.shape()))) {
        continue;
      }
      if (!output.valid()) return Internal("the kernel set no output ", i);
      return Internal("output ", i, " is ", Name(output.dtype()), output.shape().ToString(),
                      ", but the graph says ", Name(dtype), shape.ToString());
    }
    return absl::OkStatus();
  }

  // The shapes behind handles of variables that were declared with a partial shape.
  static Status VariableShapes(absl::Span<Tensor* const> inputs, std::vector<Shape>& shapes) {
    for (const Tensor* input : inputs) {
      shapes.push_back(input->shape());
      if (input->dtype() != DType::kResource) continue;
      const auto* variable = dynamic_cast<const Variable*>(input->resource().get());
      if (variable == nullptr) continue;
      if (StatusOr<Shape> shape = variable->shape().ToShape(); shape.ok()) {
        shapes.back() = *shape;
      } else if (StatusOr<Tensor> value = variable->Read(); value.ok()) {
        shapes.back() = value->shape();
      }
    }
    return absl::OkStatus();
  }

  Status FindFacts(const PlanNode& node, absl::Span<Tensor* const> inputs, const ShapeFacts*& facts,
                   std::unique_ptr<ShapeFacts>& own) {
    const absl::Span<const int32_t> host = plan_.HostInputs(node);
    const int count = static_cast<int>(inputs.size());
    std::vector<Shape> shapes;
    if ((node.flags & PlanNode::kVariableShapes) != 0) {
      MR_RETURN_IF_ERROR(VariableShapes(inputs, shapes));
      facts = node.memo->Find(
          count, [&](int i) -> const Shape& { return shapes[i]; }, inputs, host);
    } else {
      facts = node.memo->Find(
          count, [&](int i) -> const Shape& { return inputs[i]->shape(); }, inputs, host);
    }
    if (facts != nullptr) return absl::OkStatus();
    return MissFacts(node, inputs, std::move(shapes), facts, own);
  }

  Status MissFacts(const PlanNode& node, absl::Span<Tensor* const> inputs,
                   std::vector<Shape> shapes, const ShapeFacts*& facts,
                   std::unique_ptr<ShapeFacts>& own) {
    if (shapes.empty()) {
      for (const Tensor* input : inputs) shapes.push_back(input->shape());
    }
    MR_ASSIGN_OR_RETURN(own, plan_.MakeFacts(node, shapes, inputs));
    facts = node.memo->Add(own);
    return absl::OkStatus();
  }

  // Lets go of what the node read, and hands on what it made.
  void Complete(StepState& step, const PlanNode& node, ReadyNodes& ready) {
    const SlotId* slots = plan_.input_slots.data() + node.first_input;
    for (uint32_t i = 0; i < node.num_inputs; ++i) {
      if (slots[i] >= 0 && CountDown(step.uses[slots[i]])) Drop(step.slots[slots[i]]);
    }
    if ((node.flags & PlanNode::kDropOutputs) != 0) {
      for (uint32_t i = 0; i < node.num_outputs; ++i) {
        const SlotId slot = node.first_output + static_cast<SlotId>(i);
        if (plan_.initial_uses[slot] == 0) Drop(step.slots[slot]);
      }
    }
    const int32_t* successors = plan_.successors.data() + node.first_successor;
    for (uint32_t i = 0; i < node.num_successors; ++i) {
      const int32_t successor = successors[i];
      if (!CountDown(step.pending[successor])) continue;
      if (step.run.observer != nullptr) step.ready_nanos[successor] = ready.now;
      Push(step, successor, ready);
    }
  }

  void StartAsync(StepState& step, int32_t index, ReadyNodes& ready) {
    const PlanNode& node = plan_.nodes[index];
    AsyncRun& run = step.async[node.async_index];
    run.step = &step;
    run.node = index;
    run.status = absl::OkStatus();
    run.inputs.resize(node.num_inputs);
    run.start_nanos = ready.now;
    const ShapeFacts* facts = nullptr;
    Status status = Ready(step, node, run.inputs.data(), facts, run.own_facts);
    if (!status.ok()) {
      Accept(step, node, status, run.inputs.data());
      return;
    }
    run.context.emplace(step.run.context, absl::MakeConstSpan(run.inputs),
                        absl::MakeSpan(step.slots.get() + node.first_output, node.num_outputs),
                        facts->prepared.get());
    run.phase.store(AsyncRun::kStarting, std::memory_order_relaxed);
    step.activities.fetch_add(1, std::memory_order_relaxed);
    node.kernel->async()->ComputeAsync(
        *run.context, [r = &run](Status result) { EndAsync(*r, std::move(result)); });
    if (run.phase.exchange(AsyncRun::kStarted, std::memory_order_acq_rel) == AsyncRun::kDone) {
      // Done within the call: no thread is changed and no stack grows.
      step.activities.fetch_sub(1, std::memory_order_relaxed);
      FinishAsync(run, ready);
    }
  }

  // The kernel's `done`, on any thread: perhaps one that holds locks or is deep in another step.
  static void EndAsync(AsyncRun& run, Status status) {
    StepState& step = *run.step;
    run.status = std::move(status);
    if (step.run.observer != nullptr) run.end_nanos = step.run.clock->NowNanos();
    if (run.phase.exchange(AsyncRun::kDone, std::memory_order_acq_rel) == AsyncRun::kStarting) {
      return;
    }
    Of(step).scheduler_.Schedule([r = &run] {
      ReadyNodes ready;
      Impl& impl = Of(*r->step);
      StepState& step = *r->step;
      impl.FinishAsync(*r, ready);
      impl.Loop(step, ready);
    });
  }

  void FinishAsync(AsyncRun& run, ReadyNodes& ready) {
    StepState& step = *run.step;
    const PlanNode& node = plan_.nodes[run.node];
    run.context.reset();
    run.own_facts.reset();
    if (!Accept(step, node, run.status, run.inputs.data())) return;
    if (step.run.observer != nullptr) {
      ready.now = std::max(ready.now, run.end_nanos);
      Observe(step, run.node, run.start_nanos, run.end_nanos);
    }
    Complete(step, node, ready);
  }

  void Observe(StepState& step, int32_t index, int64_t start, int64_t end) const {
    const PlanNode& node = plan_.nodes[index];
    int64_t bytes = 0;
    for (uint32_t i = 0; i < node.num_outputs; ++i) {
      bytes += static_cast<int64_t>(step.slots[node.first_output + i].byte_size());
    }
    step.run.observer->OnKernel(plan_.device_name(), plan_.node(node), step.ready_nanos[index],
                                start, end, bytes);
  }

  // The first error of the step on this device: stops it here and everywhere.
  static void Fail(StepState& step, const Status& error) {
    if (!SetError(step, error)) return;
    if (step.run.context.cancellation != nullptr) step.run.context.cancellation->Cancel(error);
    if (step.run.context.rendezvous != nullptr) step.run.context.rendezvous->Abort(error);
  }

  // Others have cancelled the step; or Fail has, within its call. The run cannot end meanwhile:
  // its end waits in Cancellation::Remove.
  static void OnCancelled(StepState& step, const Status& reason) {
    SetError(step, reason);
    if (step.run.context.rendezvous != nullptr) step.run.context.rendezvous->Abort(reason);
  }

  static bool SetError(StepState& step, const Status& error) {
    if (step.failed.exchange(true, std::memory_order_acq_rel)) return false;
    step.error = error;
    step.stopped.store(true, std::memory_order_release);
    return true;
  }

  void EndActivity(StepState& step) {
    if (step.activities.fetch_sub(1, std::memory_order_acq_rel) == 1) End(step);
  }

  void End(StepState& step) {
    if (step.cancel_id != 0) step.run.context.cancellation->Remove(step.cancel_id);
    step.cancel_id = 0;
    Status status = std::exchange(step.error, absl::OkStatus());
    std::vector<Tensor> fetches;
    if (status.ok()) {
      TakeFetches(step, fetches);
      status = EndStepMemory(step);
    } else {
      for (size_t i = 0; i < plan_.slots.size(); ++i) Drop(step.slots[i]);
      step.memory = Tensor();
    }
    Done done = std::move(step.done);
    step.run = ExecutorRun();
    {
      MutexLock lock(mutex_);
      free_.emplace_back(&step);
    }
    // From here on this executor may be gone.
    std::move(done)(std::move(status), std::move(fetches));
  }

  void TakeFetches(StepState& step, std::vector<Tensor>& fetches) const {
    fetches.reserve(plan_.fetch_slots.size());
    for (size_t i = 0; i < plan_.fetch_slots.size(); ++i) {
      Tensor& value = *Input(step, plan_.fetch_slots[i]);
      if (plan_.fetch_is_last[i]) {
        fetches.push_back(std::move(value));
      } else {
        fetches.push_back(value);
      }
    }
  }

  const CompiledPlan& plan_;
  Scheduler& scheduler_;
  Allocator& allocator_;
  Mutex mutex_;
  std::vector<std::unique_ptr<StepState>> free_ ABSL_GUARDED_BY(mutex_);
};

Executor::Executor(const ExecutionPlan& plan, Scheduler& scheduler)
    : impl_(std::make_unique<Impl>(static_cast<const CompiledPlan&>(plan), scheduler)) {}

Executor::~Executor() = default;

void Executor::Run(ExecutorRun run, Done done) { impl_->Run(std::move(run), std::move(done)); }

}  // namespace millrace
