#ifndef OPS_REDUCTION_H_
#define OPS_REDUCTION_H_

#include "core/graph/graph_builder.h"

namespace millrace {

// The reduction `op` (Sum, Mean, Max, Prod) of x over axes that are themselves a value.
Value Reduce(absl::string_view op, Value x, Value axes, bool keep_dims,
             SourceLocation where = SourceLocation::Current());

// All of x's axes as a value: a constant if its rank is known.
Value AllAxes(Value x, SourceLocation where = SourceLocation::Current());

}  // namespace millrace

#endif  // OPS_REDUCTION_H_
