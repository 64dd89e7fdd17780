#include "tools/bench/graphs.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "python_free_api/millrace.h"

namespace millrace::bench {
namespace {

// The graph of `b`, if nothing went wrong in it. Other systems take a control input that only
// orders for a reason to run, and would run initialisers in each step: those go. (What must come
// first in a step here feeds the gradients, so that their order stands.)
StatusOr<BenchGraph> Finish(GraphBuilder& b, StepRun run) {
  MR_RETURN_IF_ERROR(b.status());
  Graph graph = b.graph();
  for (NodeId id = 0; id < graph.num_ids(); ++id) {
    if (!graph.IsLive(id)) continue;
    const AttrValue* const attr = graph.node(id)->attrs().Find(kOrderOnlyAttr);
    if (attr == nullptr) continue;
    const std::vector<std::string> names = *attr->get<std::vector<std::string>>();
    for (const std::string& name : names) graph.RemoveControlInput(id, graph.Find(name)->id());
    graph.SetAttr(id, kOrderOnlyAttr, std::vector<std::string>());
  }
  return BenchGraph{std::move(graph), std::move(run)};
}

FeedSpec Feed(Value placeholder, std::vector<int64_t> shape) {
  return {placeholder.name(), placeholder.dtype() == DType::kInt32 ? "int32" : "float",
          std::move(shape)};
}

Operation NoOp(GraphBuilder& b, const std::vector<Operation>& after) {
  auto scope = b.ControlDependencies(after);
  return b.Add("NoOp", {}, {}, SourceLocation::Current());
}

// Values of the size that Glorot's rule gives, the same ones in every system.
Initializer Pattern() {
  return [](GraphBuilder& b, DType, const Shape& shape, SourceLocation where) {
    const int rank = shape.rank();
    double fans = 1;
    for (int i = 0; i + 2 < rank; ++i) fans *= static_cast<double>(shape.dim(i));
    fans *= static_cast<double>(shape.dim(rank - 2) + shape.dim(rank - 1));
    const auto limit = static_cast<float>(std::sqrt(6 / fans));
    std::vector<float> values = FloatPattern(shape.num_elements());
    for (float& value : values) value = limit * (2 * value - 1);
    return Const(b, Tensor::Of<float>(shape, absl::MakeConstSpan(values)), "", where);
  };
}

class Net {
 public:
  explicit Net(GraphBuilder& b) : variables_(b) {}
  Variables& variables() { return variables_; }

  Value Connect(Value x, const char* name, int64_t inputs, int64_t outputs) {
    Dense::Options options;
    options.weights = Pattern();
    return Dense(variables_, name, inputs, outputs, options)(x);
  }
  Value Convolve(Value x, const char* name, int64_t inputs, int64_t outputs, Padding padding) {
    ConvolutionLayer::Options options;
    options.weights = Pattern();
    options.convolution.padding = padding;
    return MaxPool(Relu(ConvolutionLayer(variables_, name, inputs, outputs, 5, options)(x)));
  }

