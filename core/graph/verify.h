#ifndef CORE_GRAPH_VERIFY_H_
#define CORE_GRAPH_VERIFY_H_

#include "core/graph/graph.h"

namespace millrace {

// Checks every invariant of `graph` (graph.h); the first breach names the node. Run after each
// rewrite in tests, once on every graph from outside. Iterative; a cycle is printed as a path.
Status Verify(const Graph& graph);

}  // namespace millrace

#endif  // CORE_GRAPH_VERIFY_H_
