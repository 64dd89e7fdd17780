#include <algorithm>
#include <map>
#include <utility>

#include "core/base/mutex.h"
#include "core/framework/resource.h"
#include "core/graph/merge.h"
#include "core/graph/verify.h"
#include "core/runtime/local_step.h"
#include "core/runtime/session.h"

namespace millrace {
namespace {

class LocalSession final : public Session {
 public:
  LocalSession(const Graph& graph, LocalSessionOptions options)
      : core_(std::make_shared<SessionCore>(std::move(options))), graph_(graph) {
    for (Device* device : core_->options.devices) devices_.push_back(device->info());
  }

  ~LocalSession() override { Close().IgnoreError(); }

  Status Extend(const Graph& graph) override {
    MutexLock lock(mutex_);
    MR_RETURN_IF_ERROR(Verify(graph));
    return MergeGraph(graph, graph_).status();
  }

  StatusOr<std::shared_ptr<PreparedStep>> Prepare(const StepSignature& signature) override {
    MutexLock lock(mutex_);
    {
      MutexLock core_lock(core_->mutex);
      if (core_->closed) return FailedPrecondition("the session is closed");
    }
    const std::string key = signature.Key();
    const auto found = steps_.find(key);
    if (found != steps_.end()) return std::shared_ptr<PreparedStep>(found->second);
    PlannerOptions options = core_->options.planner;
    for (const auto& [name, decision] : pins_) options.placer.pinned.emplace(name, decision);
    MR_ASSIGN_OR_RETURN(PlannedStep planned,
                        PlanStep(graph_, signature, devices_, *core_->options.kernels, options));
    pins_.merge(PinsOf(planned.placed, planned.report.decisions));
    MR_ASSIGN_OR_RETURN(std::shared_ptr<LocalStep> step,
                        LocalStep::Create(core_, std::move(planned)));
    steps_.emplace(key, step);
    return std::shared_ptr<PreparedStep>(std::move(step));
  }

  void RunAsync(PreparedStep& step, std::vector<Tensor> feeds, const RunOptions& options,
                Done done) override {
    Start(step, std::move(feeds), options, /*caller_waits=*/false, std::move(done));
  }

  StatusOr<RunResult> Run(PreparedStep& step, std::vector<Tensor> feeds,
                          const RunOptions& options) override {
    Notification ended;
    StatusOr<RunResult> result = RunResult{};
    Start(step, std::move(feeds), options, /*caller_waits=*/true, [&](StatusOr<RunResult> outcome) {
      result = std::move(outcome);
      ended.Notify();
    });
    ended.Wait();
    return result;
  }

  StatusOr<std::vector<DeviceInfo>> ListDevices() override { return devices_; }

  Status Reset(std::vector<std::string> containers) override {
    for (Device* device : core_->options.devices) device->resources().Reset(containers);
    return absl::OkStatus();
  }

  Status Close() override {
    std::map<std::string, std::shared_ptr<LocalStep>> steps;
    {
      MutexLock lock(mutex_);
      steps.swap(steps_);
    }
    CancelRunning(*core_);
    return absl::OkStatus();
  }

 private:
  void Start(PreparedStep& step, std::vector<Tensor> feeds, const RunOptions& options,
             bool caller_waits, Done done) {
    auto* local = dynamic_cast<LocalStep*>(&step);
    if (local == nullptr || !local->IsOf(*core_)) {
      return std::move(done)(InvalidArgument("the step was prepared by another session"));
    }
    local->Run(std::move(feeds), options, caller_waits, std::move(done));
  }

  const std::shared_ptr<SessionCore> core_;
  std::vector<DeviceInfo> devices_;
  Mutex mutex_;  // held while planning: one plan a signature
  Graph graph_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<LocalStep>> steps_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, PlacementDecision> pins_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

StatusOr<std::unique_ptr<Session>> NewLocalSession(const Graph& graph,
                                                   LocalSessionOptions options) {
  if (options.devices.empty()) return InvalidArgument("a session needs a device");
  if (options.kernels == nullptr) return InvalidArgument("a session needs kernels");
  if (options.environment.scheduler == nullptr) {
    return InvalidArgument("a session needs a scheduler");
  }
  for (size_t i = 0; i < options.devices.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (options.devices[i]->info().name == options.devices[j]->info().name) {
        return InvalidArgument("two devices are named ",
                               options.devices[i]->info().name.ToString());
      }
    }
  }
  MR_RETURN_IF_ERROR(Verify(graph));
  return std::unique_ptr<Session>(std::make_unique<LocalSession>(graph, std::move(options)));
}

}  // namespace millrace
