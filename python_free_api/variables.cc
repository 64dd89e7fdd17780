#include "python_free_api/variables.h"

#include <cmath>
#include <utility>

#include "ops/array_ops.h"
#include "ops/math_ops.h"
#include "ops/state_ops.h"

namespace millrace {
namespace {

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
    const double limit = std::sqrt(6.0 / (fan_in + fan_out));
    Value uniform = RandomUniform(DimsOf(b, shape, where), dtype, seed, where);
    return Sub(Mul(uniform, Scalar(b, 2 * limit, dtype, where), where),
               Scalar(b, limit, dtype, where), where);
  };
}

Initializer HeNormal(uint64_t seed) {
  return [seed](GraphBuilder& b, DType dtype, const Shape& shape, SourceLocation where) {
    const double deviation = std::sqrt(2.0 / Fans(shape).first);
    return Mul(TruncatedNormal(DimsOf(b, shape, where), dtype, seed, where),
               Scalar(b, deviation, dtype, where), where);
  };
}

Initializer Normal(double deviation, uint64_t seed) {
  return [deviation, seed](GraphBuilder& b, DType dtype, const Shape& shape, SourceLocation where) {
    return Mul(RandomNormal(DimsOf(b, shape, where), dtype, seed, where),
               Scalar(b, deviation, dtype, where), where);
  };
}

int Variables::Add(absl::string_view name, DType dtype, const Shape& shape,
                   const Initializer& initializer, bool trainable, SourceLocation where) {
  Variable v;
  v.name = StrCat(builder_.CurrentScope(), name);
  v.dtype = dtype;
  v.shape = shape;
  v.trainable = trainable;
  v.handle = VariableHandle(builder_, name, dtype, shape, where);
  {
    // These run in steps of their own: not ordered with the reads and updates of training.
    auto scope = builder_.NameScope(StrCat(name, "_setup"));
    Value initial = initializer(builder_, dtype, shape, where);
    v.initialize = builder_.Add("AssignVariableOp", {v.handle, initial}, {{"dtype", dtype}}, where,
                                "initialize");
    Value restored = Placeholder(builder_, dtype, shape, "restored", where);
    Operation restore = builder_.Add("AssignVariableOp", {v.handle, restored}, {{"dtype", dtype}},
                                     where, "restore");
    v.saved =
        builder_.AddOne("ReadVariableOp", {v.handle}, {{"dtype", dtype}}, where, "saved").name();
    v.restore_feed = restored.name();
    v.restore_target = restore.name();
  }
  variables_.push_back(std::move(v));
  return size() - 1;
}

Operation Variables::Initialize(SourceLocation where) {
  std::vector<Operation> all;
  for (const Variable& v : variables_) all.push_back(v.initialize);
  return Group(builder_, std::move(all), "initialize", where);
}

}  // namespace millrace
