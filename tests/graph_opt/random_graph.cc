#include "tests/graph_opt/random_graph.h"

#include <random>

#include "core/graph/gradients.h"
#include "ops/array_ops.h"
#include "ops/math_ops.h"
#include "ops/state_ops.h"
#include "tests/testing/op_text.h"

namespace millrace::testing {
namespace {

constexpr int kNodes = 40;
constexpr int64_t kMostElements = 64;

class Maker {
 public:
  explicit Maker(uint64_t seed)
      : random_(seed), builder_(std::make_unique<GraphBuilder>(AllOps())) {}

  RandomGraph Make() {
    AddInputs();
    for (int i = 0; i < kNodes; ++i) AddExpression();
    AddGradient();
    RandomGraph result;
    for (int i = 0; i < 5; ++i) result.fetches.push_back(Any().value.name());
    for (const Operation& update : updates_) result.targets.push_back(update.name());
    result.initialize = Group(*builder_, {initialize_}, "initialize").name();
    result.feeds = std::move(feeds_);
    result.builder = std::move(builder_);
    return result;
  }

 private:
  // A float value, with the shape that it has in the step, known to the graph or not.
  struct Known {
    Value value;
    Shape shape;
  };

  int64_t Below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  const Known& Any() { return values_[Below(static_cast<int64_t>(values_.size()))]; }
  Tensor Numbers(const Shape& shape) {
    std::vector<float> numbers;
    for (int64_t i = 0; i < shape.num_elements(); ++i) {
      numbers.push_back(static_cast<float>(Below(17) - 8) / 4);
    }
    return Tensor::Of<float>(shape, numbers);
  }
  Shape SmallShape() {
    const Shape shapes[] = {{}, {3}, {1}, {2, 3}, {3, 2}, {3, 1}};
    return shapes[Below(std::size(shapes))];
  }

  void Keep(Value value, const Shape& shape) {
    if (!value.ok()) return;
    // Lest numbers grow beyond all bounds: then every value would be infinite.
    if (Below(4) == 0) value = Tanh(value);
    values_.push_back({value, shape});
  }

  void AddInputs() {
    for (int i = 0; i < 3; ++i) {
      const Shape shape = i == 0 ? Shape{3, 2} : SmallShape();
      std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
      if (!dims.empty() && Below(2) == 0) dims[0] = -1;
      const Value x =
          Placeholder(*builder_, DType::kFloat, PartialShape::Create(dims).value_or(PartialShape()),
                      StrCat("x", i));
      feeds_.emplace_back(x.name(), Numbers(shape));
      values_.push_back({x, shape});
      inputs_.push_back(x);
    }
    const Shape shape = SmallShape();
    variable_ = VariableHandle(*builder_, "v", DType::kFloat, shape);
    variable_shape_ = shape;
    initialize_ =
        builder_->Add("AssignVariableOp", {variable_, Const(*builder_, Numbers(shape))}, {}, {});
    values_.push_back({ReadVariable(variable_), shape});
  }

  void AddExpression() {
    const Known x = Any();
    const Known y = Any();
    GraphBuilder& b = *builder_;
    switch (Below(20)) {
      case 0:
      case 1:
      case 2: {
        const Shape shape = SmallShape();
        return Keep(Const(b, Numbers(shape)), shape);
      }
      case 3:
      case 4:
        return AddUnary(x);
      case 5:
      case 6:
      case 7:
        return AddBinary(x, y);
      case 8:
        if (x.shape.rank() != 2 || y.shape.rank() != 2 || x.shape[1] != y.shape[0]) return;
        return Keep(MatMul(x.value, y.value), {x.shape[0], y.shape[1]});
      case 9:
        return AddReduction(x);
      case 10:
        return Keep(Reshape(x.value, {-1}), {x.shape.num_elements()});
      case 11:
        if (x.shape.num_elements() != y.shape.num_elements()) return;
        return Keep(Reshape(x.value, ShapeOf(y.value)), y.shape);
      case 12:
        return Keep(Fill(ShapeOf(x.value), Scalar(b, 0.5)), x.shape);
      case 13:
        return Keep(
            Mul(x.value, Cast(Below(2) == 0 ? Size(y.value) : Rank(y.value), DType::kFloat)),
            x.shape);
      case 14:
        if (x.shape.rank() != 2) return;
        return Keep(Transpose(x.value, {1, 0}), {x.shape[1], x.shape[0]});
      case 15:
        return Keep(RandomUniform(ShapeOf(x.value), DType::kFloat, /*seed=*/7), x.shape);
      case 16:
        return AddUpdate(x);
      case 17: {
        // After an update, if there is one; else after a node without effects.
        const Operation before = updates_.empty() ? y.value.operation() : updates_.back();
        const auto scope = b.ControlDependencies({before});
        if (Below(2) == 0) return Keep(Identity(x.value), x.shape);
        return Keep(ReadVariable(variable_), variable_shape_);
      }
      case 18:
        return Keep(Below(2) == 0 ? ZerosLike(x.value) : OnesLike(x.value), x.shape);
      default:
        return Keep(Select(Greater(x.value, Scalar(b, 0)), x.value, Neg(x.value)), x.shape);
    }
  }

