#ifndef DISTRIBUTED_STRATEGY_STRATEGY_H_
#define DISTRIBUTED_STRATEGY_STRATEGY_H_

#include <string>

#include "distributed/strategy/program.h"

namespace millrace {

// A way to spread a step over devices, as a graph rewrite. Deterministic and free of state: equal
// inputs give equal programs. The layout of variables depends on the strategy's options alone, so
// that init, train, eval and save steps see the same pieces.
class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual std::string name() const = 0;
  // `pruned` holds one step of the single-device graph; its shapes are specialised to the feeds.
  // A tensor's shape means the logical, global one. What cannot be split is refused by name.
  virtual StatusOr<Program> Rewrite(const PrunedGraph& pruned,
                                    const StepSignature& signature) const = 0;
};

}  // namespace millrace

#endif  // DISTRIBUTED_STRATEGY_STRATEGY_H_
