#include "tests/distributed/strategy/small_models.h"

#include <random>

#include "core/graph/gradients.h"
#include "gtest/gtest.h"
#include "ops/array_ops.h"
#include "ops/math_ops.h"
#include "ops/nn_ops.h"
#include "ops/state_ops.h"
#include "tests/testing/op_text.h"

namespace millrace::testing {
namespace {

constexpr int64_t kClasses = 3;

Tensor Numbers(DType dtype, const Shape& shape, uint64_t seed, double scale) {
  std::mt19937_64 random(seed);
  std::vector<double> values;
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    values.push_back(scale * (static_cast<double>(random() % 2001) / 1000 - 1));
  }
  if (dtype == DType::kDouble) return Tensor::Of<double>(shape, values);
  return Tensor::Of<float>(shape, std::vector<float>(values.begin(), values.end()));
}

// Adds parameters, and in the end the training step.
class Maker {
 public:
  Maker(DType dtype, UpdateRule rule, Shape example) : rule_(rule) {
    model_.builder = std::make_unique<GraphBuilder>(AllOps());
    model_.dtype = dtype;
    model_.example = example;
  }
  GraphBuilder& b() { return *model_.builder; }

  Value Input() {
    std::vector<int64_t> dims = {-1};
    dims.insert(dims.end(), model_.example.dims().begin(), model_.example.dims().end());
    return Placeholder(b(), model_.dtype, PartialShape::Create(dims).value(), "x");
  }

  Value Parameter(const std::string& name, const Shape& shape) {
    const Value handle = Variable(name, Numbers(model_.dtype, shape, ++seed_, 0.4));
    handles_.push_back(handle);
    reads_.push_back(ReadVariable(handle));
    model_.variables.push_back(reads_.back().name());
    return reads_.back();
  }

  SmallModel Finish(Value logits) {
    const Value labels = Placeholder(b(), DType::kInt32, {PartialShape::kUnknown}, "labels");
    const Value loss = ReduceMean(SparseCrossEntropy(logits, labels));
    const StatusOr<std::vector<Value>> gradients = Gradients({loss}, reads_);
    EXPECT_TRUE(gradients.ok()) << gradients.status();
    std::vector<Operation> updates;
    if (gradients.ok()) updates = rule_ == UpdateRule::kSgd ? Sgd(*gradients) : Adam(*gradients);
    model_.train = Group(b(), updates, "train").name();
    model_.initialize = Group(b(), initializers_, "initialize").name();
    model_.loss = loss.name();
    model_.logits = logits.name();
    EXPECT_TRUE(b().status().ok()) << b().status();
    return std::move(model_);
  }

 private:
  Value Number(double value) { return Scalar(b(), value, model_.dtype); }

  Value Variable(const std::string& name, Tensor initial) {
    const Value handle = VariableHandle(b(), name, initial.dtype(), initial.shape());
    initializers_.push_back(b().Add("AssignVariableOp", {handle, Const(b(), initial)}, {}, {},
                                    StrCat(name, "/initialize")));
    return handle;
  }

  std::vector<Operation> Sgd(const std::vector<Value>& gradients) {
    std::vector<Operation> updates;
    for (size_t i = 0; i < handles_.size(); ++i) {
      updates.push_back(ApplyGradientDescent(handles_[i], Number(0.1), gradients[i]));
    }
    return updates;
  }

  // With the powers of some late step, the same in every step: as good for a comparison.
  std::vector<Operation> Adam(const std::vector<Value>& gradients) {
    std::vector<Operation> updates;
    for (size_t i = 0; i < handles_.size(); ++i) {
      const Shape shape = handles_[i].shape().ToShape().value();
      const Value m = Variable(StrCat("slot", i, "/m"), Tensor::Zeros(model_.dtype, shape));
      const Value v = Variable(StrCat("slot", i, "/v"), Tensor::Zeros(model_.dtype, shape));
      updates.push_back(ApplyAdam(handles_[i], m, v, Number(0.5), Number(0.5), Number(0.01),
                                  Number(0.9), Number(0.999), Number(1e-8), gradients[i]));
    }
    return updates;
  }

  const UpdateRule rule_;
  SmallModel model_;
  uint64_t seed_ = 0;
  std::vector<Value> handles_;
  std::vector<Value> reads_;
  std::vector<Operation> initializers_;
};

}  // namespace

SmallModel MakeMlp(DType dtype, UpdateRule rule, bool dropout) {
  Maker maker(dtype, rule, {4});
  Value h = Tanh(
      BiasAdd(MatMul(maker.Input(), maker.Parameter("w1", {4, 5})), maker.Parameter("b1", {5})));
  if (dropout) {
    const Value mask = RandomUniform(ShapeOf(h), dtype, /*seed=*/3);
    h = Mul(h, Cast(GreaterEqual(mask, Scalar(maker.b(), 0.5, dtype)), dtype));
  }
  return maker.Finish(
      BiasAdd(MatMul(h, maker.Parameter("w2", {5, kClasses})), maker.Parameter("b2", {kClasses})));
}

SmallModel MakeLeNet(DType dtype, UpdateRule rule) {
  Maker maker(dtype, rule, {8, 8, 1});
  Value x = MaxPool(Relu(BiasAdd(Conv2D(maker.Input(), maker.Parameter("f1", {3, 3, 1, 2})),
                                 maker.Parameter("c1", {2}))));
  x = MaxPool(
      Relu(BiasAdd(Conv2D(x, maker.Parameter("f2", {3, 3, 2, 3})), maker.Parameter("c2", {3}))));
  x = Reshape(x, {-1, 2 * 2 * 3});
  x = Relu(BiasAdd(MatMul(x, maker.Parameter("w1", {12, 6})), maker.Parameter("b1", {6})));
  return maker.Finish(
      BiasAdd(MatMul(x, maker.Parameter("w2", {6, kClasses})), maker.Parameter("b2", {kClasses})));
}

NamedFeeds BatchFor(const SmallModel& model, int64_t rows, uint64_t seed) {
  std::vector<int64_t> dims = {rows};
  dims.insert(dims.end(), model.example.dims().begin(), model.example.dims().end());
  std::mt19937_64 random(seed + 1);
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < rows; ++i) labels.push_back(static_cast<int32_t>(random() % kClasses));
  return {{"x", Numbers(model.dtype, Shape::Create(dims).value(), seed, 1)},
          {"labels", Tensor::Of<int32_t>({rows}, labels)}};
}

std::vector<std::string> ThreeTasks() {
  return {"/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:1"};
}

DataParallelPsOptions TwoWorkers() {
  DataParallelPsOptions options;
  options.replica_devices = {"/job:worker/task:0", "/job:worker/task:1"};
  options.variable_device = "/job:ps";
  return options;
}

StatusOr<std::unique_ptr<Session>> OpenSplit(LocalMachine& machine, const Graph& graph,
                                             DataParallelPsOptions options) {
  StrategySessionOptions session;
  MR_ASSIGN_OR_RETURN(session.strategy, NewDataParallelPs(std::move(options)));
  session.open = [&machine](const Graph& program) {
    return machine.Open(program, machine.Passes());
  };
  session.fold = machine.Passes();
  return NewStrategySession(graph, std::move(session));
}

}  // namespace millrace::testing
