// The client's side on real threads: one program serves a local and a remote session.
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "core/base/thread_pool.h"
#include "distributed/remote_session.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/register.h"
#include "tests/distributed/test_program.h"
#include "tests/testing/in_process_cluster.h"
#include "tests/testing/memory_data_plane.h"

namespace millrace::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kWorker0[] = "/job:worker/task:0";
constexpr char kWorker1[] = "/job:worker/task:1";
constexpr char kPs[] = "/job:ps/task:0";

const StepSignature kInit = {{}, {}, {"init"}};
const StepSignature kTrain = {{"extra:0"}, {"loss:0"}, {"train"}};
const StepSignature kRead = {{}, {"w_value:0"}, {}};

Tensor Floats(std::vector<float> values) {
  return Tensor::Of<float>(Shape({static_cast<int64_t>(values.size())}), values);
}

std::vector<float> ValuesOf(const Tensor& tensor) {
  const absl::Span<const float> values = tensor.span<float>();
  return {values.begin(), values.end()};
}

std::string Message(const Status& status) { return std::string(status.message()); }

ThreadPool::Options PoolOptions() {
  ThreadPool::Options options;
  options.threads = 3;
  options.on_thread_start = UseOneLibraryThread;
  return options;
}

class SessionTest : public ::testing::Test {
 protected:
  SessionTest() : host_(PoolOptions()), planes_(*host_.environment().scheduler) {
    InProcessClusterOptions options;
    options.jobs = {{"ps", 1}, {"worker", 2}};
    options.environment = host_.environment();
    options.ops = TestOps();
    options.kernels = &TestKernels();
    options.make_data_plane = [this](const std::string&, const std::string& address,
                                     uint64_t incarnation) {
      return planes_.Create(address, incarnation);
    };
    cluster_ = std::make_unique<InProcessCluster>(std::move(options));
    CloseGate("g0");
    CloseGate("g1");
  }
  ~SessionTest() override {
    cluster_->ShutDown();
    Notification never;
    for (int i = 0; i < 3000 && !cluster_->drained(); ++i) never.WaitFor(absl::Milliseconds(10));
    EXPECT_TRUE(cluster_->drained());
    // Messages that nobody waits for may still be on the wire.
    never.WaitFor(absl::Milliseconds(50));
  }

  StatusOr<std::unique_ptr<Session>> Open(const Graph& graph, const std::string& master = kWorker0,
                                          absl::Duration patience = absl::Seconds(10)) {
    RemoteSessionOptions options;
    options.name = StrCat("test://", master);
    options.environment = host_.environment();
    options.connect_timeout = patience;
    return NewRemoteSession(graph, cluster_->ConnectMaster(master), options);
  }
  std::unique_ptr<Session> MustOpen(const Graph& graph, const std::string& master = kWorker0,
                                    absl::Duration patience = absl::Seconds(10)) {
    StatusOr<std::unique_ptr<Session>> session = Open(graph, master, patience);
    EXPECT_EQ(session.status(), absl::OkStatus());
    return session.ok() ? *std::move(session) : nullptr;
  }
  static std::shared_ptr<PreparedStep> MustPrepare(Session& session,
                                                   const StepSignature& signature) {
    StatusOr<std::shared_ptr<PreparedStep>> step = session.Prepare(signature);
    EXPECT_EQ(step.status(), absl::OkStatus());
    return step.ok() ? *step : nullptr;
  }
  static StatusOr<RunResult> Run(Session& session, const StepSignature& signature,
                                 std::vector<Tensor> feeds = {}, const RunOptions& options = {}) {
    MR_ASSIGN_OR_RETURN(const std::shared_ptr<PreparedStep> step, session.Prepare(signature));
    return session.Run(*step, std::move(feeds), options);
  }

  HostEnvironment host_;
  MemoryDataPlanes planes_;
  std::unique_ptr<InProcessCluster> cluster_;
};

constexpr char kGates[] = R"(
a = Const() {dtype=float, value=tensor(float[1]: 1)} @/job:worker/task:0
b = Const() {dtype=float, value=tensor(float[1]: 2)} @/job:worker/task:1
a1 = Gate(a) {name="g0"} @/job:worker/task:0
b1 = Gate(b) {name="g1"} @/job:worker/task:1
sum = AddV2(a1, b1) @/job:worker/task:0
)";

