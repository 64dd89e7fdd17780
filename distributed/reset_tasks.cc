#include "distributed/reset_tasks.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "distributed/task_call.h"

namespace millrace {
namespace {

constexpr absl::Duration kResetTimeout = absl::Seconds(10);

// Answers that are still to come.
struct Resetting {
  Mutex mutex;
  size_t left ABSL_GUARDED_BY(mutex) = 0;
  Status error ABSL_GUARDED_BY(mutex);
  absl::AnyInvocable<void(const Status&)> done ABSL_GUARDED_BY(mutex);

  void Answered(const Status& status) {
    absl::AnyInvocable<void(const Status&)> last;
    Status outcome;
    {
      MutexLock lock(mutex);
      if (error.ok()) error = status;
      if (--left > 0) return;
      outcome = error;
      last = std::move(done);
    }
    last(outcome);
  }
};

}  // namespace

bool MatchesFilters(const std::string& task, const std::vector<std::string>& filters) {
  if (filters.empty()) return true;
  const StatusOr<DeviceName> name = DeviceName::Parse(task);
  return std::any_of(filters.begin(), filters.end(), [&](const std::string& filter) {
    StatusOr<DeviceName> pattern = DeviceName::Parse(filter);
    if (!pattern.ok() || !name.ok()) return false;
    pattern->type.reset();
    pattern->index.reset();
    return name->Matches(*pattern);
  });
}

void ResetTasks(const Inventory& inventory, const std::vector<std::string>& containers,
                absl::AnyInvocable<void(const Status&)> done) {
  const auto resetting = std::make_shared<Resetting>();
  {
    MutexLock lock(resetting->mutex);
    // One more, so that the last answer comes after the last call.
    resetting->left = inventory.present.size() + 1;
    resetting->done = std::move(done);
  }
  Status absent;
  for (const auto& [task, reason] : inventory.absent) {
    if (absent.ok() && reason.code() != absl::StatusCode::kUnavailable) {
      absent = Annotate(reason, StrCat("reset of ", task));
    }
  }
  for (const auto& [task, life] : inventory.present) {
    WorkerResetRequest request;
    request.set_incarnation(life.incarnation);
    *request.mutable_container() = {containers.begin(), containers.end()};
    CallTask(life.worker, task, &WorkerInterface::Reset, std::move(request), kResetTimeout,
             Cancellation(), [resetting](const Status& status, WorkerResetResponse&) {
               resetting->Answered(status);
             });
  }
  resetting->Answered(absent);
}

}  // namespace millrace
