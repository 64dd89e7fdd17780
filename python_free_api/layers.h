#ifndef PYTHON_FREE_API_LAYERS_H_
#define PYTHON_FREE_API_LAYERS_H_

#include <string>

#include "ops/nn_ops.h"
#include "python_free_api/variables.h"

namespace millrace {

// Whether a layer computes for training or for use: dropout drops only in training.
enum class Mode { kTrain, kEval };

// x w + bias, for x[n, in]: [n, out]. Made once, used as often as wanted: uses share the
// parameters,
// "<name>/weights" [in, out] and "<name>/bias" [out], which starts as zeros.
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

// Convolution of x[n,h,w,in] with a square filter, and a bias: [n,h',w',out]. As Dense, with the
// parameters "<name>/filter" [kernel, kernel, in, out] and "<name>/bias" [out].
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

// In training: zeroes each element with probability `rate`, in [0,1), and divides the others by
// 1 - rate (Srivastava et al. 2014). In use: x. Which elements follows from the seed, the name
// scope and the global step of `variables`: other ones in each step that Minimize makes, the same
// ones when a step is tried again or comes after a restore.
Value Dropout(Variables& variables, Value x, double rate, Mode mode, uint64_t seed = 0,
              SourceLocation where = SourceLocation::Current());

}  // namespace millrace

#endif  // PYTHON_FREE_API_LAYERS_H_
