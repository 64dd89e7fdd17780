#ifndef TESTS_DISTRIBUTED_SIMULATED_CLUSTER_H_
#define TESTS_DISTRIBUTED_SIMULATED_CLUSTER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/simulation.h"
#include "core/graph/algorithms.h"
#include "distributed/data_plane.h"
#include "gtest/gtest.h"
#include "tests/distributed/data_plane/simulated_network.h"
#include "tests/distributed/test_program.h"
#include "tests/testing/in_process_cluster.h"

namespace millrace::testing {

// A call that may still be under way.
template <typename Response>
struct Pending {
  Response response;
  Status transport;
  bool done = false;
  Cancellation cancellation;  // cancelling it ends the call as a client's disconnection would
};

struct SimulatedClusterOptions {
  uint64_t seed = 1;
  std::vector<std::pair<std::string, int>> jobs = {{"ps", 1}, {"worker", 2}};
  absl::Duration max_delay = absl::Milliseconds(1);
  std::function<void(MasterOptions&)> adjust_master;
  std::function<void(WorkerOptions&)> adjust_worker;
};

// A cluster in a simulated world, with the real data plane over a simulated network, and what a
// client does with it: calls that run the world until they are answered.
class SimulatedCluster {
 public:
  explicit SimulatedCluster(SimulatedClusterOptions options = {});
  ~SimulatedCluster();

  InProcessCluster& cluster() { return *cluster_; }
  // The client's connection to the master of "/job:worker/task:0", or of the task given.
  MasterInterface& master() { return *masters_["/job:worker/task:0"]; }
  MasterInterface& master(const std::string& task);

  template <typename Request, typename Response>
  std::shared_ptr<Pending<Response>> Start(
      MasterInterface& master,
      void (MasterInterface::*method)(const Request*, Response*, const CallOptions&, CallDone),
      Request request) {
    struct Call {
      Request request;
      std::shared_ptr<Pending<Response>> pending;
    };
    auto call = std::make_shared<Call>();
    call->request = std::move(request);
    call->pending = std::make_shared<Pending<Response>>();
    CallOptions options;
    options.cancellation = &call->pending->cancellation;
    (master.*method)(&call->request, &call->pending->response, options,
                     [call](const Status& status) {
                       call->pending->transport = status;
                       call->pending->done = true;
                     });
    return call->pending;
  }
  // Runs the world until the call is answered; a failure of the test if it is not in `limit`.
  template <typename Response>
  void Await(const Pending<Response>& pending, absl::Duration limit = absl::Minutes(2)) {
    EXPECT_TRUE(world.RunUntil([&] { return pending.done; }, limit)) << "no answer";
  }
  template <typename Request, typename Response>
  Response Call(MasterInterface& master,
                void (MasterInterface::*method)(const Request*, Response*, const CallOptions&,
                                                CallDone),
                Request request) {
    const auto pending = Start(master, method, std::move(request));
    Await(*pending);
    EXPECT_EQ(pending->transport, absl::OkStatus());
    return pending->response;
  }
  // What the data plane of a task that is up holds.
  StreamDataPlane::Usage DataPlaneUsage(const std::string& task) const {
    return planes_.at(task)->usage();
  }
  bool RunUntil(absl::FunctionRef<bool()> done, absl::Duration limit = absl::Minutes(2)) {
    return world.RunUntil(done, limit);
  }

  Simulation world;
  SimulatedNetwork network;

 private:
  std::unique_ptr<InProcessCluster> cluster_;
  std::map<std::string, std::unique_ptr<MasterInterface>> masters_;
  std::map<std::string, StreamDataPlane*> planes_;  // of the tasks' latest lives
};

// One session, with the master's calls in a short form. Request ids count from 1.
class TestSession {
 public:
  // Fails the test if there is none.
  TestSession(SimulatedCluster& cluster, const Graph& graph, SessionSettings settings = {});
  TestSession(SimulatedCluster& cluster, MasterInterface& master, const Graph& graph,
              SessionSettings settings = {});

  const Status& status() const { return status_; }
  const std::string& handle() const { return handle_; }

  StatusOr<uint64_t> Prepare(const StepSignature& signature);
  RunPreparedRequest Request(uint64_t step, std::vector<Tensor> feeds = {});
  std::shared_ptr<Pending<RunPreparedResponse>> Start(RunPreparedRequest request);
  StatusOr<std::vector<Tensor>> Run(uint64_t step, std::vector<Tensor> feeds = {});
  // Prepares, too.
  StatusOr<std::vector<Tensor>> Run(const StepSignature& signature, std::vector<Tensor> feeds = {});
  Status Close();

 private:
  SimulatedCluster& cluster_;
  MasterInterface& master_;
  Status status_;
  std::string handle_;
  uint64_t last_request_ = 0;
};

// The response's own status, or its fetches.
StatusOr<std::vector<Tensor>> FetchesOf(const RunPreparedResponse& response);

Tensor Floats(std::vector<float> values);
std::vector<float> ValuesOf(const Tensor& tensor);

}  // namespace millrace::testing

#endif  // TESTS_DISTRIBUTED_SIMULATED_CLUSTER_H_
