#include "tests/core/runtime/test_program.h"

#include <algorithm>
#include <utility>

#include "core/framework/resource.h"
#include "core/graph/graph_text.h"
#include "gtest/gtest.h"

namespace millrace::testing {
namespace {

constexpr char kCpu[] = "CPU";

// A kernel from a function.
class FunctionKernel final : public Kernel {
 public:
  using Function = std::function<Status(KernelContext&)>;
  FunctionKernel(bool is_expensive, Function function)
      : is_expensive_(is_expensive), function_(std::move(function)) {}
  bool IsExpensive() const override { return is_expensive_; }
  Status Compute(KernelContext& context) const override { return function_(context); }

 private:
  const bool is_expensive_;
  const Function function_;
};

class AsyncFunctionKernel final : public AsyncKernel {
 public:
  using Function = std::function<void(KernelContext&, Done)>;
  explicit AsyncFunctionKernel(Function function) : function_(std::move(function)) {}
  void ComputeAsync(KernelContext& context, Done done) const override {
    function_(context, std::move(done));
  }

 private:
  const Function function_;
};

void AddFunction(KernelRegistry& registry, const char* op, bool is_expensive,
                 FunctionKernel::Function function) {
  registry.Add(op, kCpu, [=](const KernelConstruction&) -> StatusOr<std::unique_ptr<Kernel>> {
    return std::unique_ptr<Kernel>(std::make_unique<FunctionKernel>(is_expensive, function));
  });
}

Status NegCompute(KernelContext& c) {
  const Tensor& x = c.input(0);
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    c.output(0).mutable_data<float>()[i] = -x.data<float>()[i];
  }
  return absl::OkStatus();
}

// Broadcasts a single element, and the rows of a vector.
Status AddCompute(KernelContext& c) {
  const auto x = c.input(0).span<float>();
  const auto y = c.input(1).span<float>();
  float* z = c.output(0).mutable_data<float>();
  for (int64_t i = 0; i < c.output(0).num_elements(); ++i) {
    z[i] = x[i % static_cast<int64_t>(x.size())] + y[i % static_cast<int64_t>(y.size())];
  }
  return absl::OkStatus();
}

// Prepared: the number of elements.
class FillKernel final : public Kernel {
 public:
  explicit FillKernel(Hooks& hooks) : hooks_(hooks) {}
  struct Count final : public PreparedShapes {
    int64_t elements = 0;
  };
  StatusOr<std::unique_ptr<PreparedShapes>> Prepare(const PrepareContext& c) const override {
    hooks_.prepared.fetch_add(1);
    auto count = std::make_unique<Count>();
    count->elements = 1;
    for (int32_t extent : c.host_values[0]->span<int32_t>()) count->elements *= extent;
    if (count->elements != c.outputs[0].num_elements()) return Internal("not the shape's dims");
    return std::unique_ptr<PreparedShapes>(std::move(count));
  }
  Status Compute(KernelContext& c) const override {
    std::fill_n(c.output(0).mutable_data<float>(), c.prepared<Count>().elements,
                *c.input(1).data<float>());
    return absl::OkStatus();
  }

