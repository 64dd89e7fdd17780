#ifndef CORE_RUNTIME_LOCAL_STEP_H_
#define CORE_RUNTIME_LOCAL_STEP_H_

#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "core/base/mutex.h"
#include "core/runtime/compiled_plan.h"
#include "core/runtime/executor.h"
#include "core/runtime/session.h"

namespace millrace {

struct StepRun;

// What running steps need of their local session; they may outlive it.
struct SessionCore {
  explicit SessionCore(LocalSessionOptions given) : options(std::move(given)) {}
  const LocalSessionOptions options;
  std::atomic<uint64_t> next_step_id{1};
  Mutex mutex;
  bool closed ABSL_GUARDED_BY(mutex) = false;
  StepRun* running ABSL_GUARDED_BY(mutex) = nullptr;  // a list, through StepRun::next
};

// No step starts any more, and those that run are cancelled; none is waited for.
void CancelRunning(SessionCore& core);

// One signature of a local session: a plan and an executor a device.
class LocalStep final : public PreparedStep, public std::enable_shared_from_this<LocalStep> {
 public:
  static StatusOr<std::shared_ptr<LocalStep>> Create(std::shared_ptr<SessionCore> core,
                                                     PlannedStep planned);

  const StepSignature& signature() const override { return planned_.signature; }
  StatusOr<PlacementReport> Report() override { return planned_.report; }
  const Graph& placed_graph() const override { return planned_.placed; }

  bool IsOf(const SessionCore& core) const { return core_.get() == &core; }
  // `caller_waits`: the caller would block until `done`, and so may as well run the kernels.
  void Run(std::vector<Tensor> feeds, const RunOptions& options, bool caller_waits,
           Session::Done done);

 private:
  friend struct StepRun;
  struct Piece {
    Device* device = nullptr;
    std::unique_ptr<ExecutionPlan> plan;
    std::unique_ptr<Executor> executor;
  };
  LocalStep(std::shared_ptr<SessionCore> core, PlannedStep planned)
      : core_(std::move(core)), planned_(std::move(planned)) {}
  // The feeds of one piece, out of those of the step.
  std::vector<Tensor> TakeFeeds(const ExecutionPlan& plan, std::vector<Tensor>& feeds) const;
  Status CheckFeedCount(size_t given) const;

  const std::shared_ptr<SessionCore> core_;
  PlannedStep planned_;
  std::vector<Piece> pieces_;
  uint32_t num_channels_ = 0;
  bool is_whole_ = false;  // one piece, with the step's own feeds and fetches in the step's order
  int num_updates_ = 0;
  bool draws_random_ = false;
};

}  // namespace millrace

#endif  // CORE_RUNTIME_LOCAL_STEP_H_
