#include "tests/testing/local_machine.h"

#include "core/device/cpu_device.h"
#include "gtest/gtest.h"
#include "kernels/register.h"
#include "tests/testing/graph_runner.h"

namespace millrace::testing {
namespace {

ThreadPool::Options PoolOptions() {
  ThreadPool::Options options;
  options.threads = 2;
  options.on_thread_start = UseOneLibraryThread;
  return options;
}

}  // namespace

LocalMachine::LocalMachine(const std::vector<std::string>& tasks) : host_(PoolOptions()) {
  UseOneLibraryThread();  // this thread runs kernels, too, while it waits for a step
  for (const std::string& task : tasks) {
    const StatusOr<DeviceName> name = DeviceName::Parse(task);
    EXPECT_TRUE(name.ok() && name->job && name->task) << task;
    if (!name.ok()) continue;
    CpuDeviceOptions options;
    options.job = name->job.value_or("");
    options.task = name->task.value_or(0);
    for (auto& device : MakeCpuDevices(options, *environment().scheduler)) {
      devices_.push_back(std::move(device));
    }
  }
}

std::vector<Device*> LocalMachine::devices() const {
  std::vector<Device*> devices;
  for (const std::unique_ptr<Device>& device : devices_) devices.push_back(device.get());
  return devices;
}

StatusOr<std::unique_ptr<Session>> LocalMachine::Open(const Graph& graph,
                                                      GraphTransform transform) {
  LocalSessionOptions options;
  options.devices = devices();
  options.kernels = &AllKernels();
  options.environment = environment();
  options.planner.transform = std::move(transform);
  return NewLocalSession(graph, std::move(options));
}

Evaluator LocalMachine::evaluator() {
  return [this](const Graph& graph, absl::Span<const Port> ports) -> StatusOr<std::vector<Tensor>> {
    LocalSessionOptions options;
    options.devices = {devices_[0].get()};
    options.kernels = &AllKernels();
    options.environment = environment();
    MR_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                        NewLocalSession(graph, std::move(options)));
    std::vector<std::string> fetches;
    for (Port port : ports) fetches.push_back(graph.PortName(port));
    return RunStep(*session, {}, std::move(fetches));
  };
}

GraphTransform LocalMachine::Passes(PipelineOptions options) {
  return [evaluator = evaluator(), options = std::move(options)](PrunedGraph& pruned) {
    return DefaultPipeline(evaluator, options).Run(pruned);
  };
}

StatusOr<std::vector<Tensor>> RunStep(Session& session, const NamedFeeds& feeds,
                                      std::vector<std::string> fetches,
                                      std::vector<std::string> targets) {
  return GraphRunner::Run(session, feeds, std::move(fetches), std::move(targets));
}

}  // namespace millrace::testing