 private:
  Hooks& hooks_;
};

StatusOr<Variable*> VariableOf(const Tensor& handle) {
  auto* variable = dynamic_cast<Variable*>(handle.resource().get());
  if (variable == nullptr) return InvalidArgument("not a variable");
  return variable;
}

void AddVariableKernels(KernelRegistry& registry) {
  registry.Add("VarHandleOp", kCpu,
               [](const KernelConstruction& c) -> StatusOr<std::unique_ptr<Kernel>> {
                 std::string name = c.attrs.GetOr<std::string>("shared_name", "");
                 if (name.empty()) name = c.node_name;
                 const std::string container = c.attrs.GetOr<std::string>("container", "");
                 MR_ASSIGN_OR_RETURN(const PartialShape shape, c.attrs.Get<PartialShape>("shape"));
                 Device* device = &c.device;
                 return std::unique_ptr<Kernel>(
                     std::make_unique<FunctionKernel>(false, [=](KernelContext& context) -> Status {
                       MR_ASSIGN_OR_RETURN(std::shared_ptr<Variable> variable,
                                           device->resources().LookupOrCreateVariable(
                                               container, name, DType::kFloat, shape));
                       context.set_output(0, Tensor::OfResource(std::move(variable)));
                       return absl::OkStatus();
                     }));
               });
  AddFunction(registry, "ReadVariableOp", false, [](KernelContext& c) -> Status {
    MR_ASSIGN_OR_RETURN(Variable * variable, VariableOf(c.input(0)));
    MR_ASSIGN_OR_RETURN(Tensor value, variable->Read());
    c.set_output(0, std::move(value));
    return absl::OkStatus();
  });
  AddFunction(registry, "AssignVariableOp", false, [](KernelContext& c) -> Status {
    MR_ASSIGN_OR_RETURN(Variable * variable, VariableOf(c.input(0)));
    return variable->Assign(c.input(1));
  });
  const auto add = [](KernelContext& c, float factor, const Tensor& delta) -> Status {
    MR_ASSIGN_OR_RETURN(Variable * variable, VariableOf(c.input(0)));
    return variable->Update(c.device().allocator(), c.step().step_id, [&](Tensor& value) -> Status {
      if (value.shape() != delta.shape()) return InvalidArgument("the shapes differ");
      for (int64_t i = 0; i < value.num_elements(); ++i) {
        value.mutable_data<float>()[i] += factor * delta.data<float>()[i];
      }
      return absl::OkStatus();
    });
  };
  AddFunction(registry, "AssignAddVariableOp", false,
              [=](KernelContext& c) { return add(c, 1, c.input(1)); });
  AddFunction(registry, "ResourceApplyGradientDescent", false,
              [=](KernelContext& c) { return add(c, -*c.input(1).data<float>(), c.input(2)); });
}

void AddCommKernels(KernelRegistry& registry) {
  registry.Add("_Send", kCpu, [](const KernelConstruction& c) -> StatusOr<std::unique_ptr<Kernel>> {
    const auto channel = static_cast<ChannelId>(c.attrs.GetOr<int64_t>("channel", 0));
    return std::unique_ptr<Kernel>(
        std::make_unique<FunctionKernel>(false, [=](KernelContext& context) {
          return context.step().rendezvous->Send(channel, context.input(0));
        }));
  });
  registry.Add("_Recv", kCpu, [](const KernelConstruction& c) -> StatusOr<std::unique_ptr<Kernel>> {
    const auto channel = static_cast<ChannelId>(c.attrs.GetOr<int64_t>("channel", 0));
    return std::unique_ptr<Kernel>(
        std::make_unique<AsyncFunctionKernel>([=](KernelContext& context, AsyncKernel::Done done) {
          context.step().rendezvous->RecvAsync(
              channel, [&context, done = std::move(done)](StatusOr<Tensor> value) mutable {
                if (value.ok()) context.set_output(0, *std::move(value));
                std::move(done)(value.status());
              });
        }));
  });
}

void AddHookKernels(KernelRegistry& registry, Hooks& hooks) {
  for (const char* op : {"Call", "CallSlow"}) {
    const bool is_expensive = op == absl::string_view("CallSlow");
    registry.Add(
        op, kCpu,
        [&hooks, is_expensive](const KernelConstruction& c) -> StatusOr<std::unique_ptr<Kernel>> {
          const auto found = hooks.call.find(c.attrs.GetOr<std::string>("hook", ""));
          if (found == hooks.call.end()) return InvalidArgument("there is no such hook");
          return std::unique_ptr<Kernel>(
              std::make_unique<FunctionKernel>(is_expensive, found->second));
        });
  }
  registry.Add("Wait", kCpu,
               [&hooks](const KernelConstruction& c) -> StatusOr<std::unique_ptr<Kernel>> {
                 const auto found = hooks.wait.find(c.attrs.GetOr<std::string>("hook", ""));
                 if (found == hooks.wait.end()) return InvalidArgument("there is no such hook");
                 return std::unique_ptr<Kernel>(std::make_unique<AsyncFunctionKernel>(
                     [hook = found->second](KernelContext& context, AsyncKernel::Done done) {
                       context.set_output(0, context.input(0));
                       hook(context, std::move(done));
                     }));
               });
}

}  // namespace

void RegisterTestKernels(KernelRegistry& registry, Hooks& hooks) {
  const auto pass = [](KernelContext& c) {
    c.set_output(0, c.input(0));
    return absl::OkStatus();
  };
  AddFunction(registry, "NoOp", false, [](KernelContext&) { return absl::OkStatus(); });
  AddFunction(registry, "Identity", false, pass);
  AddFunction(registry, "Claim", false, pass);
  AddFunction(registry, "Neg", false, NegCompute);
  AddFunction(registry, "Slow", true, NegCompute);
  AddFunction(registry, "Add", false, AddCompute);
  AddFunction(registry, "Draw", false, [](KernelContext& c) {
    *c.output(0).mutable_data<float>() = static_cast<float>(c.step().random_counter);
    return absl::OkStatus();
  });
  registry.Add("Fill", kCpu,
               [&hooks](const KernelConstruction&) -> StatusOr<std::unique_ptr<Kernel>> {
                 return std::unique_ptr<Kernel>(std::make_unique<FillKernel>(hooks));
               });
  // Placed, never run on a device whose memory is the host's.
  AddFunction(registry, "Const", false,
              [](KernelContext&) { return Internal("a constant was run"); });
  AddVariableKernels(registry);
  AddCommKernels(registry);
  AddHookKernels(registry, hooks);
  EXPECT_TRUE(TestOps()->status().ok()) << TestOps()->status();
  EXPECT_TRUE(registry.status().ok()) << registry.status();
}

Graph GraphOrFail(absl::string_view text) {
  StatusOr<Graph> graph = GraphFromText(text, TestOps());
  if (graph.ok()) return *std::move(graph);
  ADD_FAILURE() << graph.status();
  return Graph(TestOps());
}

DeviceName Name(absl::string_view device) {
  StatusOr<DeviceName> name = DeviceName::Parse(device);
  EXPECT_TRUE(name.ok()) << name.status();
  return name.ok() ? *name : DeviceName();
}

std::vector<DeviceInfo> Devices(std::vector<std::string> names) {
  std::vector<DeviceInfo> devices;
  for (const std::string& name : names) {
    devices.emplace_back();
    devices.back().name = Name(name);
  }
  return devices;
}

Partition WholePartition(Graph graph, absl::string_view device,
                         const std::vector<std::string>& feeds,
                         const std::vector<std::string>& fetches) {
  Partition partition{Name(device), std::move(graph), {}, {}, {}};
  const auto port = [&](const std::string& name) {
    StatusOr<Port> found = partition.graph.FindPort(name);
    EXPECT_TRUE(found.ok()) << found.status();
    return found.ok() ? *found : Port{0, 0};
  };
  for (size_t i = 0; i < feeds.size(); ++i) {
    partition.feeds.push_back({static_cast<int>(i), port(feeds[i])});
  }
  for (size_t i = 0; i < fetches.size(); ++i) {
    partition.fetches.push_back({static_cast<int>(i), port(fetches[i])});
  }
  return partition;
}

}  // namespace millrace::testing
