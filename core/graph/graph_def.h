#ifndef CORE_GRAPH_GRAPH_DEF_H_
#define CORE_GRAPH_GRAPH_DEF_H_

#include <memory>
#include <string>

#include "core/base/file.h"
#include "core/framework/graph.pb.h"
#include "core/framework/tensor_proto.h"
#include "core/graph/graph.h"

namespace millrace {

// The version of the public op set that this build follows. Exported graphs say so; readers take a
// graph without a version for an ancient one.
inline constexpr int kGraphVersion = 2474;

// The annotation with the shapes of a node's outputs, for viewers. Left out of what is imported.
inline constexpr char kOutputShapesAttr[] = "_output_shapes";

// Adds the nodes of `def` to `graph`; they may name nodes that are already there. All or nothing.
// InvalidArgument for unknown ops (all at once, with counts), missing inputs, cycles, dtypes or
// shapes that do not fit; every message names the node. So is a graph that wants a later version
// than kGraphVersion to read it. Attributes that an op does not have are
// passed over if they are empty, zero or false, as newer writers write out all defaults. Functions
// join the graph's library, but for those whose name it has. `budget` bounds the memory of all
// tensors in attributes together.
Status ImportGraphDef(const GraphDef& def, Graph& graph, ProtoBudget budget = ProtoBudget());
// Nodes in topological order; the assigned device if there is one, else the requested one;
// shapes as the annotation "_output_shapes" (read by TensorBoard).
void ExportGraphDef(const Graph& graph, GraphDef* def);

// A graph from serialised bytes, binary or text proto (told by content). DataLoss for bytes that
// are neither; `place` names them in messages.
StatusOr<Graph> ParseGraph(absl::string_view bytes, absl::string_view place,
                           std::shared_ptr<const OpRegistry> ops,
                           ProtoBudget budget = ProtoBudget());

}  // namespace millrace

#endif  // CORE_GRAPH_GRAPH_DEF_H_
