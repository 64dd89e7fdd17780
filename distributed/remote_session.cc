#include "distributed/remote_session.h"

#include <map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_format.h"
#include "core/base/mutex.h"
#include "core/framework/tensor_proto.h"
#include "core/graph/graph_def.h"
#include "core/graph/merge.h"
#include "distributed/device_proto.h"
#include "distributed/master_call.h"
#include "distributed/step_stats_proto.h"

namespace millrace {
namespace {

// Adds to `base` the nodes of `graph` that it does not have, and puts just those in `def`.
Status Grow(const Graph& graph, Graph& base, GraphDef* def) {
  MR_ASSIGN_OR_RETURN(const std::vector<NodeId> added, MergeGraph(graph, base));
  absl::flat_hash_set<absl::string_view> names;
  for (const NodeId id : added) names.insert(graph.node(id)->name());
  GraphDef whole;
  ExportGraphDef(graph, &whole);
  *def->mutable_versions() = whole.versions();
  *def->mutable_library() = std::move(*whole.mutable_library());
  for (NodeDef& node : *whole.mutable_node()) {
    if (names.contains(node.name())) *def->add_node() = std::move(node);
  }
  return absl::OkStatus();
}

constexpr absl::Duration kCloseTimeout = absl::Seconds(5);
// A master that is asked for a timeout gets so much longer to say that it passed.
constexpr absl::Duration kTimeoutSlack = absl::Seconds(2);

// What steps need of their session; they may outlive it.
struct RemoteCore {
  std::shared_ptr<MasterInterface> master;
  RemoteSessionOptions options;
  std::shared_ptr<const OpRegistry> ops;
  std::string handle;

  MasterCallOptions CallOptionsFor(absl::Duration patience) const {
    MasterCallOptions call;
    call.environment = options.environment;
    call.patience = patience;
    return call;
  }

  // Calls and waits; the status is the call's own, errors of the transport name the master.
  template <typename Request, typename Response>
  StatusOr<Response> Call(MasterMethod<Request, Response> method, Request request,
                          MasterCallOptions call) const {
    Notification answered;
    Status status;
    Response result;
    CallMaster<Request, Response>(master, method, std::move(request), std::move(call),
                                  [&](const Status& outcome, Response& response) {
                                    status = outcome;
                                    result = std::move(response);
                                    answered.Notify();
                                  });
    answered.Wait();
    if (!status.ok()) return Annotate(status, options.name);
    MR_RETURN_IF_ERROR(ToStatus(result.status()));
    return result;
  }
  template <typename Request, typename Response>
  StatusOr<Response> Call(MasterMethod<Request, Response> method, Request request) const {
    return Call(method, std::move(request), CallOptionsFor(options.connect_timeout));
  }
};

class RemoteStep final : public PreparedStep {
 public:
  struct Feed {
    DType dtype = DType::kInvalid;
    PartialShape shape;
  };

  RemoteStep(std::shared_ptr<const RemoteCore> core, StepSignature signature, uint64_t handle,
             std::vector<Feed> feeds)
      : core_(std::move(core)),
        signature_(std::move(signature)),
        handle_(handle),
        feeds_(std::move(feeds)) {}

  const StepSignature& signature() const override { return signature_; }
  const RemoteCore& core() const { return *core_; }
  uint64_t handle() const { return handle_; }

  StatusOr<PlacementReport> Report() override {
    MR_ASSIGN_OR_RETURN(const DescribeStepResponse description, Describe());
    return PlacementReportFromJson(description.report_json());
  }

  // Asked for once; empty if the master cannot be reached or its graph cannot be read here.
  const Graph& placed_graph() const override {
    {
      MutexLock lock(mutex_);
      if (placed_ != nullptr) return *placed_;
    }
    auto placed = std::make_unique<Graph>(core_->ops);
    const StatusOr<DescribeStepResponse> description = Describe();
    if (description.ok() && ImportGraphDef(description->placed_graph(), *placed).ok()) {
      for (NodeId id = 0; id < placed->num_ids(); ++id) {
        if (!placed->IsLive(id)) continue;
        StatusOr<DeviceName> device = DeviceName::Parse(placed->node(id)->requested_device());
        if (device.ok() && device->IsFull()) placed->SetAssignedDevice(id, *std::move(device));
      }
    }
    MutexLock lock(mutex_);
    if (placed_ == nullptr) placed_ = std::move(placed);
    return *placed_;
  }

