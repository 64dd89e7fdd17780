#include "python_free_api/variables.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ops/array_ops.h"
#include "ops/math_ops.h"
#include "ops/state_ops.h"

namespace millrace {
namespace {

// Of the normal distribution cut at two deviations: sqrt(1 - 4 pdf(2) / (2 cdf(2) - 1)).
constexpr double kTruncatedDeviation = 0.87962566103423978;

// Inputs and outputs that one element of a weight connects: a filter's window counts in both.
std::pair<double, double> Fans(const Shape& shape) {
  if (shape.rank() == 0) return {1, 1};
  if (shape.rank() == 1) return {shape.dim(0), shape.dim(0)};
  double window = 1;
  for (int i = 0; i + 2 < shape.rank(); ++i) window *= static_cast<double>(shape.dim(i));
  return {window * shape.dim(shape.rank() - 2), window * shape.dim(shape.rank() - 1)};
}

Value DimsOf(GraphBuilder& b, const Shape& shape, SourceLocation where) {
  return IntVector(b, std::vector<int64_t>(shape.dims().begin(), shape.dims().end()), where);
}

// Where an initialiser draws: the start of the stream of (seed, the variable, whose scope is the
// current one). By no counter of the servers, which go on from what they ran before.
Value StreamOf(GraphBuilder& b, uint64_t seed, SourceLocation where) {
  return Const(b, Tensor::Of<int64_t>({2}, {RandomStream(seed, b.CurrentScope()), 0}), "", where);
}

Value Scaled(Value x, double factor, SourceLocation where) {
  return x.ok() ? Mul(x, Scalar(*x.builder(), factor, x.dtype(), where), where) : x;
}

std::string LineOf(const SourceLocation& where) {
  return where.line > 0 ? StrCat(where.file, ":", where.line) : "an unknown line";
}

}  // namespace

Initializer Zeros() { return Constant(0); }

Initializer Constant(double value) {
  return [value](GraphBuilder& b, DType dtype, const Shape& shape, SourceLocation where) {
    if (shape.rank() == 0) return Scalar(b, value, dtype, where);
    return Fill(DimsOf(b, shape, where), Scalar(b, value, dtype, where), where);
  };
}

Initializer GlorotUniform(uint64_t seed) {
  return [seed](GraphBuilder& b, DType dtype, const Shape& shape, SourceLocation where) {
    const auto [fan_in, fan_out] = Fans(shape);
    // A parameter without elements has no fans.
    const double limit = std::sqrt(6.0 / std::max(fan_in + fan_out, 1.0));
    Value uniform =
        StatelessRandomUniform(DimsOf(b, shape, where), StreamOf(b, seed, where), dtype, where);
    return Sub(Scaled(uniform, 2 * limit, where), Scalar(b, limit, dtype, where), where);
  };
}

Initializer HeNormal(uint64_t seed) {
  return [seed](GraphBuilder& b, DType dtype, const Shape& shape, SourceLocation where) {
    const double deviation = std::sqrt(2.0 / std::max(Fans(shape).first, 1.0));
    Value cut =
        StatelessTruncatedNormal(DimsOf(b, shape, where), StreamOf(b, seed, where), dtype, where);
    return Scaled(cut, deviation / kTruncatedDeviation, where);
  };
}

Initializer Normal(double deviation, uint64_t seed) {
  return [deviation, seed](GraphBuilder& b, DType dtype, const Shape& shape, SourceLocation where) {
    if (!(deviation >= 0 && std::isfinite(deviation))) {
      b.Fail(InvalidArgument("the deviation of a normal distribution must be a number of at least ",
                             "0, but is ", deviation),
             where);
    }
    Value drawn =
        StatelessRandomNormal(DimsOf(b, shape, where), StreamOf(b, seed, where), dtype, where);
    return Scaled(drawn, deviation, where);
  };
}

int Variables::Add(absl::string_view name, DType dtype, const Shape& shape,
                   const Initializer& initializer, bool trainable, SourceLocation where) {
  Variable v;
  v.name = StrCat(builder_.CurrentScope(), name);
  v.dtype = dtype;
  v.shape = shape;
  v.trainable = trainable;
  v.handle = Value(&builder_, Port());
  v.initialize = Operation(&builder_, -1);
  if (builder_.status().ok()) builder_.Fail(Make(name, initializer, where, v), where);
  variables_.push_back(std::move(v));
  return size() - 1;
}

Status Variables::Make(absl::string_view name, const Initializer& initializer, SourceLocation where,
                       Variable& v) {
  if (name.empty()) return InvalidArgument("a variable needs a name");
  if (!initializer) {
    return InvalidArgument("variable '", v.name, "' has no initializer: give one, such as Zeros()");
  }
  const auto [made, fresh] = made_at_.emplace(v.name, where);
  if (!fresh) {
    return InvalidArgument("variable '", v.name, "' was made already, at ", LineOf(made->second),
                           ": choose another name or a name scope");
  }
  v.handle = VariableHandle(builder_, name, v.dtype, v.shape, where);
  // The rest runs in steps of its own: not ordered with the reads and updates of training.
  const auto alone = builder_.NoControlDependencies();
  const auto scope = builder_.NameScope(StrCat(name, "_setup"));
  const Value initial = initializer(builder_, v.dtype, v.shape, where);
  MR_RETURN_IF_ERROR(builder_.status());
  if (!initial.ok()) {
    return InvalidArgument("the initializer of variable '", v.name, "' gives no value");
  }
  const AttrMap attrs{{"dtype", v.dtype}};
  v.initialize = builder_.Add("AssignVariableOp", {v.handle, initial}, attrs, where, "initialize");
  const Value restored = Placeholder(builder_, v.dtype, v.shape, "restored", where);
  const Operation restore =
      builder_.Add("AssignVariableOp", {v.handle, restored}, attrs, where, "restore");
  v.saved = builder_.AddOne("ReadVariableOp", {v.handle}, attrs, where, "saved").name();
  v.restore_feed = restored.name();
  v.restore_target = restore.name();
  return absl::OkStatus();
}

int Variables::GlobalStep(SourceLocation where) {
  if (global_step_ < 0) {
    const auto root = builder_.RootScope();
    global_step_ = Add("global_step", DType::kInt64, Shape(), Zeros(), /*trainable=*/false, where);
  }
  return global_step_;
}

Operation Variables::Initialize(SourceLocation where) {
  std::vector<Operation> all;
  for (const Variable& v : variables_) all.push_back(v.initialize);
  return Group(builder_, std::move(all), "initialize", where);
}

}  // namespace millrace
