#ifndef DISTRIBUTED_GRAPH_EXTENSION_H_
#define DISTRIBUTED_GRAPH_EXTENSION_H_

#include "core/framework/graph.pb.h"
#include "core/graph/graph.h"

namespace millrace {

// Adds to `base` the nodes of `graph` that it does not have, and puts just those in `def`.
// InvalidArgument, and nothing added, if a node that it has is another one there.
Status ExtendGraph(const Graph& graph, Graph& base, GraphDef* def);

}  // namespace millrace

#endif  // DISTRIBUTED_GRAPH_EXTENSION_H_
