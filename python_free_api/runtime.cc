#include "python_free_api/runtime.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "core/base/thread_pool.h"
#include "core/device/cpu_device.h"
#include "distributed/grpc/client.h"
#include "distributed/remote_session.h"
#include "distributed/strategy/strategy_session.h"
#include "graph_opt/pass.h"
#include "kernels/register.h"
#include "ops/register.h"

namespace millrace {

namespace {

// Far more than a process has a use for; a mistyped number should not take all memory.
constexpr int kMaxCpuDevices = 1024;
constexpr int kMaxThreads = 4096;

Status CheckOptions(const RuntimeOptions& options) {
  if (options.cpu_devices < 1 || options.cpu_devices > kMaxCpuDevices) {
    return InvalidArgument("a process has from 1 to ", kMaxCpuDevices,
                           " CPU devices, but cpu_devices is ", options.cpu_devices);
  }
  if (options.threads < 0 || options.threads > kMaxThreads) {
    return InvalidArgument("a process has up to ", kMaxThreads,
                           " threads (0: one a core), but threads is ", options.threads);
  }
  if (options.memory_limit < 0) {
    return InvalidArgument("a memory limit is a number of bytes (0: none), but memory_limit is ",
                           options.memory_limit);
  }
  if (options.task < 0) return InvalidArgument("a task is numbered from 0, but is ", options.task);
  return absl::OkStatus();
}

}  // namespace

class Runtime::Impl {
 public:
  explicit Impl(const RuntimeOptions& options)
      : host_({.threads = options.threads, .on_thread_start = UseOneLibraryThread}) {}

  Status Init(const RuntimeOptions& options) {
    // The caller's thread runs kernels too.
    UseOneLibraryThread();
    auto ops = std::make_shared<OpRegistry>();
    RegisterAllOps(*ops);
    if (options.register_ops) options.register_ops(*ops);
    MR_RETURN_IF_ERROR(ops->status());
    ops_ = std::move(ops);
    RegisterAllKernels(kernels_);
    if (options.register_kernels) options.register_kernels(kernels_);
    MR_RETURN_IF_ERROR(kernels_.status());
    CpuDeviceOptions device;
    device.job = options.job;
    device.task = options.task;
    device.count = options.cpu_devices;
    device.memory_limit = options.memory_limit;
    device.incarnation = host_.environment().entropy->Next();
    devices_ = MakeCpuDevices(device, *host_.environment().scheduler);
    return absl::OkStatus();
  }

  std::vector<Device*> devices() const {
    std::vector<Device*> pointers;
    for (const auto& device : devices_) pointers.push_back(device.get());
    return pointers;
  }

  // Constant folding computes on the first device, in a session of its own that knows no passes.
  StatusOr<std::vector<Tensor>> Evaluate(const Graph& graph, absl::Span<const Port> ports) const {
    LocalSessionOptions options;
    options.devices = {devices_[0].get()};
    options.kernels = &kernels_;
    options.environment = host_.environment();
    options.planner.placer.soft_placement = true;
    StepSignature signature;
    for (Port port : ports) signature.fetches.push_back(graph.PortName(port));
    MR_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, NewLocalSession(graph, options));
    MR_ASSIGN_OR_RETURN(std::shared_ptr<PreparedStep> step, session->Prepare(signature));
    MR_ASSIGN_OR_RETURN(RunResult result, session->Run(*step, {}));
    return std::move(result.fetches);
  }

  GraphTransform Transform(const SessionOptions& options) const {
    PipelineOptions pipeline;
    pipeline.disabled = options.disabled_passes;
    pipeline.dump = options.dump_pass;
    return [this, pipeline](PrunedGraph& pruned) {
      return DefaultPipeline(
                 [this](const Graph& graph, absl::Span<const Port> ports) {
                   return Evaluate(graph, ports);
                 },
                 pipeline)
          .Run(pruned);
    };
  }

  StatusOr<std::unique_ptr<Session>> OpenPlain(const Graph& graph, const SessionOptions& options) {
    if (options.target.empty()) {
      LocalSessionOptions local;
      local.devices = devices();
      local.kernels = &kernels_;
      local.environment = host_.environment();
      local.planner.transform = Transform(options);
      local.planner.placer.soft_placement = options.soft_placement;
      return NewLocalSession(graph, std::move(local));
    }
    constexpr char kScheme[] = "grpc://";
    if (!absl::StartsWith(options.target, kScheme)) {
      return InvalidArgument("a session's target is \"\" or grpc://host:port, but is '",
                             options.target, "'");
    }
    RemoteSessionOptions remote;
    remote.name = options.target;
    remote.environment = host_.environment();
    remote.settings.set_soft_placement(options.soft_placement);
    remote.settings.set_cluster(options.cluster);
    remote.connect_timeout = options.connect_timeout;
    GrpcCallerOptions caller;
    caller.environment = host_.environment();
    caller.connect_timeout = options.connect_timeout;
    std::shared_ptr<MasterInterface> master =
        NewGrpcMaster(std::string(absl::StripPrefix(options.target, kScheme)), caller);
    return NewRemoteSession(graph, std::move(master), std::move(remote));
  }

  HostEnvironment host_;
  std::shared_ptr<const OpRegistry> ops_;
  KernelRegistry kernels_;
  std::vector<std::unique_ptr<Device>> devices_;
};

Runtime::Runtime(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Runtime::~Runtime() = default;

StatusOr<std::unique_ptr<Runtime>> Runtime::Create(RuntimeOptions options) {
  MR_RETURN_IF_ERROR(CheckOptions(options));
  auto impl = std::make_unique<Impl>(options);
  MR_RETURN_IF_ERROR(impl->Init(options));
  return std::unique_ptr<Runtime>(new Runtime(std::move(impl)));
}

const std::shared_ptr<const OpRegistry>& Runtime::ops() const { return impl_->ops_; }
const KernelRegistry& Runtime::kernels() const { return impl_->kernels_; }
const Environment& Runtime::environment() const { return impl_->host_.environment(); }
std::vector<Device*> Runtime::devices() const { return impl_->devices(); }

GraphTransform Runtime::Transform(const SessionOptions& options) const {
  return impl_->Transform(options);
}

StatusOr<std::unique_ptr<Session>> Runtime::OpenSession(const GraphBuilder& builder,
                                                        SessionOptions options) {
  MR_RETURN_IF_ERROR(builder.status());
  return OpenSession(builder.graph(), std::move(options));
}

StatusOr<std::unique_ptr<Session>> Runtime::OpenSession(const Graph& graph,
                                                        SessionOptions options) {
  if (options.strategy == nullptr) return impl_->OpenPlain(graph, options);
  StrategySessionOptions spread;
  spread.strategy = options.strategy;
  spread.on_program = options.on_program;
  spread.fold = Transform(options);
  Impl* impl = impl_.get();
  spread.open = [impl, options](const Graph& program) { return impl->OpenPlain(program, options); };
  return NewStrategySession(graph, std::move(spread));
}

}  // namespace millrace
