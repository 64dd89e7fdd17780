#ifndef DISTRIBUTED_STRATEGY_STRATEGY_SESSION_H_
#define DISTRIBUTED_STRATEGY_STRATEGY_SESSION_H_

#include <functional>
#include <memory>

#include "core/runtime/session.h"
#include "distributed/strategy/strategy.h"

namespace millrace {

// Opens a session over a program's graph: local, or on a cluster.
using SessionOpener = std::function<StatusOr<std::unique_ptr<Session>>(const Graph& graph)>;

struct StrategySessionOptions {
  std::shared_ptr<const Strategy> strategy;
  SessionOpener open;
  // Runs after shapes are specialised to the feeds: folds what they fix (Shape ops, arithmetic on
  // constants), as strategies need it. May be null.
  GraphTransform fold;
  // Sees each program before anything of it runs, e.g. to dump it. May be null.
  std::function<void(const StepSignature& logical, const Program& program)> on_program;
};

// A session over the single-device graph, whose names and feeds users keep; each prepared step is
// rewritten by the strategy, once for each set of feed shapes, and runs in a session of its own.
// The variables are those of the devices, so that all steps see the same.
StatusOr<std::unique_ptr<Session>> NewStrategySession(const Graph& graph,
                                                      StrategySessionOptions options);

}  // namespace millrace

#endif  // DISTRIBUTED_STRATEGY_STRATEGY_SESSION_H_
