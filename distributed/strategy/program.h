#ifndef DISTRIBUTED_STRATEGY_PROGRAM_H_
#define DISTRIBUTED_STRATEGY_PROGRAM_H_

#include <string>
#include <vector>

#include "core/framework/sharding.h"
#include "core/graph/algorithms.h"

namespace millrace {

// What a strategy makes of one step of a single-device graph: an ordinary graph with requested
// devices, the step loops that drive it, and the map from each logical feed, fetch and variable to
// its pieces. Nothing else in the system knows which strategy made a program.
struct Program {
  // Who runs which operations, how often. A synchronous strategy has one loop; an asynchronous one
  // has one for each worker.
  struct StepLoop {
    std::string name;
    StepSignature signature;  // of `graph`: the pieces' names
  };

  // A logical feed and where its rows go. Piece p takes rows [begin, end) along `dim`; a feed that
  // is not split has one piece with all rows (dim -1).
  struct Feed {
    std::string logical;
    int dim = -1;
    struct Piece {
      std::string port;
      int64_t begin = 0;
      int64_t end = 0;
    };
    std::vector<Piece> pieces;
  };

  // How one logical tensor, variables among them, lies over the replicas.
  struct Layout {
    std::string logical;
    Sharding sharding;
    std::string device;  // of a variable: what is requested for it
  };

  std::string strategy;  // "data_parallel_ps(2 replicas)"
  Graph graph;
  std::vector<StepLoop> loops;
  std::vector<Feed> feeds;           // in the logical signature's order
  std::vector<std::string> fetches;  // port of the whole value, in the logical signature's order
  std::vector<Layout> layouts;       // of every logical tensor, in topological order

  explicit Program(std::shared_ptr<const OpRegistry> ops) : graph(std::move(ops)) {}

  // Loops, feeds, fetches and layouts, then the graph in text form: what is dumped before anything
  // runs.
  std::string ToText() const;
};

}  // namespace millrace

#endif  // DISTRIBUTED_STRATEGY_PROGRAM_H_