 private:
  Variables variables_;
};

Value Logits(Net& net, Model model, Value x) {
  if (model == Model::kMlp) {
    x = Relu(net.Connect(Flatten(x), "dense1", 784, 512));
    x = Relu(net.Connect(x, "dense2", 512, 512));
    return net.Connect(x, "dense3", 512, 10);
  }
  if (model == Model::kLeNet5) {
    x = net.Convolve(x, "conv1", 1, 6, Padding::kSame);
    x = net.Convolve(x, "conv2", 6, 16, Padding::kValid);
    x = Relu(net.Connect(Flatten(x), "dense1", 400, 120));
    x = Relu(net.Connect(x, "dense2", 120, 84));
    return net.Connect(x, "dense3", 84, 10);
  }
  x = net.Convolve(x, "conv1", 1, 32, Padding::kSame);
  x = net.Convolve(x, "conv2", 32, 64, Padding::kSame);
  x = Relu(net.Connect(Flatten(x), "dense1", 7 * 7 * 64, 1024));
  return net.Connect(x, "dense2", 1024, 10);
}

}  // namespace

StatusOr<BenchGraph> AddChain(const OpsPtr& ops, int nodes) {
  GraphBuilder b(ops);
  const Value x = Placeholder(b, DType::kFloat, Shape(), "x");
  const Value one = Scalar(b, 1);
  StepRun run;
  Value last = x;
  for (int i = 0; i < nodes; ++i) {
    last = Add(last, one);
    if (i == nodes / 2) run.second_fetch = last.name();
  }
  run.feeds = {Feed(x, {})};
  run.fetches = {last.name()};
  return Finish(b, std::move(run));
}

StatusOr<BenchGraph> NoOpGraph(const OpsPtr& ops, int width, int depth) {
  GraphBuilder b(ops);
  std::mt19937 random(301);
  const auto draw = [&](size_t most) { return 1 + random() % static_cast<uint32_t>(most); };
  std::vector<Operation> ready;
  for (uint32_t i = draw(width); i > 0; --i) ready.push_back(NoOp(b, {}));
  for (int layer = 0; layer < depth; ++layer) {
    std::shuffle(ready.begin(), ready.end(), random);
    const auto consumed = static_cast<std::ptrdiff_t>(draw(ready.size()));
    const Operation join = NoOp(b, std::vector<Operation>(ready.end() - consumed, ready.end()));
    ready.resize(ready.size() - consumed);
    for (uint32_t i = draw(width); i > 0; --i) ready.push_back(NoOp(b, {join}));
  }
  StepRun run;
  run.targets = {NoOp(b, ready).name()};
  return Finish(b, std::move(run));
}

StatusOr<BenchGraph> FeedAndFetch(const OpsPtr& ops, int count) {
  GraphBuilder b(ops);
  StepRun run;
  for (int i = 0; i < count; ++i) {
    const Value x = Placeholder(b, DType::kFloat, Shape(), StrCat("x", i));
    run.feeds.push_back(Feed(x, {}));
    run.fetches.push_back(Identity(x).name());
  }
  return Finish(b, std::move(run));
}

StatusOr<BenchGraph> NoOpOnTasks(const OpsPtr& ops, int tasks) {
  GraphBuilder b(ops);
  StepRun run;
  for (int i = 0; i < tasks; ++i) {
    auto device = b.DeviceScope(StrCat("/job:worker/task:", i, "/device:CPU:0"));
    run.targets.push_back(NoOp(b, {}).name());
  }
  return Finish(b, std::move(run));
}

StatusOr<BenchGraph> VariableToWorker(const OpsPtr& ops, int64_t floats) {
  GraphBuilder b(ops);
  StepRun run;
  Value read;
  {
    auto device = b.DeviceScope("/job:ps/task:0/device:CPU:0");
    const Value handle = VariableHandle(b, StrCat("table_", floats), DType::kFloat, {floats});
    run.init = {Assign(handle, Fill(IntVector(b, {floats}), Scalar(b, 1))).name()};
    auto alone = b.NoControlDependencies();
    read = ReadVariable(handle);
  }
  auto device = b.DeviceScope("/job:worker/task:0/device:CPU:0");
  run.targets = {Identity(read).operation().name()};
  return Finish(b, std::move(run));
}

StatusOr<BenchGraph> TrainingStep(const OpsPtr& ops, Model model) {
  constexpr int64_t kBatch = 64;
  GraphBuilder b(ops);
  Net net(b);
  const Value images = Placeholder(b, DType::kFloat, {kBatch, 28, 28, 1}, "images");
  const Value labels = Placeholder(b, DType::kInt32, {kBatch}, "labels");
  const Value loss = ReduceMean(SparseCrossEntropy(Logits(net, model, images), labels));
  StepRun run;
  run.targets = {Minimize(loss, net.variables(), *Sgd(0.01)).name()};
  run.fetches = {loss.name()};
  run.init = {net.variables().Initialize().name()};
  run.feeds = {Feed(images, {kBatch, 28, 28, 1}), Feed(labels, {kBatch})};
  return Finish(b, std::move(run));
}

}  // namespace millrace::bench
