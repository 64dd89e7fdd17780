#ifndef CORE_FRAMEWORK_OP_SPEC_H_
#define CORE_FRAMEWORK_OP_SPEC_H_

#include "core/framework/op_def.h"

// The grammar of op signatures, for OpDef alone.
namespace millrace {

// "x: T", "sizes: int32", "values: N * T". A type that is no dtype is taken for the name of an
// attribute of kind type; only the attributes tell whether it is a list.
StatusOr<ArgDef> ParseArgSpec(absl::string_view spec);

// "T: {float, double} = float", "strides: list(int) >= 4", "shape: shape = ?".
StatusOr<AttrDef> ParseAttrSpec(absl::string_view spec);

// "attribute 'T' ..." if `value` is not what `def` allows: kind, dtypes, strings, minimum.
Status CheckAttrValue(const AttrDef& def, const AttrValue& value);

}  // namespace millrace

#endif  // CORE_FRAMEWORK_OP_SPEC_H_