  void AddUnary(const Known& x) {
    constexpr const char* kOps[] = {"Neg", "Square", "Abs", "Relu", "Sigmoid", "Identity"};
    const char* op = kOps[Below(std::size(kOps))];
    Keep(builder_->AddOne(op, {x.value}, {}, {}), x.shape);
    if (Below(2) == 0) Keep(builder_->AddOne(op, {x.value}, {}, {}), x.shape);
  }

  void AddBinary(const Known& x, const Known& y) {
    const StatusOr<PartialShape> shape = BroadcastShapes(x.shape, y.shape);
    if (!shape.ok()) return;
    const StatusOr<Shape> full = shape->ToShape();
    if (!full.ok() || full->num_elements() > kMostElements) return;
    constexpr const char* kOps[] = {"AddV2", "Sub", "Mul", "Maximum"};
    const char* op = kOps[Below(std::size(kOps))];
    Keep(builder_->AddOne(op, {x.value, y.value}, {}, {}), *full);
    if (Below(2) == 0) Keep(builder_->AddOne(op, {y.value, x.value}, {}, {}), *full);
  }

  void AddReduction(const Known& x) {
    if (x.shape.rank() == 0) return;
    const int64_t axis = Below(x.shape.rank());
    const bool keep = Below(2) == 0;
    std::vector<int64_t> dims(x.shape.dims().begin(), x.shape.dims().end());
    if (keep) {
      dims[axis] = 1;
    } else {
      dims.erase(dims.begin() + axis);
    }
    const StatusOr<Shape> shape = Shape::Create(dims);
    if (!shape.ok()) return;
    switch (Below(3)) {
      case 0:
        return Keep(ReduceSum(x.value, {axis}, keep), *shape);
      case 1:
        return Keep(ReduceMean(x.value, {axis}, keep), *shape);
      default:
        return Keep(ReduceMax(x.value, {axis}, keep), *shape);
    }
  }

  void AddUpdate(const Known& x) {
    if (x.shape != variable_shape_) return;
    updates_.push_back(AssignAdd(variable_, x.value));
    values_.push_back({ReadVariable(variable_), variable_shape_});
  }

  // Of a sum with respect to an input, if the sum depends on it.
  void AddGradient() {
    for (int attempt = 0; attempt < 8; ++attempt) {
      const Known y = Any();
      const int64_t i = Below(static_cast<int64_t>(inputs_.size()));
      const Value loss = ReduceSum(y.value);
      const StatusOr<std::vector<Value>> dx = Gradients({loss}, {inputs_[i]});
      if (!dx.ok()) continue;
      values_.push_back({(*dx)[0], feeds_[i].second.shape()});
      return;
    }
  }

  std::mt19937_64 random_;
  std::unique_ptr<GraphBuilder> builder_;
  std::vector<Known> values_;
  std::vector<Value> inputs_;
  std::vector<std::pair<std::string, Tensor>> feeds_;
  Value variable_;
  Shape variable_shape_;
  Operation initialize_;
  std::vector<Operation> updates_;
};

}  // namespace

RandomGraph MakeRandomGraph(uint64_t seed) { return Maker(seed).Make(); }

}  // namespace millrace::testing
