#ifndef PYTHON_FREE_API_LAYERS_H_
#define PYTHON_FREE_API_LAYERS_H_

#include <string>

#include "ops/nn_ops.h"
#include "python_free_api/variables.h"

namespace millrace {

// Whether a layer computes for training or for use: dropout drops only in training.
enum class Mode { kTrain, kEval };

// x w + bias, for x[n, in]. Made once, used as often as wanted: uses share the parameters.
class Dense {
 public:
  struct Options {
    bool use_bias = true;
    Initializer weights;  // GlorotUniform by default
    DType dtype = DType::kFloat;
  };
  Dense(Variables& variables, absl::string_view name, int64_t inputs, int64_t outputs,
        Options options, SourceLocation where = SourceLocation::Current());
  Dense(Variables& variables, absl::string_view name, int64_t inputs, int64_t outputs,
        SourceLocation where = SourceLocation::Current());
  Value operator()(Value x, SourceLocation where = SourceLocation::Current()) const;

 private:
  std::string name_;
  Value weights_;
  Value bias_;
  bool use_bias_;
};

// Convolution of x[n,h,w,in] with a square filter, and a bias.
class ConvolutionLayer {
 public:
  struct Options {
    Conv2DOptions convolution;
    bool use_bias = true;
    Initializer weights;  // GlorotUniform by default
    DType dtype = DType::kFloat;
  };
  ConvolutionLayer(Variables& variables, absl::string_view name, int64_t inputs, int64_t outputs,
                   int64_t kernel, Options options,
                   SourceLocation where = SourceLocation::Current());
  ConvolutionLayer(Variables& variables, absl::string_view name, int64_t inputs, int64_t outputs,
                   int64_t kernel, SourceLocation where = SourceLocation::Current());
  Value operator()(Value x, SourceLocation where = SourceLocation::Current()) const;

 private:
  std::string name_;
  Value filter_;
  Value bias_;
  bool use_bias_;
  Conv2DOptions convolution_;
};

// [n, a, b, ...] to [n, a*b*...]. The extents after the first must be known.
Value Flatten(Value x, SourceLocation where = SourceLocation::Current());

// In training: zeroes each element with probability `rate` and divides the others by 1 - rate.
Value Dropout(Value x, double rate, Mode mode, uint64_t seed,
              SourceLocation where = SourceLocation::Current());

}  // namespace millrace

#endif  // PYTHON_FREE_API_LAYERS_H_