TEST_F(SessionTest, Trains) {
  const std::unique_ptr<Session> session = MustOpen(ParseGraphText(kTrainingGraph));
  ASSERT_NE(session, nullptr);
  ASSERT_EQ(Run(*session, kInit).status(), absl::OkStatus());
  const std::shared_ptr<PreparedStep> train = MustPrepare(*session, kTrain);
  ASSERT_NE(train, nullptr);
  EXPECT_EQ(train->signature(), kTrain);
  EXPECT_EQ(MustPrepare(*session, kTrain), train) << "the same object";
  float loss = 1e9;
  for (int i = 0; i < 100; ++i) {
    const StatusOr<RunResult> result = session->Run(*train, {Floats({0, 0, 0, 0})});
    ASSERT_EQ(result.status(), absl::OkStatus());
    EXPECT_LE(result->fetches[0].data<float>()[0], loss);
    loss = result->fetches[0].data<float>()[0];
    EXPECT_TRUE(result->events.empty());
    EXPECT_GT(result->step_id, 0u);
  }
  const StatusOr<RunResult> w = Run(*session, kRead);
  ASSERT_EQ(w.status(), absl::OkStatus());
  EXPECT_THAT(ValuesOf(w->fetches[0]),
              ElementsAre(::testing::FloatNear(2, 1e-3), ::testing::FloatNear(2, 1e-3),
                          ::testing::FloatNear(2, 1e-3), ::testing::FloatNear(2, 1e-3)));
}

TEST_F(SessionTest, ManyStepsAtOnceFromManyThreads) {
  const std::unique_ptr<Session> session = MustOpen(ParseGraphText(kTrainingGraph));
  ASSERT_NE(session, nullptr);
  ASSERT_EQ(Run(*session, kInit).status(), absl::OkStatus());
  const std::shared_ptr<PreparedStep> train = MustPrepare(*session, kTrain);
  ASSERT_NE(train, nullptr);
  constexpr int kSteps = 200;
  std::atomic<int> left{kSteps};
  std::atomic<int> good{0};
  Notification done;
  for (int i = 0; i < kSteps; ++i) {
    session->RunAsync(*train, {Floats({0, 0, 0, 0})}, {}, [&](const StatusOr<RunResult>& result) {
      if (result.ok()) ++good;
      if (--left == 0) done.Notify();
    });
  }
  ASSERT_TRUE(done.WaitFor(absl::Seconds(60)));
  EXPECT_EQ(good, kSteps);
  EXPECT_EQ(cluster_->worker(kPs).usage().live_steps, 0);
}

TEST_F(SessionTest, SeveralMastersDriveTheSameVariables) {
  const std::unique_ptr<Session> first = MustOpen(ParseGraphText(kTrainingGraph), kWorker0);
  const std::unique_ptr<Session> second = MustOpen(ParseGraphText(kTrainingGraph), kWorker1);
  ASSERT_TRUE(first != nullptr && second != nullptr);
  ASSERT_EQ(Run(*first, kInit).status(), absl::OkStatus());
  std::atomic<int> left{100};
  Notification done;
  for (Session* session : {first.get(), second.get()}) {
    const std::shared_ptr<PreparedStep> train = MustPrepare(*session, kTrain);
    ASSERT_NE(train, nullptr);
    for (int i = 0; i < 50; ++i) {
      session->RunAsync(*train, {Floats({0, 0, 0, 0})}, {},
                        [&, train](const StatusOr<RunResult>& result) {
                          EXPECT_EQ(result.status(), absl::OkStatus());
                          if (--left == 0) done.Notify();
                        });
    }
  }
  ASSERT_TRUE(done.WaitFor(absl::Seconds(60)));
}

