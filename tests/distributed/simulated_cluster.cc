#include "tests/distributed/simulated_cluster.h"

#include "core/framework/tensor_proto.h"
#include "core/graph/graph_def.h"

namespace millrace::testing {
namespace {

// Listens for as long as it lives.
class NetworkedPlane final : public DataPlane {
 public:
  NetworkedPlane(SimulatedNetwork& network, std::string address,
                 std::unique_ptr<StreamDataPlane> plane)
      : network_(network), address_(std::move(address)), plane_(std::move(plane)) {
    network_.Listen(address_, plane_.get());
  }
  ~NetworkedPlane() override { network_.Listen(address_, nullptr); }

  LinkId Link(const std::string& task, const std::string& address, uint64_t incarnation) override {
    return plane_->Link(task, address, incarnation);
  }
  void Push(LinkId link, const MessageKey& key, Tensor tensor) override {
    plane_->Push(link, key, std::move(tensor));
  }
  Status BeginStep(uint64_t session, uint64_t step, TensorSink* sink,
                   std::vector<LinkId> links) override {
    return plane_->BeginStep(session, step, sink, std::move(links));
  }
  void EndStep(uint64_t session, uint64_t step) override { plane_->EndStep(session, step); }
  void EndSession(uint64_t session) override { plane_->EndSession(session); }
  std::vector<LinkCounters> Counters() const override { return plane_->Counters(); }

 private:
  SimulatedNetwork& network_;
  const std::string address_;
  const std::unique_ptr<StreamDataPlane> plane_;
};

}  // namespace

SimulatedCluster::SimulatedCluster(SimulatedClusterOptions options)
    : world(options.seed), network(world.environment(), options.seed) {
  network.set_max_delay(options.max_delay);
  InProcessClusterOptions cluster;
  cluster.jobs = options.jobs;
  cluster.environment = world.environment();
  cluster.ops = TestOps();
  cluster.kernels = &TestKernels();
  cluster.seed = options.seed;
  cluster.max_delay = options.max_delay;
  cluster.adjust_master = options.adjust_master;
  cluster.adjust_worker = options.adjust_worker;
  cluster.make_data_plane = [this](const std::string& task, const std::string& address,
                                   uint64_t incarnation) -> std::unique_ptr<DataPlane> {
    StreamDataPlaneOptions plane;
    plane.environment = world.environment();
    plane.streams = &network;
    plane.incarnation = incarnation;
    plane.task = task;
    plane.build_version = "test";
    std::unique_ptr<StreamDataPlane> made = StreamDataPlane::Create(plane);
    planes_[task] = made.get();
    return std::make_unique<NetworkedPlane>(network, address, std::move(made));
  };
  cluster_ = std::make_unique<InProcessCluster>(std::move(cluster));
  for (const auto& [task, address] : cluster_->spec().Tasks()) {
    masters_[task] = cluster_->ConnectMaster(task);
  }
}

SimulatedCluster::~SimulatedCluster() {
  cluster_->ShutDown();
  // Every call that is under way ends by itself.
  EXPECT_TRUE(world.RunUntil([&] { return cluster_->drained(); }, absl::Minutes(2)));
  world.RunFor(absl::Seconds(30));
  // The data planes go with it, and their peers hear of it: streams and their handlers hold each
  // other until then.
  masters_.clear();
  cluster_ = nullptr;
  world.RunFor(absl::Seconds(1));
}

MasterInterface& SimulatedCluster::master(const std::string& task) { return *masters_.at(task); }

TestSession::TestSession(SimulatedCluster& cluster, const Graph& graph, SessionSettings settings)
    : TestSession(cluster, cluster.master(), graph, std::move(settings)) {}

TestSession::TestSession(SimulatedCluster& cluster, MasterInterface& master, const Graph& graph,
                         SessionSettings settings)
    : cluster_(cluster), master_(master) {
  CreateSessionRequest request;
  ExportGraphDef(graph, request.mutable_graph_def());
  *request.mutable_settings() = std::move(settings);
  const CreateSessionResponse response =
      cluster.Call(master_, &MasterInterface::CreateSession, std::move(request));
  status_ = ToStatus(response.status());
  handle_ = response.session_handle();
}

StatusOr<uint64_t> TestSession::Prepare(const StepSignature& signature) {
  PrepareRequest request;
  request.set_session_handle(handle_);
  *request.mutable_feed() = {signature.feeds.begin(), signature.feeds.end()};
  *request.mutable_fetch() = {signature.fetches.begin(), signature.fetches.end()};
  *request.mutable_target() = {signature.targets.begin(), signature.targets.end()};
  const PrepareResponse response =
      cluster_.Call(master_, &MasterInterface::Prepare, std::move(request));
  MR_RETURN_IF_ERROR(ToStatus(response.status()));
  return response.step_handle();
}

RunPreparedRequest TestSession::Request(uint64_t step, std::vector<Tensor> feeds) {
  RunPreparedRequest request;
  request.set_session_handle(handle_);
  request.set_step_handle(step);
  request.set_request_id(++last_request_);
  for (const Tensor& feed : feeds) {
    EXPECT_EQ(TensorToProto(feed, request.add_feed()), absl::OkStatus());
  }
  return request;
}

std::shared_ptr<Pending<RunPreparedResponse>> TestSession::Start(RunPreparedRequest request) {
  return cluster_.Start(master_, &MasterInterface::RunPrepared, std::move(request));
}

StatusOr<std::vector<Tensor>> TestSession::Run(uint64_t step, std::vector<Tensor> feeds) {
  const auto pending = Start(Request(step, std::move(feeds)));
  cluster_.Await(*pending);
  MR_RETURN_IF_ERROR(pending->transport);
  return FetchesOf(pending->response);
}

StatusOr<std::vector<Tensor>> TestSession::Run(const StepSignature& signature,
                                               std::vector<Tensor> feeds) {
  MR_ASSIGN_OR_RETURN(const uint64_t step, Prepare(signature));
  return Run(step, std::move(feeds));
}

Status TestSession::Close() {
  CloseSessionRequest request;
  request.set_session_handle(handle_);
  return ToStatus(
      cluster_.Call(master_, &MasterInterface::CloseSession, std::move(request)).status());
}

StatusOr<std::vector<Tensor>> FetchesOf(const RunPreparedResponse& response) {
  MR_RETURN_IF_ERROR(ToStatus(response.status()));
  std::vector<Tensor> fetches;
  for (const TensorProto& fetch : response.fetch()) {
    MR_ASSIGN_OR_RETURN(Tensor tensor, TensorFromProto(fetch));
    fetches.push_back(std::move(tensor));
  }
  return fetches;
}

Tensor Floats(std::vector<float> values) {
  return Tensor::Of<float>(Shape({static_cast<int64_t>(values.size())}), values);
}

std::vector<float> ValuesOf(const Tensor& tensor) {
  const absl::Span<const float> values = tensor.span<float>();
  return {values.begin(), values.end()};
}

}  // namespace millrace::testing
