#include "tests/ops/shape_case.h"

namespace millrace::testing {
namespace {

constexpr char kConv[] = "strides=[1,1,1,1], padding=\"VALID\"";
constexpr char kSame[] = "strides=[1,2,2,1], padding=\"SAME\"";
constexpr char kPool[] = "ksize=[1,2,2,1], strides=[1,2,2,1], padding=\"VALID\"";
constexpr char kSamePool[] = "ksize=[1,3,3,1], strides=[1,2,2,1], padding=\"SAME\"";

constexpr ShapeCase kCases[] = {
    {"BiasAdd", "", "[?,3];[3]", "[?,3]"},
    {"BiasAdd", "", "[2,4,?];[3]", "[2,4,3]"},
    {"BiasAdd", "", "?;[3]", "?"},
    {"BiasAdd", "", "[2,3];[4]", "!the bias has 4 elements, but the last axis of the value [2,3]"},
    {"BiasAdd", "", "[2,3];[1,3]", "!input 1 has shape [1,3], but rank 1 is needed"},
    {"BiasAdd", "", "[3];[3]", "!must have rank 2 or more, but has shape [3]"},
    {"BiasAdd", "data_format=\"NCHW\"", "[2,3];[3]", "!data_format 'NCHW' is not provided"},
    {"BiasAdd", "data_format=\"HWNC\"", "[2,3];[3]", "!must be one of 'NHWC', 'NCHW'"},
    {"BiasAddGrad", "", "[?,3]", "[3]"},
    {"BiasAddGrad", "", "?", "[?]"},
    {"BiasAddGrad", "", "[]", "!out_backprop is a scalar"},

    {"Conv2D", kConv, "[?,28,28,1];[5,5,1,6]", "[?,24,24,6]"},
    {"Conv2D", kSame, "[8,28,27,3];[3,3,3,6]", "[8,14,14,6]"},
    {"Conv2D", kSame, "[8,?,27,3];?", "[8,?,14,?]"},
    {"Conv2D", kConv, "[8,9,9,3];[?,3,3,6]", "[8,?,7,6]"},
    {"Conv2D", "strides=[1,1,1,1], dilations=[1,2,3,1], padding=\"VALID\"", "[1,9,9,1];[3,3,1,1]",
     "[1,5,3,1]"},
    {"Conv2D", kConv, "[0,9,9,3];[3,3,3,6]", "[0,7,7,6]"},
    {"Conv2D", kConv, "[1,28,28,1];[5,5,3,16]",
     "!filter [5,5,3,16] expects 3 input channels, but the input has 1"},
    {"Conv2D", kConv, "[1,4,28,1];[5,5,1,16]",
     "!a window of height 5 with dilation 1 does not fit in an image of height 4"},
    {"Conv2D", kConv, "[28,28,1];[5,5,1,16]", "!input 0 has shape [28,28,1], but rank 4 is needed"},
    {"Conv2D", "strides=[1,1,1,1], padding=\"VALID\", data_format=\"NCHW\"",
     "[1,1,28,28];[5,5,1,6]", "!data_format 'NCHW' is not provided; use 'NHWC'"},
    {"Conv2D", "strides=[1,1,1,1], padding=\"EXPLICIT\", explicit_paddings=[0,0,1,1,1,1,0,0]",
     "[1,28,28,1];[5,5,1,6]", "!padding 'EXPLICIT' is not provided; use 'SAME' or 'VALID'"},
    {"Conv2D", "strides=[1,1,1,1], padding=\"SAME\", explicit_paddings=[0,0,1,1,1,1,0,0]",
     "[1,28,28,1];[5,5,1,6]", "!explicit_paddings are given, but padding is 'SAME'"},
    {"Conv2D", "strides=[2,1,1,1], padding=\"SAME\"", "[1,28,28,1];[5,5,1,6]",
     "!attribute 'strides' must be 1 for batch and channels, but is 2 and 1"},
    {"Conv2D", "strides=[1,0,1,1], padding=\"SAME\"", "[1,28,28,1];[5,5,1,6]",
     "!attribute 'strides' must be positive, but is 0 and 1"},
    {"Conv2D", "strides=[1,1], padding=\"SAME\"", "[1,28,28,1];[5,5,1,6]",
     "!attribute 'strides' needs 4 elements, but has 2"},
    {"Conv2DBackpropInput", kConv, "(8,28,28,1);[5,5,1,6];[8,24,24,6]", "[8,28,28,1]"},
    {"Conv2DBackpropInput", kConv, "int32[4];[5,5,1,6];[8,24,24,6]", "[8,?,?,1]"},
    {"Conv2DBackpropInput", kConv, "int32[?];?;[?,24,24,6]", "[?,?,?,?]"},
    {"Conv2DBackpropInput", kConv, "(8,28,28,1);[5,5,1,6];[8,28,28,6]",
     "!out_backprop has shape [8,28,28,6], but the convolution of [8,28,28,1]"},
    {"Conv2DBackpropInput", kConv, "(28,28);[5,5,1,6];[8,24,24,6]",
     "!input_sizes must have 4 elements, but has 2"},
    {"Conv2DBackpropFilter", kSame, "[?,28,28,3];(3,3,3,6);[?,14,14,6]", "[3,3,3,6]"},
    {"Conv2DBackpropFilter", kSame, "[?,28,28,3];int32[4];[?,14,14,6]", "[?,?,3,6]"},
    {"Conv2DBackpropFilter", kSame, "[8,28,28,3];(3,3,3,6);[9,14,14,6]", "!out_backprop has shape"},

    {"MaxPool", kPool, "[?,24,25,6]", "[?,12,12,6]"},
    {"MaxPool", kSamePool, "[2,24,25,6]", "[2,12,13,6]"},
    {"MaxPool", kPool, "?", "[?,?,?,?]"},
    {"MaxPool", kPool, "[1,1,4,6]", "!a window of height 2"},
    {"MaxPool", "ksize=[1,2,2,3], strides=[1,2,2,1], padding=\"VALID\"", "[1,4,4,6]",
     "!attribute 'ksize' must be 1 for batch and channels, but is 1 and 3"},
    {"MaxPoolGrad", kPool, "[?,24,24,6];[?,12,12,6];[4,12,12,6]", "[?,24,24,6]"},
    {"MaxPoolGrad", kPool, "[4,24,24,6];[4,12,12,6];[4,12,11,6]",
     "!grad has shape [4,12,11,6], but pooling [4,24,24,6] gives [4,12,12,6]"},
    {"AvgPool", kSamePool, "[2,24,25,6]", "[2,12,13,6]"},
    {"AvgPoolGrad", kPool, "(4,24,24,6);[4,12,12,6]", "[4,24,24,6]"},
    {"AvgPoolGrad", kPool, "int32[4];[?,12,12,6]", "[?,?,?,6]"},
    {"AvgPoolGrad", kPool, "(4,24,24,6);[4,12,11,6]", "!grad has shape [4,12,11,6]"},
    {"AvgPoolGrad", kPool, "(4,24,24);[4,12,12,6]",
     "!orig_input_shape must have 4 elements, but has 3"},

    {"Softmax", "", "[2,?,10]", "[2,?,10]"},
    {"Softmax", "", "[]", "!the logits are a scalar"},
    {"LogSoftmax", "", "[10]", "[10]"},
    {"SoftmaxCrossEntropyWithLogits", "", "[?,10];[32,?]", "[32];[32,10]"},
    {"SoftmaxCrossEntropyWithLogits", "", "[32,10];[32,9]",
     "!logits and labels must have one shape, but have [32,10] and [32,9]"},
    {"SparseSoftmaxCrossEntropyWithLogits", "", "[?,10];int64[32]", "[32];[32,10]"},
    {"SparseSoftmaxCrossEntropyWithLogits", "", "[32,10];int32[31]",
     "!logits [32,10] have 32 rows, but there are 31 labels"},
    {"SparseSoftmaxCrossEntropyWithLogits", "", "[32,10];int32[32,1]", "!rank 1 is needed"},
};

}  // namespace

absl::Span<const ShapeCase> NnShapeCases() { return kCases; }

}  // namespace millrace::testing