TEST_F(SessionTest, ChecksFeedsBeforeItSends) {
  const std::unique_ptr<Session> session = MustOpen(ParseGraphText(kTrainingGraph));
  ASSERT_NE(session, nullptr);
  const std::shared_ptr<PreparedStep> train = MustPrepare(*session, kTrain);
  ASSERT_NE(train, nullptr);
  EXPECT_EQ(session->Run(*train, {}).status(), InvalidArgument("the step has 1 feeds, but got 0"));
  EXPECT_EQ(session->Run(*train, {Floats({1})}).status(),
            InvalidArgument("feed 'extra:0': expected float[4], but got float[1]"));
  EXPECT_EQ(session->Run(*train, {Tensor()}).status(),
            InvalidArgument("feed 'extra:0': expected float[4], but got no tensor"));
  EXPECT_EQ(cluster_->wire().calls("RunPrepared"), 0);
}

TEST_F(SessionTest, TheGraphGrows) {
  Graph graph = ParseGraphText(kTrainingGraph);
  const std::unique_ptr<Session> session = MustOpen(graph);
  ASSERT_NE(session, nullptr);
  ASSERT_EQ(Run(*session, kInit).status(), absl::OkStatus());
  EXPECT_EQ(session->Extend(graph), absl::OkStatus());
  EXPECT_EQ(cluster_->wire().calls("ExtendSession"), 0) << "there was nothing new";
  Graph more = ParseGraphText(StrCat(kTrainingGraph, "more = AddV2(w_value, w_value)\n"));
  EXPECT_EQ(session->Extend(more), absl::OkStatus());
  EXPECT_EQ(Run(*session, {{}, {"more:0"}, {}}).status(), absl::OkStatus());
  EXPECT_EQ(session->Extend(more), absl::OkStatus());
  Graph other =
      ParseGraphText("half = Const() {dtype=float, value=tensor(float[]: 0.25)} @/job:ps/task:0\n");
  const Status differs = session->Extend(other);
  EXPECT_EQ(differs.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(differs), HasSubstr("node 'half' (Const) is in the session already"));
}

TEST_F(SessionTest, ReportsAndShowsThePlacedGraph) {
  const std::unique_ptr<Session> session = MustOpen(ParseGraphText(kTrainingGraph));
  ASSERT_NE(session, nullptr);
  ASSERT_EQ(Run(*session, kInit).status(), absl::OkStatus());
  const std::shared_ptr<PreparedStep> train = MustPrepare(*session, kTrain);
  ASSERT_NE(train, nullptr);
  ASSERT_EQ(session->Run(*train, {Floats({0, 0, 0, 0})}).status(), absl::OkStatus());
  const StatusOr<PlacementReport> report = train->Report();
  ASSERT_EQ(report.status(), absl::OkStatus());
  ASSERT_FALSE(report->links.empty());
  EXPECT_EQ(report->links[0].measured_steps, 1);
  const Node* node = train->placed_graph().Find("train");
  ASSERT_NE(node, nullptr);
  EXPECT_EQ(node->assigned_device().ToString(), "/job:ps/task:0/device:CPU:0");
  const StatusOr<std::vector<DeviceInfo>> devices = session->ListDevices();
  ASSERT_EQ(devices.status(), absl::OkStatus());
  EXPECT_EQ(devices->size(), 3u);
}

TEST_F(SessionTest, ATraceHasTheKernelsOfAllTasks) {
  const std::unique_ptr<Session> session = MustOpen(ParseGraphText(kTrainingGraph));
  ASSERT_NE(session, nullptr);
  ASSERT_EQ(Run(*session, kInit).status(), absl::OkStatus());
  RunOptions options;
  options.trace = true;
  const StatusOr<RunResult> result = Run(*session, kTrain, {Floats({0, 0, 0, 0})}, options);
  ASSERT_EQ(result.status(), absl::OkStatus());
  int sends = 0;
  int receives = 0;
  bool update = false;
  for (const KernelEvent& event : result->events) {
    EXPECT_LE(event.start_micros, event.end_micros);
    if (event.op == "_Send" && event.channel >= 0) ++sends;
    if (event.op == "_Recv" && event.channel >= 0) ++receives;
    update = update || (event.op == "ResourceApplyGradientDescent" &&
                        event.device == "/job:ps/task:0/device:CPU:0");
  }
  EXPECT_GT(sends, 0);
  EXPECT_EQ(sends, receives);
  EXPECT_TRUE(update);
}

