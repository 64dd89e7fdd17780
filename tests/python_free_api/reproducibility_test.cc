// One program gives one sequence of losses: in a fresh process, on devices and servers that have
// run others, spread over replicas.
#include <memory>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/thread_pool.h"
#include "distributed/remote_session.h"
#include "gtest/gtest.h"
#include "kernels/register.h"
#include "tests/python_free_api/small_run.h"
#include "tests/testing/graph_runner.h"
#include "tests/testing/in_process_cluster.h"
#include "tests/testing/memory_data_plane.h"
#include "tests/testing/op_text.h"

namespace millrace::testing {
namespace {

class ReproducibilityTest : public ::testing::Test {
 protected:
  ReproducibilityTest() {
    SmallRun run(*files_);
    run.options.folder = "fresh";
    const StatusOr<TrainingResult> result = run.Train();
    EXPECT_EQ(result.status(), Status());
    if (result.ok()) fresh_ = *result;
  }
  void ExpectFresh(const StatusOr<TrainingResult>& result) {
    ASSERT_EQ(result.status(), Status());
    EXPECT_EQ(result->losses, fresh_.losses);
    EXPECT_EQ(result->test_accuracy, fresh_.test_accuracy);
  }

  std::unique_ptr<FileSystem> files_ = NewMemoryFileSystem();
  TrainingResult fresh_;
};

TEST_F(ReproducibilityTest, ASecondRunOnTheSameDevicesIsTheFirstOne) {
  SmallRun run(*files_);
  // Another program's draws, which move the devices' counter on.
  GraphBuilder b(run.program().runtime->ops());
  const Value noise = RandomUniform(IntVector(b, {3}), DType::kFloat, 1);
  const auto other = run.program().runtime->OpenSession(b);
  ASSERT_EQ(other.status(), Status());
  for (int i = 0; i < 3; ++i) {
    run.options.folder = StrCat("run", i);
    ExpectFresh(run.Train());
    ASSERT_EQ(RunStep(**other, {}, {noise.name()}).status(), Status());
  }
}

DataParallelPsOptions Replicas(const SmallRun& run, int count) {
  DataParallelPsOptions options;
  options.variable_device = "/device:CPU:0";
  for (int i = 0; i < count; ++i) options.replica_devices.push_back(StrCat("/device:CPU:", i));
  for (const std::vector<Value>* inputs : {&run.graph.inputs, &run.graph.test_inputs}) {
    for (const Value& input : *inputs) options.split_feeds.push_back(input.name());
  }
  return options;
}

// The mask of dropout is that of the whole batch, cut as the batch is.
TEST_F(ReproducibilityTest, ReplicasHaveTheLossesOfOneUpToRounding) {
  for (const int count : {1, 2}) {
    RuntimeOptions runtime;
    runtime.cpu_devices = count;
    SmallRun run(*files_, runtime);
    run.options.folder = StrCat("replicas", count);
    run.session.strategy = NewDataParallelPs(Replicas(run, count)).value();
    const StatusOr<TrainingResult> result = run.Train();
    ASSERT_EQ(result.status(), Status());
    ASSERT_EQ(result->losses.size(), fresh_.losses.size());
    for (size_t i = 0; i < fresh_.losses.size(); ++i) {
      EXPECT_NEAR(result->losses[i], fresh_.losses[i], 1e-5) << "step " << i + 1;
    }
  }
}

TEST_F(ReproducibilityTest, ACheckpointOfReplicasIsResumedByOneDevice) {
  RuntimeOptions runtime;
  runtime.cpu_devices = 2;
  SmallRun spread(*files_, runtime);
  spread.session.strategy = NewDataParallelPs(Replicas(spread, 2)).value();
  spread.options.max_steps = 5;
  ASSERT_EQ(spread.Train().status(), Status());
  SmallRun alone(*files_);
  alone.options.resume = true;
  const StatusOr<TrainingResult> result = alone.Train();
  ASSERT_EQ(result.status(), Status());
  ASSERT_EQ(result->losses.size(), fresh_.losses.size() - 5);
  for (size_t i = 0; i < result->losses.size(); ++i) {
    EXPECT_NEAR(result->losses[i], fresh_.losses[i + 5], 1e-5) << "step " << i + 6;
  }
}

// A master and workers in this process, and clients that come one after the other.
class ServersTest : public ReproducibilityTest {
 protected:
  ServersTest() : host_(PoolOptions()), planes_(*host_.environment().scheduler) {
    InProcessClusterOptions options;
    options.jobs = {{"ps", 1}, {"worker", 2}};
    options.environment = host_.environment();
    options.ops = AllOps();
    options.kernels = &AllKernels();
    options.make_data_plane = [this](const std::string&, const std::string& address,
                                     uint64_t incarnation) {
      return planes_.Create(address, incarnation);
    };
    cluster_ = std::make_unique<InProcessCluster>(std::move(options));
  }
  ~ServersTest() override {
    cluster_->ShutDown();
    Notification never;
    for (int i = 0; i < 3000 && !cluster_->drained(); ++i) never.WaitFor(absl::Milliseconds(10));
    EXPECT_TRUE(cluster_->drained());
    // Messages that nobody waits for may still be on the wire.
    never.WaitFor(absl::Milliseconds(50));
  }
  static ThreadPool::Options PoolOptions() {
    ThreadPool::Options options;
    options.threads = 3;
    options.on_thread_start = UseOneLibraryThread;
    return options;
  }

  StatusOr<std::unique_ptr<Session>> Open(const Graph& graph) {
    RemoteSessionOptions options;
    options.name = "test://worker";
    options.environment = host_.environment();
    return NewRemoteSession(graph, cluster_->ConnectMaster("/job:worker/task:0"), options);
  }

  HostEnvironment host_;
  MemoryDataPlanes planes_;
  std::unique_ptr<InProcessCluster> cluster_;
};

TEST_F(ServersTest, ASecondClientHasTheRunOfTheFirst) {
  for (int client = 0; client < 2; ++client) {
    SmallRun run(*files_);
    run.options.folder = StrCat("client", client);
    const StatusOr<std::unique_ptr<Session>> session = Open(run.program().b.graph());
    ASSERT_EQ(session.status(), Status());
    ExpectFresh(run.TrainIn(**session));
    EXPECT_EQ((*session)->Close(), Status());
  }
}

TEST_F(ServersTest, ARunGoesOnOnServersThatHaveRunAnother) {
  SmallRun first(*files_);
  first.options.max_steps = 5;
  ASSERT_EQ(first.Train().status(), Status());
  SmallRun another(*files_);
  another.options.folder = "another";
  SmallRun second(*files_);
  second.options.resume = true;
  for (SmallRun* run : {&another, &second}) {
    const StatusOr<std::unique_ptr<Session>> session = Open(run->program().b.graph());
    ASSERT_EQ(session.status(), Status());
    const StatusOr<TrainingResult> result = run->TrainIn(**session);
    ASSERT_EQ(result.status(), Status());
    EXPECT_EQ(result->losses,
              std::vector<double>(fresh_.losses.begin() + result->first_step, fresh_.losses.end()));
    EXPECT_EQ((*session)->Close(), Status());
  }
}

}  // namespace
}  // namespace millrace::testing
