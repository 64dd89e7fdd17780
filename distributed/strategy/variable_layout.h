#ifndef DISTRIBUTED_STRATEGY_VARIABLE_LAYOUT_H_
#define DISTRIBUTED_STRATEGY_VARIABLE_LAYOUT_H_

#include <map>
#include <string>

#include "distributed/strategy/strategy.h"
#include "distributed/strategy/strategy_session.h"

namespace millrace {

// Where each variable of a session's graph lives. Programs hold some of the variables each (initial
// values, training, a test), and a placer that sees no more would spread them in another way for
// each program: so it is asked once, for all of them. Copyable.
class VariableLayout {
 public:
  // Places the variables of `graph` that are new; those that are not stay where they are.
  Status Extend(const Graph& graph, const Strategy& strategy, const SessionOpener& open_session);
  // Makes the variables of a program request the device that was chosen for them.
  void Apply(Graph& program) const;

 private:
  struct Place {
    std::string device;  // "": what the program requests leaves no choice
    std::string reason;
  };
  std::map<std::string, Place> places_;  // by node name
};

}  // namespace millrace

#endif  // DISTRIBUTED_STRATEGY_VARIABLE_LAYOUT_H_
