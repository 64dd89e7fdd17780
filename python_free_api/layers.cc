#include "python_free_api/layers.h"

#include <utility>

#include "ops/array_ops.h"
#include "ops/math_ops.h"
#include "ops/state_ops.h"

namespace millrace {
namespace {

// The value, in this step, of a new trainable variable.
Value AddParameter(Variables& variables, absl::string_view name, DType dtype, const Shape& shape,
                   const Initializer& initializer, SourceLocation where) {
  const int i = variables.Add(name, dtype, shape, initializer, /*trainable=*/true, where);
  return ReadVariable(variables[i].handle, where);
}

}  // namespace

Dense::Dense(Variables& variables, absl::string_view name, int64_t inputs, int64_t outputs,
             Options options, SourceLocation where)
    : name_(name), use_bias_(options.use_bias) {
  auto scope = variables.builder().NameScope(name);
  const Initializer weights = options.weights ? options.weights : GlorotUniform();
  weights_ =
      AddParameter(variables, "weights", options.dtype, Shape{inputs, outputs}, weights, where);
  if (use_bias_) {
    bias_ = AddParameter(variables, "bias", options.dtype, Shape{outputs}, Zeros(), where);
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
  filter_ = AddParameter(variables, "filter", options.dtype, Shape{kernel, kernel, inputs, outputs},
                         weights, where);
  if (use_bias_) {
    bias_ = AddParameter(variables, "bias", options.dtype, Shape{outputs}, Zeros(), where);
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
  for (int i = 1; i < shape.rank(); ++i) {
    if (!shape.dim_known(i)) elements = -1;
    if (elements >= 0) elements *= shape.dim(i);
  }
  if (!shape.has_rank() || shape.rank() == 0 || elements < 0) {
    x.builder()->Fail(InvalidArgument("Flatten needs known extents after the first, but x has ",
                                      "shape ", shape.ToString()),
                      where);
    return Value(x.builder(), Port());
  }
  return Reshape(x, std::vector<int64_t>{-1, elements}, where);
}

Value Dropout(Value x, double rate, Mode mode, uint64_t seed, SourceLocation where) {
  if (!x.ok() || mode == Mode::kEval || rate == 0) return x;
  if (!(rate > 0 && rate < 1)) {
    x.builder()->Fail(InvalidArgument("a dropout rate must be in [0,1), but is ", rate), where);
    return Value(x.builder(), Port());
  }
  auto scope = x.builder()->NameScope("dropout");
  Value uniform = RandomUniform(ShapeOf(x, DType::kInt32, where), x.dtype(), seed, where);
  Value kept = Cast(GreaterEqual(uniform, Scalar(*x.builder(), rate, x.dtype(), where), where),
                    x.dtype(), where);
  return Mul(Mul(x, kept, where), Scalar(*x.builder(), 1 / (1 - rate), x.dtype(), where), where);
}

}  // namespace millrace
