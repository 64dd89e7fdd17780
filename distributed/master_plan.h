#ifndef DISTRIBUTED_MASTER_PLAN_H_
#define DISTRIBUTED_MASTER_PLAN_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/base/mutex.h"
#include "core/framework/tensor.pb.h"
#include "core/runtime/planner.h"
#include "distributed/task_monitor.h"
#include "distributed/worker.pb.h"

namespace millrace {

// A step signature planned for a cluster, divided by task. Immutable but for what is counted.
// Thread-safe.
class MasterPlan {
 public:
  struct Feed {
    std::string name;
    DType dtype = DType::kInvalid;
    PartialShape shape;
    int part = -1;  // where it is needed; -1: nowhere
  };
  // What falls to one task.
  struct Part {
    std::string task;
    bool updates = false;  // changes variables
    std::shared_ptr<TaskWatch> watch;
  };

  // `watch_of` gives the watch of a task; `graph` is the session's, `id` the plan's on the workers.
  static StatusOr<std::shared_ptr<MasterPlan>> Create(
      uint64_t id, PlannedStep planned, const Graph& graph,
      absl::FunctionRef<StatusOr<std::shared_ptr<TaskWatch>>(const std::string& task)> watch_of);

  uint64_t id() const { return id_; }
  const StepSignature& signature() const { return planned_.signature; }
  const std::vector<Feed>& feeds() const { return feeds_; }
  const std::vector<Part>& parts() const { return parts_; }  // by task
  const PlannedStep& planned() const { return planned_; }

  // InvalidArgument, naming the feed, unless number, dtypes and shapes fit.
  Status CheckFeeds(absl::Span<const TensorProto* const> feeds) const;

  // What registers the plan with a part's task, but for incarnation and session.
  void ToRegisterRequest(const Part& part, RegisterPlanRequest* request) const;

  // One more step went over the links.
  void Count(absl::Span<const ChannelCount> received);
  // With what was counted so far.
  PlacementReport Report() const;

 private:
  struct Measured {
    int64_t payload_bytes = 0;
    int64_t wire_bytes = 0;
  };

  MasterPlan(uint64_t id, PlannedStep planned) : id_(id), planned_(std::move(planned)) {}
  Status FindFeeds(const Graph& graph);

  const uint64_t id_;
  const PlannedStep planned_;
  std::vector<Feed> feeds_;
  std::vector<Part> parts_;
  mutable Mutex mutex_;
  int64_t steps_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<Measured> measured_ ABSL_GUARDED_BY(mutex_);  // by channel
};

}  // namespace millrace

#endif  // DISTRIBUTED_MASTER_PLAN_H_