TEST_F(SessionTest, ALostReplyIsAskedForAgain) {
  const std::unique_ptr<Session> session = MustOpen(ParseGraphText(R"(
n = VarHandleOp() {dtype=float, shape=[], shared_name="n"}
zero = Const() {dtype=float, value=tensor(float[]: 0)}
one = Const() {dtype=float, value=tensor(float[]: 1)}
init = AssignVariableOp(n, zero)
add = AssignAddVariableOp(n, one)
out = ReadVariableOp(n, ^add) {dtype=float}
)"));
  ASSERT_NE(session, nullptr);
  ASSERT_EQ(Run(*session, kInit).status(), absl::OkStatus());
  const std::shared_ptr<PreparedStep> add = MustPrepare(*session, {{}, {"out:0"}, {"add"}});
  ASSERT_NE(add, nullptr);
  std::atomic<int> calls{0};
  cluster_->wire().SetFaults([&](const std::string&, const std::string& method) {
    Wire::Fault fault;
    if (method != "RunPrepared") return fault;
    const int call = ++calls;
    fault.lose_response = call % 3 == 1;
    fault.lose_request = call % 3 == 2;
    return fault;
  });
  for (int i = 1; i <= 20; ++i) {
    const StatusOr<RunResult> result = session->Run(*add, {});
    ASSERT_EQ(result.status(), absl::OkStatus());
    EXPECT_EQ(result->fetches[0].data<float>()[0], i) << "each step once";
  }
  EXPECT_EQ(calls, 60);
  cluster_->wire().SetFaults(nullptr);
}

TEST_F(SessionTest, AMasterThatIsGoneLeavesTheOutcomeUnknown) {
  const std::unique_ptr<Session> session =
      MustOpen(ParseGraphText(kTrainingGraph), kWorker0, absl::Milliseconds(200));
  ASSERT_NE(session, nullptr);
  const std::shared_ptr<PreparedStep> init = MustPrepare(*session, kInit);
  ASSERT_NE(init, nullptr);
  cluster_->Kill(kWorker0);
  const Status status = session->Run(*init, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnknown) << status;
  EXPECT_THAT(Message(status), AllOf(HasSubstr("test:///job:worker/task:0"),
                                     HasSubstr("whether the step took effect is not known")));
  const Status unopened =
      Open(ParseGraphText(kTrainingGraph), kWorker0, absl::Milliseconds(100)).status();
  EXPECT_EQ(unopened.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(Message(unopened), HasSubstr("test:///job:worker/task:0"));
  // Restarted within the patience, it says that it knows nothing of the session.
  cluster_->Start(kWorker0);
  EXPECT_EQ(session->Run(*init, {}).status().code(), absl::StatusCode::kAborted);
}

TEST_F(SessionTest, AMasterThatComesUpLateIsWaitedFor) {
  cluster_->Kill(kWorker0);
  host_.environment().timers->After(absl::Milliseconds(100), [this] { cluster_->Start(kWorker0); });
  const std::unique_ptr<Session> session = MustOpen(ParseGraphText(kTrainingGraph));
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(Run(*session, kInit).status(), absl::OkStatus());
}

TEST_F(SessionTest, ATimeoutEndsAStep) {
  const std::unique_ptr<Session> session = MustOpen(ParseGraphText(kGates));
  ASSERT_NE(session, nullptr);
  RunOptions options;
  options.timeout = absl::Milliseconds(50);
  const Status status = Run(*session, {{}, {"sum:0"}, {}}, {}, options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Message(status), HasSubstr("/job:worker/task:"));
}

TEST_F(SessionTest, CancellingEndsAStep) {
  const std::unique_ptr<Session> session = MustOpen(ParseGraphText(kGates));
  ASSERT_NE(session, nullptr);
  Cancellation cancellation;
  host_.environment().timers->After(absl::Milliseconds(50), [cancellation]() mutable {
    cancellation.Cancel(Cancelled("enough"));
  });
  RunOptions options;
  options.cancellation = &cancellation;
  const Status status = Run(*session, {{}, {"sum:0"}, {}}, {}, options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(Message(status), HasSubstr("enough"));
}

TEST_F(SessionTest, CloseEndsRunningStepsAndTheSession) {
  const std::unique_ptr<Session> session = MustOpen(ParseGraphText(kGates));
  ASSERT_NE(session, nullptr);
  const std::shared_ptr<PreparedStep> step = MustPrepare(*session, {{}, {"sum:0"}, {}});
  ASSERT_NE(step, nullptr);
  Notification ended;
  Status outcome;
  session->RunAsync(*step, {}, {}, [&](const StatusOr<RunResult>& result) {
    outcome = result.status();
    ended.Notify();
  });
  EXPECT_EQ(session->Close(), absl::OkStatus());
  EXPECT_EQ(session->Close(), absl::OkStatus());
  ASSERT_TRUE(ended.WaitFor(absl::Seconds(30)));
  // Cancelled, or it came after the end.
  EXPECT_TRUE(outcome.code() == absl::StatusCode::kCancelled ||
              outcome.code() == absl::StatusCode::kAborted)
      << outcome;
  EXPECT_EQ(session->Run(*step, {}).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(session->Prepare(kInit).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(SessionTest, AStepOfAnotherSessionIsRefused) {
  const std::unique_ptr<Session> first = MustOpen(ParseGraphText(kTrainingGraph));
  const std::unique_ptr<Session> second = MustOpen(ParseGraphText(kTrainingGraph));
  ASSERT_TRUE(first != nullptr && second != nullptr);
  const std::shared_ptr<PreparedStep> init = MustPrepare(*first, kInit);
  ASSERT_NE(init, nullptr);
  EXPECT_EQ(second->Run(*init, {}).status(),
            InvalidArgument("the step was prepared by another session"));
}

TEST_F(SessionTest, ResetDropsVariables) {
  const std::unique_ptr<Session> session = MustOpen(ParseGraphText(kTrainingGraph));
  ASSERT_NE(session, nullptr);
  ASSERT_EQ(Run(*session, kInit).status(), absl::OkStatus());
  EXPECT_EQ(Run(*session, kRead).status(), absl::OkStatus());
  EXPECT_EQ(session->Reset({}), absl::OkStatus());
  EXPECT_EQ(Run(*session, kRead).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(SessionTest, AWorkerThatDiesIsNamedAndANewSessionGoesOn) {
  const std::unique_ptr<Session> session = MustOpen(ParseGraphText(kTrainingGraph));
  ASSERT_NE(session, nullptr);
  ASSERT_EQ(Run(*session, kInit).status(), absl::OkStatus());
  const std::shared_ptr<PreparedStep> train = MustPrepare(*session, kTrain);
  ASSERT_NE(train, nullptr);
  // Outlives this test if that ends early.
  struct Loop : std::enable_shared_from_this<Loop> {
    Session* session;
    std::shared_ptr<PreparedStep> train;
    Notification failed;
    Status status;

    void Run() {
      session->RunAsync(*train, {Floats({0, 0, 0, 0})}, {},
                        [self = shared_from_this()](const StatusOr<RunResult>& result) {
                          if (result.ok()) return self->Run();
                          self->status = result.status();
                          self->failed.Notify();
                        });
    }
  };
  const auto loop = std::make_shared<Loop>();
  loop->session = session.get();
  loop->train = train;
  loop->Run();
  Notification pause;
  pause.WaitFor(absl::Milliseconds(30));
  cluster_->Kill(kWorker1);
  ASSERT_TRUE(loop->failed.WaitFor(absl::Seconds(10)));
  EXPECT_EQ(loop->status.code(), absl::StatusCode::kUnavailable) << loop->status;
  EXPECT_THAT(Message(loop->status), HasSubstr(kWorker1));
  cluster_->Start(kWorker1);
  const std::unique_ptr<Session> again = MustOpen(ParseGraphText(kTrainingGraph));
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(Run(*again, kTrain, {Floats({0, 0, 0, 0})}).status(), absl::OkStatus());
}

}  // namespace
}  // namespace millrace::testing
