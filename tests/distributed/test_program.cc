#include "tests/distributed/test_program.h"

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/framework/resource.h"
#include "core/graph/graph_text.h"
#include "gtest/gtest.h"
#include "kernels/register.h"
#include "ops/register.h"

namespace millrace::testing {
namespace {

// Who waits at one gate.
class Gates {
 public:
  using Done = AsyncKernel::Done;

  void Open(const std::string& name) {
    std::vector<std::shared_ptr<Done>> done;
    {
      MutexLock lock(mutex_);
      open_.insert(name);
      for (auto& [id, waiting] : waiting_[name]) done.push_back(waiting);
      waiting_[name].clear();
    }
    for (const std::shared_ptr<Done>& waiting : done) (*waiting)(absl::OkStatus());
  }
  void Close(const std::string& name) {
    MutexLock lock(mutex_);
    open_.erase(name);
  }
  int Waiting(const std::string& name) {
    MutexLock lock(mutex_);
    return static_cast<int>(waiting_[name].size());
  }
  void Pass(const std::string& name, Cancellation& cancellation, Done done) {
    const auto shared = std::make_shared<Done>(std::move(done));
    uint64_t id = 0;
    {
      MutexLock lock(mutex_);
      if (!open_.contains(name)) {
        id = ++last_id_;
        waiting_[name][id] = shared;
      }
    }
    if (id == 0) {
      (*shared)(absl::OkStatus());
      return;
    }
    cancellation.OnCancel([this, name, id, shared](const Status& reason) {
      {
        MutexLock lock(mutex_);
        if (waiting_[name].erase(id) == 0) return;
      }
      (*shared)(reason);
    });
  }

 private:
  Mutex mutex_;
  std::set<std::string> open_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::map<uint64_t, std::shared_ptr<Done>>> waiting_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
};

Gates& AllGates() {
  static Gates& gates = *new Gates;
  return gates;
}

class GateKernel final : public AsyncKernel {
 public:
  explicit GateKernel(std::string name) : name_(std::move(name)) {}
  void ComputeAsync(KernelContext& context, Done done) const override {
    context.set_output(0, context.input(0));
    AllGates().Pass(name_, *context.step().cancellation, std::move(done));
  }

 private:
  const std::string name_;
};

class CheckKernel final : public Kernel {
 public:
  bool IsExpensive() const override { return false; }
  Status Compute(KernelContext& context) const override {
    if (context.input(0).data<float>()[0] > 0) return InvalidArgument("told to fail");
    context.set_output(0, context.input(0));
    return absl::OkStatus();
  }
};

class FailingUpdateKernel final : public Kernel {
 public:
  Status Compute(KernelContext&) const override { return Internal("this update fails"); }
};

Status SameShape(ShapeContext& context) {
  context.set_output(0, context.input(0));
  return absl::OkStatus();
}

}  // namespace

std::shared_ptr<const OpRegistry> TestOps() {
  static const auto& ops = *[] {
    auto registry = std::make_shared<OpRegistry>();
    RegisterAllOps(*registry);
    registry->Add(OpDef("Gate")
                      .Input("x: float")
                      .Output("y: float")
                      .Attr("name: string")
                      .Traits({Trait::kStateful, Trait::kAllocatesOutputs})
                      .Shape(SameShape)
                      .NotDifferentiable("a test's")
                      .Doc("Waits."));
    registry->Add(OpDef("Check")
                      .Input("x: float")
                      .Output("y: float")
                      .Traits({Trait::kStateful, Trait::kAllocatesOutputs})
                      .Shape(SameShape)
                      .NotDifferentiable("a test's")
                      .Doc("May fail."));
    registry->Add(OpDef("FailingUpdate")
                      .Input("handle: resource")
                      .Traits({Trait::kStateful, Trait::kWritesVariable})
                      .Shape([](ShapeContext&) { return absl::OkStatus(); })
                      .NotDifferentiable("a test's")
                      .Doc("Fails."));
    EXPECT_EQ(registry->status(), absl::OkStatus());
    return new std::shared_ptr<const OpRegistry>(std::move(registry));
  }();
  return ops;
}

const KernelRegistry& TestKernels() {
  static const KernelRegistry& kernels = *[] {
    auto* registry = new KernelRegistry;
    UseOneLibraryThread();
    RegisterAllKernels(*registry);
    registry->Add("Gate", "CPU", [](const KernelConstruction& construction) {
      const std::string name = construction.attrs.GetOr<std::string>("name", "");
      return StatusOr<std::unique_ptr<Kernel>>(std::make_unique<GateKernel>(name));
    });
    registry->Add("Check", "CPU", [](const KernelConstruction&) {
      return StatusOr<std::unique_ptr<Kernel>>(std::make_unique<CheckKernel>());
    });
    registry->Add("FailingUpdate", "CPU", [](const KernelConstruction&) {
      return StatusOr<std::unique_ptr<Kernel>>(std::make_unique<FailingUpdateKernel>());
    });
    EXPECT_EQ(registry->status(), absl::OkStatus());
    return registry;
  }();
  return kernels;
}

void OpenGate(const std::string& name) { AllGates().Open(name); }
void CloseGate(const std::string& name) { AllGates().Close(name); }
int WaitingAt(const std::string& name) { return AllGates().Waiting(name); }

Graph ParseGraphText(absl::string_view text) {
  StatusOr<Graph> graph = GraphFromText(text, TestOps());
  EXPECT_EQ(graph.status(), absl::OkStatus());
  return graph.ok() ? *std::move(graph) : Graph(TestOps());
}

const char kTrainingGraph[] = R"(
w = VarHandleOp() {dtype=float, shape=[4], shared_name="w"} @/job:ps/task:0
zero = Const() {dtype=float, value=tensor(float[4]: 0 0 0 0)} @/job:ps/task:0
init = AssignVariableOp(w, zero) @/job:ps/task:0
w_value = ReadVariableOp(w) {dtype=float} @/job:ps/task:0
half = Const() {dtype=float, value=tensor(float[]: 0.5)} @/job:ps/task:0
rate = Const() {dtype=float, value=tensor(float[]: 0.1)} @/job:ps/task:0
axes = Const() {dtype=int32, value=tensor(int32[1]: 0)} @/job:worker/task:0
axes1 = Const() {dtype=int32, value=tensor(int32[1]: 0)} @/job:worker/task:1
t0 = Const() {dtype=float, value=tensor(float[4]: 1 2 3 4)} @/job:worker/task:0
t1 = Const() {dtype=float, value=tensor(float[4]: 3 2 1 0)} @/job:worker/task:1
extra = Placeholder() {dtype=float, shape=[4]} @/job:worker/task:1
t1x = AddV2(t1, extra) @/job:worker/task:1
d0 = Sub(w_value, t0) @/job:worker/task:0
d1 = Sub(w_value, t1x) @/job:worker/task:1
q0 = Square(d0) @/job:worker/task:0
q1 = Square(d1) @/job:worker/task:1
loss0 = Sum(q0, axes) @/job:worker/task:0
loss1 = Sum(q1, axes1) @/job:worker/task:1
loss = AddV2(loss0, loss1) @/job:worker/task:0
g = AddV2(d0, d1) @/job:ps/task:0
gm = Mul(g, half) @/job:ps/task:0
train = ResourceApplyGradientDescent(w, rate, gm) @/job:ps/task:0
)";

}  // namespace millrace::testing
