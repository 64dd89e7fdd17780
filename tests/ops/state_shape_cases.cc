#include "tests/ops/shape_case.h"

namespace millrace::testing {
namespace {

// The shape of a handle is that of the variable behind it.
constexpr ShapeCase kCases[] = {
    {"VarHandleOp", "dtype=float, shape=[3,4], shared_name=\"w\"", "", "[3,4]"},
    {"VarHandleOp", "dtype=float", "", "!attribute 'shape' (shape) is missing"},
    {"ReadVariableOp", "dtype=float", "resource[3,4]", "[3,4]"},
    {"ReadVariableOp", "dtype=float", "[3,4]", "!'resource' is float, but must be resource"},
    {"VarIsInitializedOp", "", "resource[3,4]", "[]"},
    {"AssignVariableOp", "", "resource[3,4];[3,?]", ""},
    {"AssignVariableOp", "", "resource[3,4];[4,4]",
     "!the value (input 1) has shape [4,4], but the variable has [3,4]"},
    {"AssignAddVariableOp", "", "resource[3];[3]", ""},
    {"AssignAddVariableOp", "", "resource[3];[]", "!the value (input 1) has shape []"},
    {"AssignSubVariableOp", "", "resource[3];?", ""},
    {"ResourceApplyGradientDescent", "", "resource[3];[];[3]", ""},
    {"ResourceApplyGradientDescent", "", "resource[3];[];[4]", "!the value (input 2)"},
    {"ResourceApplyGradientDescent", "", "resource[3];[1];[3]", "!input 1 must be a scalar"},
    {"ResourceApplyMomentum", "use_nesterov=true", "resource[3];resource[3];[];[3];[]", ""},
    {"ResourceApplyMomentum", "", "resource[3];resource[2];[];[3];[]", "!the slot variable"},
    {"ResourceApplyMomentum", "", "resource[3];resource[3];[];[2];[]", "!the value (input 3)"},
    {"ResourceApplyAdam", "", "resource[3];resource[3];resource[3];[];[];[];[];[];[];[3]", ""},
    {"ResourceApplyAdam", "", "resource[3];resource[3];resource[3];[];[];[];[];[];[3];[3]",
     "!input 8 must be a scalar, but has shape [3]"},
    {"ResourceApplyKerasMomentum", "", "resource[3];resource[3];[];[3];[]", ""},
    {"ResourceApplyKerasMomentum", "", "resource[3];resource[3];[];[2];[]", "!the value (input 3)"},
    {"ResourceApplyAdagrad", "", "resource[3];resource[3];[];[3]", ""},
    {"ResourceApplyAdagrad", "", "resource[3];resource[3];[3];[3]", "!input 2 must be a scalar"},
    {"ResourceApplyRMSProp", "", "resource[3];resource[3];resource[3];[];[];[];[];[3]", ""},
    {"ResourceApplyRMSProp", "", "resource[3];resource[3];resource[2];[];[];[];[];[3]",
     "!the slot variable"},
    {"ResourceGather", "dtype=float", "resource[5,3];int32[2,?]", "[2,?,3]"},
    {"ResourceGather", "dtype=float, batch_dims=1", "resource[5,3,2];int32[5,4]", "[5,4,2]"},
    {"ResourceGather", "dtype=float, batch_dims=2", "resource[5,3];int32[5,3]",
     "!batch_dims 2 does not fit"},
    {"ResourceGather", "dtype=float", "resource[];int32[2]", "!the variable is a scalar"},
    {"ResourceScatterAdd", "", "resource[5,3];int32[2];[2,3]", ""},
    {"ResourceScatterAdd", "", "resource[5,3];int32[2];[]", ""},
    {"ResourceScatterAdd", "", "resource[5,3];int32[2];[2]", "!updates has shape [2], but indices"},
    {"ResourceScatterSub", "", "resource[5,3];int64[];[3]", ""},
    {"ResourceScatterSub", "", "resource[];int64[];[]",
     "!the variable is a scalar: it has no rows"},
    {"NoOp", "", "", ""},
    {"_Send", "channel=3", "[2,3]", ""},
    {"_Send", "channel=-1", "[2,3]", "!attribute 'channel' is -1, but must be at least 0"},
    {"_Recv", "channel=3, tensor_type=float, shape=[2,?]", "", "[2,?]"},
    {"_Recv", "channel=3, tensor_type=uint8", "", "?"},
};

}  // namespace

absl::Span<const ShapeCase> StateShapeCases() { return kCases; }

}  // namespace millrace::testing
