#include "tests/ops/sharding_case.h"

namespace millrace::testing {
namespace {

constexpr ShardingCase kCases[] = {
    {"IdentityN", "", "[8];[8,4];[]", "S(0) P B", "S(0) P B -> S(0) P B"},
    {"PreventGradient", "", "[8]", "S(0)", "S(0) -> S(0)"},
    {"Identity", "", "[8,4]", "P", "P -> P"},
    {"Identity", "", "[8,4]", "S(1)", "S(1) -> S(1)"},
    {"StopGradient", "", "[8,4]", "S(0)", "S(0) -> S(0)"},
    {"Fill", "", "(8,4);[]", "B B", "B B -> B"},
    {"Fill", "", "(8,4);[]", "B P", "B B -> B"},
    {"Fill", "", "(8,4);[]", "B B", "B B -> S(1) local 0:1", "S(1)"},
    {"ZerosLike", "", "[8,4]", "S(0)", "S(0) -> S(0)"},
    {"ZerosLike", "", "[8,4]", "P", "P -> B"},
    {"OnesLike", "", "[8,4]", "P", "P -> B"},

    {"Shape", "", "[8,4]", "P", "P -> B"},
    {"Shape", "", "[?,4]", "S(0)", "!shape unresolved along a split dimension: the input [?,4]"},
    {"Size", "", "[8,4]", "S(1)", "!shape unresolved along a split dimension"},
    {"Rank", "", "[8,4]", "S(1)", "S(1) -> B"},

    {"Reshape", "", "[8,2,3];(8,6)", "S(0) B", "S(0) B -> S(0) local 1:0"},
    {"Reshape", "", "[8,2,3];(-1,6)", "S(0) B", "S(0) B -> S(0)"},
    {"Reshape", "", "[8,2,3];(8,-1)", "S(0) B", "S(0) B -> S(0) local 1:0"},
    {"Reshape", "", "[8,6];(8,2,3)", "S(1) B", "S(1) B -> S(1) local 1:1"},
    {"Reshape", "", "[8,6];(4,2,6)", "S(0) B", "S(0) B -> S(0) local 1:0"},
    {"Reshape", "", "[8,6];(48)", "S(0) B", "S(0) B -> S(0) local 1:0"},
    {"Reshape", "", "[8,6];(48)", "S(1) B", "B B -> B"},
    {"Reshape", "", "[8,6];(1,8,6)", "S(0) B", "S(0) B -> S(1) local 1:1"},
    {"Reshape", "", "[8,6];(3,16)", "S(0) B", "B B -> B"},
    {"Reshape", "", "[8,6];(48)", "P B", "P B -> P"},
    {"Reshape", "", "[8,6];int32[2]", "S(0) B", "B B -> B"},
    {"Reshape", "", "[?,6];(-1,2,3)", "S(0) B",
     "!the shape [?,6] of input 0 is unresolved along the split dimension 0"},
    {"ExpandDims", "", "[8,4];=0", "S(0) B", "S(0) B -> S(1)"},
    {"ExpandDims", "", "[8,4];=-1", "S(1) B", "S(1) B -> S(1)"},
    {"ExpandDims", "", "[8,4];=1", "P B", "P B -> P"},
    {"ExpandDims", "", "[8,4];int32[]", "S(0) B", "B B -> B"},
    {"Squeeze", "squeeze_dims=[0]", "[1,8,1]", "S(1)", "S(1) -> S(0)"},
    {"Squeeze", "", "[1,8,1]", "S(1)", "B -> B"},
    {"Squeeze", "", "[1,8,1]", "P", "P -> P"},

    {"Transpose", "", "[8,4,2];(2,0,1)", "S(0) B", "S(0) B -> S(1)"},
    {"Transpose", "", "[8,4];int32[2]", "S(0) B", "B B -> B"},
    {"Transpose", "", "[8,4];(1,0)", "P B", "P B -> P"},
    {"ConcatV2", "", "[8,4];[8,2];=1", "S(0) B B", "S(0) S(0) B -> S(0)"},
    {"ConcatV2", "", "[8,4];[8,2];=1", "S(1) B B", "B B B -> B"},
    {"ConcatV2", "", "[8,4];[8,2];=1", "P P B", "P P B -> P"},
    {"ConcatV2", "", "[8,4];[8,2];=1", "P B B", "B B B -> B"},
    {"Slice", "", "[8,4];(0,1);(8,2)", "S(0) B B", "S(0) B B -> S(0) local 2:0"},
    {"Slice", "", "[8,4];(0,1);(-1,2)", "S(0) B B", "S(0) B B -> S(0)"},
    {"Slice", "", "[8,4];(0,1);(8,2)", "S(1) B B", "B B B -> B"},
    {"Slice", "", "[8,4];(0,1);(8,2)", "P B B", "P B B -> P"},
    {"Pad", "", "[8,4];((0,0),(1,1))", "S(0) B", "S(0) B -> S(0)"},
    {"Pad", "", "[8,4];((0,0),(1,1))", "S(1) B", "B B -> B"},
    {"Pad", "", "[8,4];((0,0),(1,1))", "P B", "P B -> P"},
    {"Tile", "", "[8,4];(1,3)", "S(0) B", "S(0) B -> S(0)"},
    {"Tile", "", "[8,4];(1,3)", "S(1) B", "B B -> B"},
    {"BroadcastTo", "", "[8,1];(2,8,4)", "S(0) B", "S(0) B -> S(1) local 1:1"},
    {"BroadcastTo", "", "[8,1];(8,4)", "P B", "P B -> P"},
    {"BroadcastTo", "", "[8,1];int32[2]", "S(0) B", "B B -> B"},
    {"BroadcastTo", "", "[8,1];(8,4)", "B B", "B B -> S(1) local 1:1", "S(1)"},
    {"BroadcastTo", "", "[8,1];(8,4)", "B B", "B B -> B", "S(0)"},
    {"BroadcastTo", "", "[];(8,4)", "B B", "B B -> S(0) local 1:0", "S(0)"},

    {"OneHot", "", "int32[8];=10;[];[]", "S(0) B B B", "S(0) B B B -> S(0)"},
    {"OneHot", "axis=0", "int32[8];=10;[];[]", "S(0) B B P", "S(0) B B B -> S(1)"},
    {"GatherV2", "", "[5,3];int32[8,2];=0", "B S(0) B", "B S(0) B -> S(0)"},
    {"GatherV2", "", "[5,4];int32[8,2];=0", "S(1) B B", "S(1) B B -> S(2)"},
    {"GatherV2", "", "[4,5];int32[8,2];=1", "S(0) B B", "S(0) B B -> S(0)"},
    {"GatherV2", "", "[4,5];int32[8,2];=0", "S(0) B B", "B B B -> B"},
    {"GatherV2", "", "[5,3];int32[8];=0", "P B B", "P B B -> P"},
    {"GatherV2", "batch_dims=1", "[8,5];int32[8,2];=1", "S(0) S(0) B", "B B B -> B"},
};

}  // namespace

absl::Span<const ShardingCase> ArrayShardingCases() { return kCases; }

}  // namespace millrace::testing
