// What a step costs beside its kernels: per node (chains and random graphs of empty and of scalar
// kernels), and per step (an empty one, and one that feeds and fetches).
#include <algorithm>
#include <array>
#include <random>

#include "benchmark/benchmark.h"
#include "core/base/mutex.h"
#include "core/base/thread_pool.h"
#include "core/device/cpu_device.h"
#include "core/runtime/executor.h"
#include "core/runtime/session.h"
#include "kernels/register.h"
#include "ops/register.h"

namespace millrace {
namespace {

using benchmark::Counter;
using benchmark::State;

// Ops, kernels and a device on a pool of `threads`.
class Machine {
 public:
  explicit Machine(int threads) : host_(Options(threads)) {
    auto ops = std::make_shared<OpRegistry>();
    RegisterAllOps(*ops);
    ops_ = std::move(ops);
    RegisterAllKernels(kernels_);
    devices_ = MakeCpuDevices({}, *host_.environment().scheduler);
  }
  static Machine& Of(int threads) {
    static auto* const machines = new std::array<std::unique_ptr<Machine>, 8>();
    auto& machine = (*machines)[threads];
    if (machine == nullptr) machine = std::make_unique<Machine>(threads);
    return *machine;
  }

  const std::shared_ptr<const OpRegistry>& ops() const { return ops_; }
  const KernelRegistry& kernels() const { return kernels_; }
  Device& device() { return *devices_[0]; }
  const Environment& environment() const { return host_.environment(); }

 private:
  static ThreadPool::Options Options(int threads) {
    ThreadPool::Options options;
    options.threads = threads;
    options.on_thread_start = UseOneLibraryThread;
    return options;
  }
  HostEnvironment host_;
  std::shared_ptr<const OpRegistry> ops_;
  KernelRegistry kernels_;
  std::vector<std::unique_ptr<Device>> devices_;
};

// A plan of a whole graph with its executor. Runs block.
class Program {
 public:
  Program(Machine& machine, Graph graph, const std::vector<Port>& feeds,
          const std::vector<Port>& fetches) {
    Partition partition{machine.device().info().name, std::move(graph), {}, {}, {}};
    for (const Port& port : feeds) partition.feeds.push_back({0, port});
    for (const Port& port : fetches) partition.fetches.push_back({0, port});
    auto plan = ExecutionPlan::Create(std::move(partition), machine.device(), machine.kernels());
    status_ = plan.status();
    if (!plan.ok()) return;
    plan_ = *std::move(plan);
    executor_ = std::make_unique<Executor>(*plan_, *machine.environment().scheduler);
  }

  const Status& status() const { return status_; }
  int nodes() const { return plan_->num_nodes(); }
  Status Run(std::vector<Tensor> feeds) {
    Notification ended;
    Status result;
    ExecutorRun run;
    run.caller_runs = true;
    run.feeds = std::move(feeds);
    executor_->Run(std::move(run), [&](Status status, std::vector<Tensor>) {
      result = std::move(status);
      ended.Notify();
    });
    ended.Wait();
    return result;
  }

