#ifndef CORE_GRAPH_CYCLE_H_
#define CORE_GRAPH_CYCLE_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"

namespace millrace {

// "a -> b -> a": a cycle among nodes that a topological sort could not place, in the direction of
// the data; of a long one, the first nodes. Positive in `pending`, by node: how many inputs of the
// node have not been placed either. There is at least one.
std::string DescribeCycle(
    absl::Span<const int32_t> pending,
    absl::FunctionRef<void(int32_t node, absl::FunctionRef<void(int32_t input)> visit)> inputs,
    absl::FunctionRef<std::string(int32_t node)> name);

}  // namespace millrace

#endif  // CORE_GRAPH_CYCLE_H_