  Status CheckFeeds(absl::Span<const Tensor> feeds) const {
    if (feeds.size() != signature_.feeds.size()) {
      return InvalidArgument("the step has ", signature_.feeds.size(), " feeds, but got ",
                             feeds.size());
    }
    for (size_t i = 0; i < feeds.size() && i < feeds_.size(); ++i) {
      if (feeds[i].dtype() == feeds_[i].dtype &&
          feeds_[i].shape.IsCompatibleWith(feeds[i].shape())) {
        continue;
      }
      return InvalidArgument("feed '", signature_.feeds[i], "': expected ", Name(feeds_[i].dtype),
                             feeds_[i].shape.ToString(), ", but got ",
                             feeds[i].valid()
                                 ? StrCat(Name(feeds[i].dtype()), feeds[i].shape().ToString())
                                 : "no tensor");
    }
    return absl::OkStatus();
  }

 private:
  StatusOr<DescribeStepResponse> Describe() const {
    DescribeStepRequest request;
    request.set_session_handle(core_->handle);
    request.set_step_handle(handle_);
    return core_->Call(&MasterInterface::DescribeStep, std::move(request));
  }

  const std::shared_ptr<const RemoteCore> core_;
  const StepSignature signature_;
  const uint64_t handle_;
  const std::vector<Feed> feeds_;
  mutable Mutex mutex_;
  mutable std::unique_ptr<Graph> placed_ ABSL_GUARDED_BY(mutex_);
};

StatusOr<RunResult> ReadResult(const Status& status, const RunPreparedResponse& response) {
  MR_RETURN_IF_ERROR(status);
  MR_RETURN_IF_ERROR(ToStatus(response.status()));
  RunResult result;
  result.step_id = response.step_id();
  result.events = EventsFromProto(response.step_stats());
  ProtoBudget budget;
  for (const TensorProto& fetch : response.fetch()) {
    MR_ASSIGN_OR_RETURN(Tensor tensor, TensorFromProto(fetch, budget));
    result.fetches.push_back(std::move(tensor));
  }
  return result;
}

class RemoteSession final : public Session {
 public:
  RemoteSession(std::shared_ptr<const RemoteCore> core, const Graph& graph, int64_t version)
      : core_(std::move(core)), graph_(graph), version_(version) {}
  ~RemoteSession() override { Close().IgnoreError(); }

  Status Extend(const Graph& graph) override {
    MutexLock lock(mutex_);
    MR_RETURN_IF_ERROR(CheckOpen());
    Graph grown = graph_;
    ExtendSessionRequest request;
    MR_RETURN_IF_ERROR(Grow(graph, grown, request.mutable_graph_def()));
    if (request.graph_def().node().empty()) return absl::OkStatus();
    request.set_session_handle(core_->handle);
    request.set_current_graph_version(version_);
    MR_ASSIGN_OR_RETURN(const ExtendSessionResponse response,
                        core_->Call(&MasterInterface::ExtendSession, std::move(request)));
    version_ = response.new_graph_version();
    graph_ = std::move(grown);
    return absl::OkStatus();
  }

