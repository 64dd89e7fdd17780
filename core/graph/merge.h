#ifndef CORE_GRAPH_MERGE_H_
#define CORE_GRAPH_MERGE_H_

#include <vector>

#include "core/graph/graph.h"

namespace millrace {

// Adds to `base` the nodes of `more`, a graph over the same ops, that it does not have by name.
// Gives those nodes' ids in `more`, every node after its inputs. InvalidArgument, and nothing
// added, if a node that `base` has is another one in `more` (op, attributes, device or inputs), if
// the ops are others, or if `more` has a cycle. Function libraries stay as they are.
StatusOr<std::vector<NodeId>> MergeGraph(const Graph& more, Graph& base);

}  // namespace millrace

#endif  // CORE_GRAPH_MERGE_H_