 private:
  Status status_;
  std::unique_ptr<ExecutionPlan> plan_;
  std::unique_ptr<Executor> executor_;
};

void Measure(State& state, Program& program, const std::vector<Tensor>& feeds) {
  if (!program.status().ok()) {
    return state.SkipWithError(std::string(program.status().message()).c_str());
  }
  for (auto _ : state) {
    if (const Status status = program.Run(feeds); !status.ok()) {
      return state.SkipWithError(std::string(status.message()).c_str());
    }
  }
  state.counters["ns/node"] =
      Counter(1e-9 * program.nodes(), Counter::kIsIterationInvariantRate | Counter::kInvert);
  state.counters["nodes"] = program.nodes();
}

NodeId Add(Graph& graph, const char* op, AttrMap attrs, std::vector<Port> inputs,
           std::vector<NodeId> control = {}) {
  NodeSpec spec;
  spec.name = graph.UniqueName(op);
  spec.op = op;
  spec.attrs = std::move(attrs);
  spec.inputs = std::move(inputs);
  spec.control_inputs = std::move(control);
  const StatusOr<NodeId> id = graph.AddNode(std::move(spec));
  return id.ok() ? *id : -1;
}

// x + 1 + 1 ...: each node passes a tensor of `elements` floats on.
void AddChain(State& state) {
  Machine& machine = Machine::Of(1);
  Graph graph(machine.ops());
  const Shape shape = state.range(1) == 0 ? Shape() : Shape({state.range(1)});
  const PartialShape known =
      state.range(2) ? PartialShape(shape) : PartialShape{PartialShape::kUnknown};
  const NodeId x = Add(graph, "Placeholder", {{"dtype", DType::kFloat}, {"shape", known}}, {});
  const NodeId one =
      Add(graph, "Const", {{"dtype", DType::kFloat}, {"value", Tensor::Scalar<float>(1)}}, {});
  NodeId last = x;
  for (int i = 0; i < state.range(0); ++i) {
    last = Add(graph, "AddV2", {}, {Port{last, 0}, Port{one, 0}});
  }
  Program program(machine, std::move(graph), {Port{x, 0}}, {Port{last, 0}});
  Measure(state, program, {Tensor::Zeros(DType::kFloat, shape)});
}
BENCHMARK(AddChain)
    ->ArgNames({"nodes", "floats", "static"})
    ->Args({1000, 0, 1})
    ->Args({1000, 16, 1})
    ->Args({1000, 16, 0})
    ->Args({100000, 0, 1});

// TensorFlow's BM_executor: layers of at most `width` NoOps, each layer's nodes consumed and made
// at random, `depth` times.
void NoOpGraph(State& state) {
  Machine& machine = Machine::Of(static_cast<int>(state.range(2)));
  Graph graph(machine.ops());
  std::mt19937 random(301);
  const auto width = static_cast<uint32_t>(state.range(0));
  const auto draw = [&](uint32_t most) { return 1 + random() % most; };
  std::vector<NodeId> ready;
  for (uint32_t i = draw(width); i > 0; --i) ready.push_back(Add(graph, "NoOp", {}, {}));
  for (int64_t layer = 0; layer < state.range(1); ++layer) {
    std::shuffle(ready.begin(), ready.end(), random);
    const auto consumed = draw(static_cast<uint32_t>(ready.size()));
    const NodeId join =
        Add(graph, "NoOp", {}, {}, std::vector<NodeId>(ready.end() - consumed, ready.end()));
    ready.resize(ready.size() - consumed);
    for (uint32_t i = draw(width); i > 0; --i) ready.push_back(Add(graph, "NoOp", {}, {}, {join}));
  }
  Program program(machine, std::move(graph), {}, {});
  Measure(state, program, {});
}
BENCHMARK(NoOpGraph)
    ->ArgNames({"width", "depth", "threads"})
    ->Args({16, 1024, 1})
    ->Args({1024, 16, 1})
    ->Args({1024, 1024, 1})
    ->Args({16, 1024, 2})
    ->Args({1024, 16, 2});

// Steps of a session: nothing (0 feeds), or n feeds that go through n Identity nodes to n fetches.
void SessionStep(State& state) {
  Machine& machine = Machine::Of(1);
  Graph graph(machine.ops());
  StepSignature signature;
  std::vector<Tensor> feeds;
  for (int64_t i = 0; i < state.range(0); ++i) {
    const NodeId x =
        Add(graph, "Placeholder", {{"dtype", DType::kFloat}, {"shape", PartialShape(Shape())}}, {});
    const NodeId y = Add(graph, "Identity", {}, {Port{x, 0}});
    signature.feeds.push_back(graph.node(x)->name());
    signature.fetches.push_back(graph.node(y)->name());
    feeds.push_back(Tensor::Scalar<float>(1));
  }
  if (feeds.empty()) signature.targets = {graph.node(Add(graph, "NoOp", {}, {}))->name()};
  LocalSessionOptions options;
  options.devices = {&machine.device()};
  options.kernels = &machine.kernels();
  options.environment = machine.environment();
  const StatusOr<std::unique_ptr<Session>> session = NewLocalSession(graph, std::move(options));
  if (!session.ok()) return state.SkipWithError("no session");
  const StatusOr<std::shared_ptr<PreparedStep>> step = (*session)->Prepare(signature);
  if (!step.ok()) return state.SkipWithError(std::string(step.status().message()).c_str());
  for (auto _ : state) {
    const StatusOr<RunResult> result = (*session)->Run(**step, feeds);
    if (!result.ok()) return state.SkipWithError("the step failed");
  }
}
BENCHMARK(SessionStep)->ArgName("feeds")->Arg(0)->Arg(1)->Arg(10)->Arg(100);

// Building the plan of a long chain.
void CompileChain(State& state) {
  Machine& machine = Machine::Of(1);
  Graph graph(machine.ops());
  NodeId last =
      Add(graph, "Placeholder", {{"dtype", DType::kFloat}, {"shape", PartialShape(Shape())}}, {});
  const Port x{last, 0};
  for (int i = 0; i < state.range(0); ++i) last = Add(graph, "AddV2", {}, {Port{last, 0}, x});
  for (auto _ : state) {
    Program program(machine, graph, {x}, {Port{last, 0}});
    if (!program.status().ok()) return state.SkipWithError("it does not compile");
  }
  state.counters["ns/node"] = Counter(1e-9 * static_cast<double>(state.range(0)),
                                      Counter::kIsIterationInvariantRate | Counter::kInvert);
}
BENCHMARK(CompileChain)->ArgName("nodes")->Arg(100000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace millrace
