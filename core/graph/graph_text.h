#ifndef CORE_GRAPH_GRAPH_TEXT_H_
#define CORE_GRAPH_GRAPH_TEXT_H_

#include <string>

#include "core/graph/graph.h"

// The text form: the language of tests, dumps and diffs. One node a line, inputs before users:
//
//   x = Placeholder() {dtype=float, shape=[?,784]}
//   w = VarHandleOp() {dtype=float, shape=[784,10], shared_name="w"} @/job:ps/task:0
//   y = MatMul(x, read:0, ^init) {transpose_b=true} @/job:worker/task:1/device:CPU:0
//
// Attributes at their default or inferred from the inputs are left out. '#' starts a comment.
// Attributes are spelled as in attr_text.h. A device is the assigned one if there is one, else the
// requested one, and is read as requested. The library of functions is a line of its own before the
// nodes: library = "bytes".
namespace millrace {

// Reads back as it was. Of a graph that is not valid, what there is, with the cycle in a comment.
std::string GraphToText(const Graph& graph);
// InvalidArgument with line and column.
StatusOr<Graph> GraphFromText(absl::string_view text, std::shared_ptr<const OpRegistry> ops);

}  // namespace millrace

#endif  // CORE_GRAPH_GRAPH_TEXT_H_