  StatusOr<std::shared_ptr<PreparedStep>> Prepare(const StepSignature& signature) override {
    MutexLock lock(mutex_);
    MR_RETURN_IF_ERROR(CheckOpen());
    const std::string key = signature.Key();
    const auto found = steps_.find(key);
    if (found != steps_.end()) return std::shared_ptr<PreparedStep>(found->second);
    PrepareRequest request;
    request.set_session_handle(core_->handle);
    *request.mutable_feed() = {signature.feeds.begin(), signature.feeds.end()};
    *request.mutable_fetch() = {signature.fetches.begin(), signature.fetches.end()};
    *request.mutable_target() = {signature.targets.begin(), signature.targets.end()};
    MR_ASSIGN_OR_RETURN(const PrepareResponse response,
                        core_->Call(&MasterInterface::Prepare, std::move(request)));
    std::vector<RemoteStep::Feed> feeds;
    for (const TensorProto& spec : response.feed_spec()) {
      RemoteStep::Feed feed;
      MR_ASSIGN_OR_RETURN(feed.dtype, DTypeFromProto(spec.dtype()));
      MR_ASSIGN_OR_RETURN(feed.shape, ShapeFromProto(spec.tensor_shape()));
      feeds.push_back(std::move(feed));
    }
    auto step =
        std::make_shared<RemoteStep>(core_, signature, response.step_handle(), std::move(feeds));
    steps_.emplace(key, step);
    return std::shared_ptr<PreparedStep>(std::move(step));
  }

  void RunAsync(PreparedStep& step, std::vector<Tensor> feeds, const RunOptions& options,
                Done done) override {
    Scheduler* scheduler = core_->options.environment.scheduler;
    Start(step, feeds, options,
          [scheduler, done = std::move(done)](const Status& status,
                                              RunPreparedResponse response) mutable {
            // The transport's threads are few: what the client does is not done there.
            scheduler->Schedule(
                [status, response = std::move(response), done = std::move(done)]() mutable {
                  std::move(done)(ReadResult(status, response));
                });
          });
  }

  StatusOr<RunResult> Run(PreparedStep& step, std::vector<Tensor> feeds,
                          const RunOptions& options) override {
    Notification ended;
    Status status;
    RunPreparedResponse result;
    Start(step, feeds, options, [&](const Status& outcome, RunPreparedResponse response) {
      status = outcome;
      result = std::move(response);
      ended.Notify();
    });
    ended.Wait();
    return ReadResult(status, result);
  }

  StatusOr<std::vector<DeviceInfo>> ListDevices() override {
    ListDevicesRequest request;
    request.set_session_handle(core_->handle);
    MR_ASSIGN_OR_RETURN(const ListDevicesResponse response,
                        core_->Call(&MasterInterface::ListDevices, std::move(request)));
    std::vector<DeviceInfo> devices;
    for (const auto* list : {&response.local_device(), &response.remote_device()}) {
      for (const DeviceAttributes& device : *list) {
        MR_ASSIGN_OR_RETURN(DeviceInfo info, DeviceFromProto(device));
        devices.push_back(std::move(info));
      }
    }
    return devices;
  }

  Status Reset(std::vector<std::string> containers) override {
    ResetRequest request;
    request.set_session_handle(core_->handle);
    *request.mutable_container() = {containers.begin(), containers.end()};
    return core_->Call(&MasterInterface::Reset, std::move(request)).status();
  }

  Status Close() override {
    {
      MutexLock lock(mutex_);
      if (closed_) return absl::OkStatus();
      closed_ = true;
      steps_.clear();
    }
    CloseSessionRequest request;
    request.set_session_handle(core_->handle);
    // A master that is gone has no session left to close.
    MasterCallOptions call = core_->CallOptionsFor(absl::ZeroDuration());
    call.timeout = kCloseTimeout;
    return core_->Call(&MasterInterface::CloseSession, std::move(request), std::move(call))
        .status();
  }

 private:
  // Runs once, with an error or a response whose body may hold one.
  using Answered = absl::AnyInvocable<void(const Status&, RunPreparedResponse)>;

