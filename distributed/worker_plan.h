#ifndef DISTRIBUTED_WORKER_PLAN_H_
#define DISTRIBUTED_WORKER_PLAN_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/runtime/executor.h"
#include "distributed/step_rendezvous.h"
#include "distributed/worker.h"
#include "distributed/worker.pb.h"

namespace millrace {

// What all of a worker shares, and the last to go.
struct WorkerContext {
  WorkerContext() = default;
  ~WorkerContext() {
    if (drained) drained();
  }
  WorkerContext(const WorkerContext&) = delete;
  WorkerContext& operator=(const WorkerContext&) = delete;

  WorkerOptions options;
  absl::AnyInvocable<void()> drained;
};

// A registered plan: one executor a device of this task, and the channels between them and to other
// tasks. Immutable; shared by concurrent steps.
class WorkerPlan {
 public:
  struct Piece {
    Device* device = nullptr;
    std::unique_ptr<ExecutionPlan> plan;
    std::unique_ptr<Executor> executor;
  };

  // `task`: what this task is called in the session. `link_to` finds the link to another task.
  // Errors name the node or op.
  static StatusOr<std::shared_ptr<WorkerPlan>> Create(
      const RegisterPlanRequest& request, const std::string& task,
      absl::FunctionRef<StatusOr<LinkId>(const std::string& task)> link_to,
      std::shared_ptr<WorkerContext> context);

  const std::vector<Piece>& pieces() const { return pieces_; }
  const ChannelTable& channels() const { return channels_; }
  // How many nodes of it change variables.
  int num_updates() const { return num_updates_; }
  const WorkerContext& context() const { return *context_; }
  void MarkTorn(uint64_t step) const;

 private:
  explicit WorkerPlan(std::shared_ptr<WorkerContext> context) : context_(std::move(context)) {}
  Status AddPiece(const PartitionMessage& message, const std::string& task);
  Status AddChannel(const ChannelMessage& message, const std::string& task,
                    absl::FunctionRef<StatusOr<LinkId>(const std::string& task)> link_to);

  const std::shared_ptr<WorkerContext> context_;
  std::vector<Piece> pieces_;
  ChannelTable channels_;
  int num_updates_ = 0;
};

}  // namespace millrace

#endif  // DISTRIBUTED_WORKER_PLAN_H_
