#include <algorithm>
#include <map>
#include <utility>

#include "core/base/mutex.h"
#include "core/framework/resource.h"
#include "core/graph/verify.h"
#include "core/runtime/local_step.h"
#include "core/runtime/session.h"

namespace millrace {
namespace {

std::vector<std::string> InputNames(const Graph& graph, const Node& node) {
  std::vector<std::string> names;
  for (const Port& input : node.inputs()) names.push_back(graph.PortName(input));
  const size_t data = names.size();
  for (NodeId before : node.control_inputs()) {
    names.push_back(StrCat("^", graph.node(before)->name()));
  }
  std::sort(names.begin() + static_cast<std::ptrdiff_t>(data), names.end());
  return names;
}

// Adds what `base` does not have of `more`; what it has must be equal.
Status Merge(const Graph& more, Graph& base) {
  MR_ASSIGN_OR_RETURN(const std::vector<NodeId> order, TopologicalOrder(more));
  std::vector<NodeId> here(more.num_ids(), -1);
  for (NodeId id : order) {
    const Node& node = *more.node(id);
    if (const Node* known = base.Find(node.name()); known != nullptr) {
      if (known->op().name() != node.op().name() || !(known->attrs() == node.attrs()) ||
          known->requested_device() != node.requested_device() ||
          InputNames(base, *known) != InputNames(more, node)) {
        return InvalidArgument("node '", node.name(), "' (", node.op().name(),
                               ") is in the session already and differs from it (",
                               known->op().name(), "); a session's graph only grows");
      }
      here[id] = known->id();
      continue;
    }
    std::vector<Port> inputs;
    for (const Port& input : node.inputs()) inputs.push_back({here[input.node], input.index});
    std::vector<NodeId> control_inputs;
    for (NodeId before : node.control_inputs()) control_inputs.push_back(here[before]);
    here[id] = base.AddCopy(node, node.name(), std::move(inputs), std::move(control_inputs));
  }
  return absl::OkStatus();
}

class LocalSession final : public Session {
 public:
  LocalSession(const Graph& graph, LocalSessionOptions options)
      : core_(std::make_shared<SessionCore>(std::move(options))), graph_(graph) {
    for (Device* device : core_->options.devices) devices_.push_back(device->info());
  }

  ~LocalSession() override { Close().IgnoreError(); }

  Status Extend(const Graph& graph) override {
    MutexLock lock(mutex_);
    if (graph.shared_ops() != graph_.shared_ops()) {
      return InvalidArgument("the graph is over other ops than the session's");
    }
    MR_RETURN_IF_ERROR(Verify(graph));
    Graph grown = graph_;
    MR_RETURN_IF_ERROR(Merge(graph, grown));
    graph_ = std::move(grown);
    return absl::OkStatus();
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
