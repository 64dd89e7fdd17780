#ifndef CORE_GRAPH_SHAPE_INFERENCE_H_
#define CORE_GRAPH_SHAPE_INFERENCE_H_

#include <vector>

#include "core/graph/graph.h"

namespace millrace {

// What the shape function of `node` says of its outputs, given what `graph` knows of its inputs:
// their shapes, and the values of constant ones that live in host memory. The inputs must exist;
// the node itself need not be in the graph. Errors do not name the node.
StatusOr<std::vector<PartialShape>> InferOutputShapes(const Graph& graph, const Node& node);

// Refines `shapes` by `inferred`; InvalidArgument, naming the output, if they contradict.
Status MergeShapes(absl::Span<const PartialShape> inferred, std::vector<PartialShape>& shapes);

}  // namespace millrace

#endif  // CORE_GRAPH_SHAPE_INFERENCE_H_
