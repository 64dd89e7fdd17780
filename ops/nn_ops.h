#ifndef OPS_NN_OPS_H_
#define OPS_NN_OPS_H_

#include <string>
#include <vector>

#include "core/graph/graph_builder.h"

// Neural networks. Images are NHWC: [batch, height, width, channels].
namespace millrace {

class OpRegistry;
void RegisterNnOps(OpRegistry& registry);

enum class Padding {
  kSame,   // output extent = ceil(input / stride); zeros around
  kValid,  // no padding
};

// x[..., n] + bias[n]
Value BiasAdd(Value x, Value bias, SourceLocation where = SourceLocation::Current());

struct Conv2DOptions {
  int64_t stride_height = 1;
  int64_t stride_width = 1;
  Padding padding = Padding::kSame;
  int64_t dilation_height = 1;
  int64_t dilation_width = 1;
};
// Cross-correlation of x[n,h,w,c] with filter[fh,fw,c,k].
Value Conv2D(Value x, Value filter, Conv2DOptions options = {},
             SourceLocation where = SourceLocation::Current());

// As Conv2D, each channel with filters of its own: filter[fh,fw,c,m] gives [n,h',w',c*m].
Value DepthwiseConv2D(Value x, Value filter, Conv2DOptions options = {},
                      SourceLocation where = SourceLocation::Current());

// Batch normalisation (Ioffe & Szegedy 2015) of x[n,h,w,c]: y = (x - m) / sqrt(v + epsilon) * scale
// + offset, each channel with its own m and v: in training those of the batch, else `mean` and
// `variance`.
struct BatchNormOptions {
  float epsilon = 1e-3f;
  bool training = true;
  float average_factor = 1;  // how much of the batch's statistics goes into the new ones
};
struct BatchNormalized {
  Value y;
  // In training the new statistics: average_factor * of the batch (the variance unbiased) + (1 -
  // average_factor) * as given, which may be empty if average_factor is 1.
  Value mean, variance;
};
BatchNormalized FusedBatchNorm(Value x, Value scale, Value offset, Value mean, Value variance,
                               BatchNormOptions options = {},
                               SourceLocation where = SourceLocation::Current());

struct PoolOptions {
  int64_t window_height = 2;
  int64_t window_width = 2;
  int64_t stride_height = 2;
  int64_t stride_width = 2;
  Padding padding = Padding::kValid;
};
// The largest element of each window; padding never wins.
Value MaxPool(Value x, PoolOptions options = {}, SourceLocation where = SourceLocation::Current());
// The mean of each window; padding does not count.
Value AvgPool(Value x, PoolOptions options = {}, SourceLocation where = SourceLocation::Current());

// Over the last axis.
Value Softmax(Value logits, SourceLocation where = SourceLocation::Current());
Value LogSoftmax(Value logits, SourceLocation where = SourceLocation::Current());
// Cross-entropy of logits[n,k] with the classes labels[n] (int32 or int64): losses[n]. A label out
// of range gives an error of the step.
Value SparseCrossEntropy(Value logits, Value labels,
                         SourceLocation where = SourceLocation::Current());
// As above with distributions labels[n,k].
Value CrossEntropy(Value logits, Value labels, SourceLocation where = SourceLocation::Current());

}  // namespace millrace

#endif  // OPS_NN_OPS_H_
