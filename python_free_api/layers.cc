#include "python_free_api/layers.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "ops/array_ops.h"
#include "ops/math_ops.h"
#include "ops/state_ops.h"

namespace millrace {
namespace {

// The value, in this step, of a new trainable variable.
Value AddParameter(Variables& variables, absl::string_view name, DType dtype,
                   const std::vector<int64_t>& extents, const Initializer& initializer,
                   SourceLocation where) {
  GraphBuilder& b = variables.builder();
  const StatusOr<Shape> shape = Shape::Create(extents);
  // Zero is an extent of tensors, but a layer of no units computes nothing.
  const bool empty = std::find(extents.begin(), extents.end(), 0) != extents.end();
  if (!shape.ok() || empty) {
    b.Fail(InvalidArgument("variable '", b.CurrentScope(), name, "' cannot have the extents [",
                           absl::StrJoin(extents, ","), "]: each must be at least 1",
                           shape.ok() || empty ? "" : StrCat(": ", shape.status().message())),
           where);
    return Value(&b, Port());
  }
  const int i = variables.Add(name, dtype, *shape, initializer, /*trainable=*/true, where);
  return ReadVariable(variables[i].handle, where);
}

}  // namespace

Dense::Dense(Variables& variables, absl::string_view name, int64_t inputs, int64_t outputs,
             Options options, SourceLocation where)
    : name_(name), use_bias_(options.use_bias) {
  auto scope = variables.builder().NameScope(name);
  const Initializer weights = options.weights ? options.weights : GlorotUniform();
  weights_ = AddParameter(variables, "weights", options.dtype, {inputs, outputs}, weights, where);
  if (use_bias_) {
    bias_ = AddParameter(variables, "bias", options.dtype, {outputs}, Zeros(), where);
  }
}

Dense::Dense(Variables& variables, absl::string_view name, int64_t inputs, int64_t outputs,
             SourceLocation where)
    : Dense(variables, name, inputs, outputs, Options(), where) {}

Value Dense::operator()(Value x, SourceLocation where) const {
  if (!x.ok()) return x;
  auto scope = x.builder()->NameScope(name_);
  Value y = MatMul(x, weights_, false, false, where);
  return use_bias_ ? BiasAdd(y, bias_, where) : y;
}

ConvolutionLayer::ConvolutionLayer(Variables& variables, absl::string_view name, int64_t inputs,
                                   int64_t outputs, int64_t kernel, Options options,
                                   SourceLocation where)
    : name_(name), use_bias_(options.use_bias), convolution_(options.convolution) {
  auto scope = variables.builder().NameScope(name);
  const Initializer weights = options.weights ? options.weights : GlorotUniform();
  filter_ = AddParameter(variables, "filter", options.dtype, {kernel, kernel, inputs, outputs},
                         weights, where);
  if (use_bias_) {
    bias_ = AddParameter(variables, "bias", options.dtype, {outputs}, Zeros(), where);
  }
}

ConvolutionLayer::ConvolutionLayer(Variables& variables, absl::string_view name, int64_t inputs,
                                   int64_t outputs, int64_t kernel, SourceLocation where)
    : ConvolutionLayer(variables, name, inputs, outputs, kernel, Options(), where) {}

Value ConvolutionLayer::operator()(Value x, SourceLocation where) const {
  if (!x.ok()) return x;
  auto scope = x.builder()->NameScope(name_);
  Value y = Conv2D(x, filter_, convolution_, where);
  return use_bias_ ? BiasAdd(y, bias_, where) : y;
}

Value Flatten(Value x, SourceLocation where) {
  if (!x.ok()) return x;
  const PartialShape shape = x.shape();
  int64_t elements = 1;
  bool known = shape.has_rank() && shape.rank() > 0;
  for (int i = 1; known && i < shape.rank(); ++i) {
    known = shape.dim_known(i) && !__builtin_mul_overflow(elements, shape.dim(i), &elements);
  }
  if (!known) {
    x.builder()->Fail(InvalidArgument("Flatten needs known extents after the first, but x has ",
                                      "shape ", shape.ToString()),
                      where);
    return Value(x.builder(), Port());
  }
  return Reshape(x, std::vector<int64_t>{-1, elements}, where);
}

Value Dropout(Variables& variables, Value x, double rate, Mode mode, uint64_t seed,
              SourceLocation where) {
  GraphBuilder& b = variables.builder();
  if (!(rate >= 0 && rate < 1)) {
    b.Fail(InvalidArgument("a dropout rate must be in [0,1), but is ", rate), where);
    return Value(&b, Port());
  }
  if (!x.ok() || mode == Mode::kEval || rate == 0) return x;
  auto scope = b.NameScope("dropout");
  // The mask follows from the step's number, which checkpoints hold, and from no counter of the
  // servers: a run that is resumed drops what the uninterrupted one does.
  const Value step = ReadVariable(variables[variables.GlobalStep(where)].handle, where);
  const Value stream =
      Const(b, Tensor::Of<int64_t>({1}, {RandomStream(seed, b.CurrentScope())}), "", where);
  const Value at = Concat({stream, Reshape(step, std::vector<int64_t>{1}, where)}, 0, where);
  const Value uniform =
      StatelessRandomUniform(ShapeOf(x, DType::kInt32, where), at, x.dtype(), where);
  const Value kept =
      Cast(GreaterEqual(uniform, Scalar(b, rate, x.dtype(), where), where), x.dtype(), where);
  return Mul(Mul(x, kept, where), Scalar(b, 1 / (1 - rate), x.dtype(), where), where);
}

}  // namespace millrace