  void Start(PreparedStep& step, absl::Span<const Tensor> feeds, const RunOptions& options,
             Answered done) {
    auto* remote = dynamic_cast<RemoteStep*>(&step);
    if (remote == nullptr || &remote->core() != core_.get()) {
      return done(InvalidArgument("the step was prepared by another session"), {});
    }
    {
      MutexLock lock(mutex_);
      if (const Status open = CheckOpen(); !open.ok()) return done(open, {});
    }
    StatusOr<RunPreparedRequest> request = MakeRequest(*remote, feeds, options);
    if (!request.ok()) return done(request.status(), {});
    MasterCallOptions call = core_->CallOptionsFor(core_->options.connect_timeout);
    if (options.cancellation != nullptr) call.cancellation = *options.cancellation;
    call.timeout = options.timeout + kTimeoutSlack;
    // The master keeps the reply: whoever sends the request again with its id gets it.
    CallMaster<RunPreparedRequest, RunPreparedResponse>(
        core_->master, &MasterInterface::RunPrepared, *std::move(request), std::move(call),
        [core = core_, done = std::move(done)](const Status& status,
                                               RunPreparedResponse& response) mutable {
          if (status.code() == absl::StatusCode::kUnavailable) {
            return done(absl::UnknownError(StrCat(core->options.name,
                                                  " does not answer: whether the step took ",
                                                  "effect is not known (", status.message(), ")")),
                        {});
          }
          done(Annotate(status, core->options.name), std::move(response));
        });
  }

  Status CheckOpen() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return closed_ ? FailedPrecondition("the session is closed") : absl::OkStatus();
  }

  StatusOr<RunPreparedRequest> MakeRequest(const RemoteStep& step, absl::Span<const Tensor> feeds,
                                           const RunOptions& options) const {
    MR_RETURN_IF_ERROR(step.CheckFeeds(feeds));
    RunPreparedRequest request;
    request.set_session_handle(core_->handle);
    request.set_step_handle(step.handle());
    for (size_t i = 0; i < feeds.size(); ++i) {
      const Status status = TensorToProto(feeds[i], request.add_feed());
      if (!status.ok()) {
        return Annotate(status, StrCat("feed '", step.signature().feeds[i], "'"));
      }
    }
    if (options.trace) request.mutable_options()->set_trace_level(1);
    if (options.timeout != absl::InfiniteDuration()) {
      // 0 would mean none.
      const int64_t millis =
          absl::ToInt64Milliseconds(absl::Ceil(options.timeout, absl::Milliseconds(1)));
      request.mutable_options()->set_timeout_in_ms(std::max<int64_t>(millis, 1));
    }
    uint64_t id = 0;
    while (id == 0) id = core_->options.environment.entropy->Next();
    request.set_request_id(id);
    return request;
  }

  const std::shared_ptr<const RemoteCore> core_;
  Mutex mutex_;  // held while the graph is extended and steps are prepared
  Graph graph_ ABSL_GUARDED_BY(mutex_);
  int64_t version_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, std::shared_ptr<RemoteStep>> steps_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

StatusOr<std::unique_ptr<Session>> NewRemoteSession(const Graph& graph,
                                                    std::shared_ptr<MasterInterface> master,
                                                    RemoteSessionOptions options) {
  const Environment& environment = options.environment;
  if (environment.entropy == nullptr || environment.timers == nullptr ||
      environment.clock == nullptr || environment.scheduler == nullptr) {
    return InvalidArgument("a remote session needs a scheduler, entropy, timers and a clock");
  }
  auto core = std::make_shared<RemoteCore>();
  core->master = std::move(master);
  core->ops = graph.shared_ops();
  core->options = std::move(options);
  CreateSessionRequest request;
  ExportGraphDef(graph, request.mutable_graph_def());
  request.set_target(core->options.name);
  *request.mutable_settings() = core->options.settings;
  request.set_request_id(absl::StrFormat("%016x%016x", core->options.environment.entropy->Next(),
                                         core->options.environment.entropy->Next()));
  MR_ASSIGN_OR_RETURN(const CreateSessionResponse response,
                      core->Call(&MasterInterface::CreateSession, std::move(request)));
  core->handle = response.session_handle();
  return std::unique_ptr<Session>(
      std::make_unique<RemoteSession>(std::move(core), graph, response.graph_version()));
}

}  // namespace millrace
