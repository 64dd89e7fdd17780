#ifndef DISTRIBUTED_RESET_TASKS_H_
#define DISTRIBUTED_RESET_TASKS_H_

#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "distributed/inventory.h"

namespace millrace {

// Whether one of the filters (device strings, perhaps partial) takes the task; none take all.
bool MatchesFilters(const std::string& task, const std::vector<std::string>& filters);

// Drops the containers' variables on all tasks that are there. An absent task is an error only if
// it may still hold variables: where nobody listens there are none. `done` runs once, with the
// first error.
void ResetTasks(const Inventory& inventory, const std::vector<std::string>& containers,
                absl::AnyInvocable<void(const Status&)> done);

}  // namespace millrace

#endif  // DISTRIBUTED_RESET_TASKS_H_
