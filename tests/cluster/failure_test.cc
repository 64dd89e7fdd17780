// Tasks that die, stall, or were never there: a status that names the task within a bound, and the
// others stay usable.
#include <signal.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "core/base/mutex.h"
#include "distributed/cluster_spec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "python_free_api/millrace.h"
#include "tests/cluster/cluster_harness.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

constexpr char kVictim[] = "/job:worker/task:1";

class FailureTest : public testing::Test {
 protected:
  void SetUp() override {
    StatusOr<std::unique_ptr<Runtime>> runtime = Runtime::Create();
    ASSERT_EQ(runtime.status(), Status());
    runtime_ = *std::move(runtime);
  }

  StatusOr<std::unique_ptr<Session>> Open(const GraphBuilder& b, const std::string& target) {
    SessionOptions options;
    options.target = target;
    return runtime_->OpenSession(b, options);
  }

  // 1 + 2 on `device`, in a session of its own.
  StatusOr<float> AddOn(const std::string& target, const std::string& device) {
    GraphBuilder b(runtime_->ops());
    Value sum;
    {
      auto scope = b.DeviceScope(device);
      sum = Add(Placeholder(b, DType::kFloat, {}, "x"), Scalar(b, 2));
    }
    MR_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Open(b, target));
    StepSignature signature;
    signature.feeds = {"x"};
    signature.fetches = {sum.name()};
    MR_ASSIGN_OR_RETURN(std::shared_ptr<PreparedStep> step, session->Prepare(signature));
    std::vector<Tensor> feeds;
    feeds.push_back(Tensor::Scalar<float>(1));
    MR_ASSIGN_OR_RETURN(RunResult result, session->Run(*step, std::move(feeds)));
    return result.fetches[0].data<float>()[0];
  }

  // A step that works on both workers for minutes, the end on the first one: products of matrices,
  // each of the one before.
  void BuildLongStep(GraphBuilder& b) {
    constexpr int64_t kSize = 1024;
    constexpr int kProducts = 1000;
    std::vector<Value> ends;
    for (const char* device : {"/job:worker/task:0", kVictim}) {
      auto scope = b.DeviceScope(device);
      Value x = Placeholder(b, DType::kFloat, {kSize, kSize});
      signature_.feeds.push_back(x.name());
      for (int i = 0; i < kProducts; ++i) x = MatMul(x, x);
      ends.push_back(ReduceSum(x));
    }
    auto scope = b.DeviceScope("/job:worker/task:0");
    signature_.fetches = {AddN(ends).name()};
    feeds_.assign(2, Tensor::Zeros(DType::kFloat, *Shape::Create({kSize, kSize})));
  }

  // Runs the long step, does `harm` in the middle of it, and gives how long the client then waited
  // for the end.
  absl::Duration RunAndHarm(HandStartedCluster& cluster, absl::FunctionRef<void()> harm,
                            Status* outcome) {
    GraphBuilder b(runtime_->ops());
    BuildLongStep(b);
    StatusOr<std::unique_ptr<Session>> session = Open(b, cluster.target("worker", 0));
    EXPECT_EQ(session.status(), Status());
    if (!session.ok()) return absl::InfiniteDuration();
    StatusOr<std::shared_ptr<PreparedStep>> step = (*session)->Prepare(signature_);
    EXPECT_EQ(step.status(), Status());
    if (!step.ok()) return absl::InfiniteDuration();
    Notification done;
    (*session)->RunAsync(**step, feeds_, {}, [&](StatusOr<RunResult> result) {
      *outcome = result.status();
      done.Notify();
    });
    EXPECT_FALSE(done.WaitFor(absl::Seconds(1))) << "the step is too short: " << *outcome;
    const Stopwatch watch;
    harm();
    EXPECT_TRUE(done.WaitFor(kLong)) << "the step hangs";
    const absl::Duration waited = watch.elapsed();
    // Its master may be the victim.
    (void)(*session)->Close();
    return waited;
  }

  std::unique_ptr<Runtime> runtime_;
  StepSignature signature_;
  std::vector<Tensor> feeds_;
};

TEST_F(FailureTest, AKilledWorkerIsNamedWithinFiveSeconds) {
  const auto cluster = HandStartedCluster::Start({{"ps", 1}, {"worker", 2}});
  ASSERT_NE(cluster, nullptr);
  Status outcome;
  const absl::Duration waited = RunAndHarm(
      *cluster, [&] { cluster->server("worker", 1).process().Signal(SIGKILL); }, &outcome);
  EXPECT_EQ(outcome.code(), absl::StatusCode::kUnavailable) << outcome;
  EXPECT_THAT(std::string(outcome.message()), HasSubstr(kVictim));
  EXPECT_LT(waited, absl::Seconds(5));

  // The others answer, each as master and as a place to run.
  for (const auto& [job, task] : {std::pair("worker", 0), std::pair("ps", 0)}) {
    const StatusOr<float> sum = AddOn(cluster->target(job, task), TaskName(job, task));
    ASSERT_EQ(sum.status(), Status());
    EXPECT_EQ(*sum, 3);
  }
  // And a session that wants the dead one hears which it is.
  const StatusOr<float> refused = AddOn(cluster->target("worker", 0), kVictim);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr(kVictim));

  // Restarted at its address, it is one of the cluster again.
  const auto restarted = ServerProcess::Start(
      NewFolder(), "again", {"--cluster", cluster->spec(), "--job", "worker", "--task", "1"});
  ASSERT_NE(restarted, nullptr);
  ASSERT_EQ(restarted->WaitReady().status(), Status());
  const StatusOr<float> sum = AddOn(cluster->target("worker", 0), kVictim);
  ASSERT_EQ(sum.status(), Status());
  EXPECT_EQ(*sum, 3);
}

