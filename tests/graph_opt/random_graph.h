#ifndef TESTS_GRAPH_OPT_RANDOM_GRAPH_H_
#define TESTS_GRAPH_OPT_RANDOM_GRAPH_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/graph_builder.h"

namespace millrace::testing {

// A step of some dozens of real ops, drawn from a seed: arithmetic with broadcasting, products,
// reductions, shape arithmetic (static or known in the step only), equal expressions, constants,
// draws, variables with reads and updates, control dependencies, and gradients.
struct RandomGraph {
  std::unique_ptr<GraphBuilder> builder;
  std::string initialize;  // a target, for a step of its own
  std::vector<std::pair<std::string, Tensor>> feeds;
  std::vector<std::string> fetches;
  std::vector<std::string> targets;
};

RandomGraph MakeRandomGraph(uint64_t seed);

}  // namespace millrace::testing

#endif  // TESTS_GRAPH_OPT_RANDOM_GRAPH_H_
