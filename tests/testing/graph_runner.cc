#include "tests/testing/graph_runner.h"

#include "core/device/cpu_device.h"
#include "kernels/register.h"

namespace millrace::testing {
namespace {

ThreadPool::Options PoolOptions() {
  ThreadPool::Options options;
  options.threads = 2;
  options.on_thread_start = UseOneLibraryThread;
  return options;
}

}  // namespace

const KernelRegistry& AllKernels() {
  static const KernelRegistry& kernels = *[] {
    auto* registry = new KernelRegistry;
    RegisterAllKernels(*registry);
    return registry;
  }();
  return kernels;
}

GraphRunner::GraphRunner(int devices) : host_(PoolOptions()) {
  UseOneLibraryThread();  // this thread runs kernels, too, while it waits for a step
  CpuDeviceOptions options;
  options.count = devices;
  devices_ = MakeCpuDevices(options, *host_.environment().scheduler);
}

StatusOr<std::unique_ptr<Session>> GraphRunner::NewSession(const Graph& graph) {
  LocalSessionOptions options;
  for (const std::unique_ptr<Device>& device : devices_) options.devices.push_back(device.get());
  options.kernels = &AllKernels();
  options.environment = host_.environment();
  return NewLocalSession(graph, std::move(options));
}

StatusOr<std::vector<Tensor>> GraphRunner::Run(Session& session, const Feeds& feeds,
                                               std::vector<std::string> fetches,
                                               std::vector<std::string> targets) {
  StepSignature signature;
  std::vector<Tensor> values;
  for (const auto& [name, value] : feeds) {
    signature.feeds.push_back(name);
    values.push_back(value);
  }
  signature.fetches = std::move(fetches);
  signature.targets = std::move(targets);
  MR_ASSIGN_OR_RETURN(const std::shared_ptr<PreparedStep> step, session.Prepare(signature));
  MR_ASSIGN_OR_RETURN(RunResult result, session.Run(*step, std::move(values)));
  return std::move(result.fetches);
}

StatusOr<std::vector<Tensor>> GraphRunner::Run(const Graph& graph, const Feeds& feeds,
                                               std::vector<std::string> fetches,
                                               std::vector<std::string> targets) {
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, NewSession(graph));
  return Run(*session, feeds, std::move(fetches), std::move(targets));
}

}  // namespace millrace::testing