TEST_F(FailureTest, AStoppedWorkerIsNamedWithinSevenSeconds) {
  const auto cluster = HandStartedCluster::Start({{"ps", 1}, {"worker", 2}});
  ASSERT_NE(cluster, nullptr);
  Status outcome;
  const absl::Duration waited = RunAndHarm(
      *cluster, [&] { cluster->server("worker", 1).process().Signal(SIGSTOP); }, &outcome);
  EXPECT_EQ(outcome.code(), absl::StatusCode::kUnavailable) << outcome;
  EXPECT_THAT(std::string(outcome.message()), HasSubstr(kVictim));
  EXPECT_LT(waited, absl::Seconds(7));
  const StatusOr<float> sum = AddOn(cluster->target("worker", 0), "/job:ps/task:0");
  ASSERT_EQ(sum.status(), Status());
  EXPECT_EQ(*sum, 3);

  // It goes on where it stood, and can be used again, by new sessions.
  cluster->server("worker", 1).process().Signal(SIGCONT);
  StatusOr<float> again = Unavailable("not tried");
  for (const Stopwatch watch; !again.ok() && watch.elapsed() < kLong; Pause(absl::Seconds(1))) {
    again = AddOn(cluster->target("worker", 0), kVictim);
  }
  EXPECT_EQ(again.status(), Status());
}

TEST_F(FailureTest, AKilledMasterIsNamed) {
  const auto cluster = HandStartedCluster::Start({{"ps", 1}, {"worker", 2}});
  ASSERT_NE(cluster, nullptr);
  Status outcome;
  const absl::Duration waited = RunAndHarm(
      *cluster, [&] { cluster->server("worker", 0).process().Signal(SIGKILL); }, &outcome);
  EXPECT_FALSE(outcome.ok());
  EXPECT_THAT(std::string(outcome.message()), HasSubstr(cluster->address("worker", 0)));
  EXPECT_LT(waited, absl::Seconds(15));
  const StatusOr<float> sum = AddOn(cluster->target("worker", 1), kVictim);
  ASSERT_EQ(sum.status(), Status());
  EXPECT_EQ(*sum, 3);
}

TEST_F(FailureTest, APortInUseIsNamed) {
  const auto first = ServerProcess::Start(NewFolder(), "first", {});
  ASSERT_NE(first, nullptr);
  const StatusOr<std::string> address = first->WaitReady();
  ASSERT_EQ(address.status(), Status());
  const std::string port = address->substr(address->find(':') + 1);
  const auto second = ServerProcess::Start(NewFolder(), "second", {"--port", port});
  ASSERT_NE(second, nullptr);
  const StatusOr<int> code = second->process().Wait(kLong);
  ASSERT_EQ(code.status(), Status());
  EXPECT_EQ(*code, 1);
  EXPECT_THAT(second->log(), HasSubstr(*address));
  EXPECT_THAT(second->log(), HasSubstr("in use"));
  EXPECT_EQ(AddOn(StrCat("grpc://", *address), "").status(), Status());
}

TEST_F(FailureTest, ATaskThatIsNotThereIsNamedAndLeftAlone) {
  const std::vector<int> ports = FreePorts(2);
  for (const std::string& absent :
       {StrCat("127.0.0.1:", ports[1]), std::string("no-such-host.invalid:7000")}) {
    const std::string spec = StrCat("worker=127.0.0.1:", ports[0], ",", absent);
    const auto server = ServerProcess::Start(NewFolder(), "server",
                                             {"--cluster", spec, "--job", "worker", "--task", "0"});
    ASSERT_NE(server, nullptr);
    const StatusOr<std::string> address = server->WaitReady();
    ASSERT_EQ(address.status(), Status());
    const std::string target = StrCat("grpc://", *address);
    const StatusOr<float> sum = AddOn(target, "/job:worker/task:0");
    ASSERT_EQ(sum.status(), Status());
    EXPECT_EQ(*sum, 3);
    const Stopwatch watch;
    const Status refused = AddOn(target, kVictim).status();
    EXPECT_FALSE(refused.ok());
    EXPECT_THAT(std::string(refused.message()), HasSubstr(kVictim));
    EXPECT_LT(watch.elapsed(), absl::Seconds(11));
  }
}

TEST_F(FailureTest, AMasterThatIsNotThereIsNamed) {
  for (const std::string& absent :
       {StrCat("127.0.0.1:", FreePorts(1)[0]), std::string("no-such-host.invalid:7000")}) {
    const Stopwatch watch;
    const Status refused = AddOn(StrCat("grpc://", absent), "").status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr(absent));
    // The connect deadline.
    EXPECT_LT(watch.elapsed(), absl::Seconds(11));
  }
}

}  // namespace
}  // namespace millrace
