#ifndef DISTRIBUTED_SESSION_SETUP_H_
#define DISTRIBUTED_SESSION_SETUP_H_

#include <string>
#include <utility>
#include <vector>

#include "distributed/cluster_spec.h"
#include "distributed/master.h"

namespace millrace {

// Where a session's steps may run, and how they are planned.
struct SessionSetup {
  std::vector<std::pair<std::string, std::string>> tasks;  // name, address
  std::string own_task;                                    // what the master's own is called
  PlannerOptions planner;
};

// From the client's settings and the master's. InvalidArgument for a cluster spec that cannot be
// read or does not hold the master itself, and for a policy that there is not.
StatusOr<SessionSetup> MakeSessionSetup(const SessionSettings& settings,
                                        const MasterOptions& options);

}  // namespace millrace

#endif  // DISTRIBUTED_SESSION_SETUP_H_
