#ifndef TESTS_TESTING_OP_TEXT_H_
#define TESTS_TESTING_OP_TEXT_H_

#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph.h"

// One node with given inputs, from a line of a test table.
namespace millrace::testing {

// All ops, registered once.
std::shared_ptr<const OpRegistry> AllOps();

// The text form (graph_text.h) of node "y" of type `op`, with the attributes `attrs` as in that
// form, and of its inputs. `inputs` are separated by ';':
//
//   [2,?]  ?  int64[3]   a value of that shape (float, if no dtype is said)
//   (0,1)  int64(5)  ()  a constant vector (int32)
//   ((1,2),(3,4))        a constant matrix
//   =2  float=0.5        a constant scalar (int32)
//   resource[3]          the handle of a variable of that shape
std::string OpText(absl::string_view op, absl::string_view attrs, absl::string_view inputs);

// The graph of that text; an error of the node is that of the op's own checks.
StatusOr<Graph> OpGraph(absl::string_view op, absl::string_view attrs, absl::string_view inputs);

// "[2];[?,3]": the shapes of a node's outputs.
std::string OutputShapes(const Node& node);

}  // namespace millrace::testing

#endif  // TESTS_TESTING_OP_TEXT_H_
