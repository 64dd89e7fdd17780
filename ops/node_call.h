#ifndef OPS_NODE_CALL_H_
#define OPS_NODE_CALL_H_

#include <vector>

#include "core/graph/graph_builder.h"

// How the functions of ops/*.h add their nodes. The builder is that of the inputs, which reports
// what is wrong with them; without one, as if all are default-made Values, the result has none
// either.
namespace millrace {

Operation CallForEffect(absl::string_view op, absl::Span<const Value> inputs, AttrMap attrs,
                        SourceLocation where);
std::vector<Value> CallMany(absl::string_view op, absl::Span<const Value> inputs, AttrMap attrs,
                            int outputs, SourceLocation where);
Value Call(absl::string_view op, absl::Span<const Value> inputs, AttrMap attrs,
           SourceLocation where);

// Where the user made x; unknown if x is poisoned. For operators, which have no argument for it.
SourceLocation LocationOf(Value x);

}  // namespace millrace

#endif  // OPS_NODE_CALL_H_
