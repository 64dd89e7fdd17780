#include "tests/ops/sharding_case.h"

namespace millrace::testing {
namespace {

constexpr char kConv[] = "strides=[1,1,1,1], padding=\"SAME\"";
constexpr char kPool[] = "ksize=[1,2,2,1], strides=[1,2,2,1], padding=\"VALID\"";
constexpr char kAdamInputs[] = "resource[8];resource[8];resource[8];[];[];[];[];[];[];[8]";

constexpr ShardingCase kCases[] = {
    {"BiasAdd", "", "[8,6,4];[4]", "S(0) B", "S(0) B -> S(0)"},
    {"BiasAdd", "", "[8,6,4];[4]", "S(2) B", "S(2) S(0) -> S(2)"},
    {"BiasAdd", "", "[8,6,4];[4]", "B S(0)", "S(2) S(0) -> S(2)"},
    {"BiasAdd", "", "[8,6,4];[4]", "S(0) S(0)", "S(0) B -> S(0)"},
    {"BiasAdd", "", "[8,4];[4]", "P S(0)", "S(1) S(0) -> S(1)"},
    {"BiasAdd", "", "[8,4];[4]", "P P", "P P -> P"},
    {"BiasAdd", "", "[8,4];[4]", "P B", "B B -> B"},
    {"BiasAdd", "data_format=\"NCHW\"", "[8,6,4];[6]", "S(1) B", "S(1) S(0) -> S(1)"},
    {"FusedBatchNormV3", "", "[8,2,2,4];[4];[4];[0];[0]", "S(0) B B B B",
     "B B B B B -> B B B B B B"},
    {"FusedBatchNormGradV3", "", "[8,2,2,4];[8,2,2,4];[4];[4];[4];[0]", "P S(0) B B B B",
     "B B B B B B -> B B B B B"},
    {"DepthwiseConv2dNative", kConv, "[8,5,5,4];[3,3,4,2]", "S(0) P", "S(0) B -> S(0)"},
    {"DepthwiseConv2dNative", kConv, "[8,5,5,4];[3,3,4,2]", "S(3) B", "B B -> B"},
    {"DepthwiseConv2dNativeBackpropInput", kConv, "(8,5,5,4);[3,3,4,2];[8,5,5,8]", "B B S(0)",
     "B B S(0) -> S(0) local 0:0"},
    {"DepthwiseConv2dNativeBackpropFilter", kConv, "[8,5,5,4];(3,3,4,2);[8,5,5,8]", "S(0) B B",
     "S(0) B S(0) -> P"},
    {"BiasAddGrad", "", "[8,4]", "S(0)", "S(0) -> P"},
    {"BiasAddGrad", "", "[8,4]", "S(1)", "S(1) -> S(0)"},
    {"BiasAddGrad", "", "[8,4]", "P", "P -> P"},

    {"Conv2D", kConv, "[8,6,6,4];[3,3,4,2]", "S(0) B", "S(0) B -> S(0)"},
    {"Conv2D", kConv, "[8,6,6,4];[3,3,4,2]", "S(0) P", "S(0) B -> S(0)"},
    {"Conv2D", kConv, "[8,6,6,4];[3,3,4,2]", "B S(3)", "B S(3) -> S(3)"},
    {"Conv2D", kConv, "[8,6,6,4];[3,3,4,2]", "S(3) B", "S(3) S(2) -> P"},
    {"Conv2D", kConv, "[8,6,6,4];[3,3,4,2]", "B S(2)", "S(3) S(2) -> P"},
    {"Conv2D", kConv, "[8,6,6,4];[3,3,4,2]", "S(1) B", "B B -> B"},
    {"Conv2D", kConv, "[8,6,6,4];[3,3,4,2]", "S(1) S(3)", "B S(3) -> S(3)"},
    {"Conv2D", kConv, "[8,6,6,4];[3,3,4,2]", "P B", "P B -> P"},
    {"Conv2D", kConv, "[8,6,6,4];[3,3,4,2]", "P P", "P B -> P"},
    {"Conv2DBackpropInput", kConv, "(8,6,6,4);[3,3,4,2];[8,6,6,2]", "B B S(0)",
     "B B S(0) -> S(0) local 0:0"},
    {"Conv2DBackpropInput", kConv, "(8,6,6,4);[3,3,4,2];[8,6,6,2]", "B S(3) S(3)",
     "B S(3) S(3) -> P"},
    {"Conv2DBackpropInput", kConv, "(8,6,6,4);[3,3,4,2];[8,6,6,2]", "B S(2) B",
     "B S(2) B -> S(3) local 0:3"},
    {"Conv2DBackpropInput", kConv, "(8,6,6,4);[3,3,4,2];[8,6,6,2]", "B B P", "B B P -> P"},
    {"Conv2DBackpropFilter", kConv, "[8,6,6,4];(3,3,4,2);[8,6,6,2]", "S(0) B S(0)",
     "S(0) B S(0) -> P"},
    {"Conv2DBackpropFilter", kConv, "[8,6,6,4];(3,3,4,2);[8,6,6,2]", "S(0) B B",
     "S(0) B S(0) -> P"},
    {"Conv2DBackpropFilter", kConv, "[8,6,6,4];(3,3,4,2);[8,6,6,2]", "B B S(3)",
     "B B S(3) -> S(3) local 1:3"},
    {"Conv2DBackpropFilter", kConv, "[8,6,6,4];(3,3,4,2);[8,6,6,2]", "S(3) B B",
     "S(3) B B -> S(2) local 1:2"},

    {"MaxPool", kPool, "[8,6,6,4]", "S(0)", "S(0) -> S(0)"},
    {"MaxPool", kPool, "[8,6,6,4]", "S(3)", "S(3) -> S(3)"},
    {"MaxPool", kPool, "[8,6,6,4]", "S(1)", "B -> B"},
    {"MaxPool", kPool, "[8,6,6,4]", "P", "B -> B"},
    {"MaxPoolGrad", kPool, "[8,6,6,4];[8,3,3,4];[8,3,3,4]", "S(0) S(0) B",
     "S(0) S(0) S(0) -> S(0)"},
    {"MaxPoolGrad", kPool, "[8,6,6,4];[8,3,3,4];[8,3,3,4]", "B B P", "B B P -> P"},
    {"MaxPoolGrad", kPool, "[8,6,6,4];[8,3,3,4];[8,3,3,4]", "P B S(1)", "B B B -> B"},
    {"AvgPool", kPool, "[8,6,6,4]", "P", "P -> P"},
    {"AvgPool", kPool, "[8,6,6,4]", "S(2)", "B -> B"},
    {"AvgPoolGrad", kPool, "(8,6,6,4);[8,3,3,4]", "B S(0)", "B S(0) -> S(0) local 0:0"},
    {"AvgPoolGrad", kPool, "(8,6,6,4);[8,3,3,4]", "B S(1)", "B B -> B"},
    {"AvgPoolGrad", kPool, "(8,6,6,4);[8,3,3,4]", "B P", "B P -> P"},

    {"Softmax", "", "[8,4]", "S(0)", "S(0) -> S(0)"},
    {"Softmax", "", "[8,4]", "S(1)", "B -> B"},
    {"Softmax", "", "[8,4]", "P", "B -> B"},
    {"LogSoftmax", "", "[8,6,4]", "S(1)", "S(1) -> S(1)"},
    {"SoftmaxCrossEntropyWithLogits", "", "[8,4];[8,4]", "S(0) B", "S(0) S(0) -> S(0) S(0)"},
    {"SoftmaxCrossEntropyWithLogits", "", "[8,4];[8,4]", "S(1) P", "B B -> B B"},
    {"SparseSoftmaxCrossEntropyWithLogits", "", "[8,4];int32[8]", "B S(0)",
     "S(0) S(0) -> S(0) S(0)"},

    // Variables lie as the strategy has laid them out; what changes them lies alike.
    {"ReadVariableOp", "dtype=float", "resource[8]", "S(0)", "S(0) -> S(0)"},
    {"AssignVariableOp", "", "resource[8];[8]", "B S(0)", "B B ->"},
    {"AssignVariableOp", "", "resource[8];[8]", "S(0) B", "S(0) S(0) ->"},
    {"AssignVariableOp", "", "resource[8];[8]", "P B", "!a variable cannot be a partial sum"},
    {"AssignAddVariableOp", "", "resource[8];[8]", "B P", "B B ->"},
    {"AssignSubVariableOp", "", "resource[8];[8]", "B P", "B B ->"},
    {"ResourceApplyGradientDescent", "", "resource[8];[];[8]", "B B P", "B B B ->"},
    {"ResourceApplyKerasMomentum", "", "resource[8];resource[8];[];[8];[]", "S(0) B B P P",
     "S(0) S(0) B S(0) B ->"},
    {"ResourceApplyAdagrad", "", "resource[8];resource[8];[];[8]", "S(0) B B P",
     "S(0) S(0) B S(0) ->"},
    {"ResourceApplyRMSProp", "", "resource[8];resource[8];resource[8];[];[];[];[];[8]",
     "S(0) B B P P B B P", "S(0) S(0) S(0) B B B B S(0) ->"},
    {"ResourceApplyMomentum", "", "resource[8];resource[8];[];[8];[]", "S(0) B B P P",
     "S(0) S(0) B S(0) B ->"},
    {"ResourceApplyAdam", "", kAdamInputs, "B B B B B B B B B P", "B B B B B B B B B B ->"},
};

}  // namespace

absl::Span<const ShardingCase> NnShardingCases() { return kCases; }

}  // namespace millrace::testing
