#include <functional>

#include "core/base/mutex.h"
#include "core/base/simulation.h"
#include "core/base/thread_pool.h"
#include "core/runtime/session.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/runtime/test_program.h"

namespace millrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kTrainer[] = R"(
x = Placeholder() {dtype=float, shape=[?]} @/device:CPU:1
w = VarHandleOp() {shape=[1]} @/device:CPU:0
v = VarHandleOp() {shape=[1]} @/device:CPU:1
one = Const() {dtype=float, value=tensor(float[1]: 1)}
init_w = AssignVariableOp(w, one)
init_v = AssignVariableOp(v, one)
read_w = ReadVariableOp(w)
read_v = ReadVariableOp(v)
sum = Add(read_w, x) @/device:CPU:1
rate = Const() {dtype=float, value=tensor(float[]: 0.5)}
train_w = ResourceApplyGradientDescent(w, rate, sum)
train_v = ResourceApplyGradientDescent(v, rate, sum)
)";

ThreadPool::Options FourThreads() {
  ThreadPool::Options options;
  options.threads = 4;
  return options;
}

Tensor Floats(std::initializer_list<float> values) {
  return Tensor::Of<float>(Shape({static_cast<int64_t>(values.size())}), values);
}

class LocalSessionTest : public ::testing::Test {
 protected:
  LocalSessionTest()
      : host_(FourThreads()),
        cpu0_("/job:local/task:0/device:CPU:0", *host_.environment().scheduler),
        cpu1_("/job:local/task:0/device:CPU:1", *host_.environment().scheduler) {
    hooks_.call["fail"] = [](KernelContext&) { return Status(InvalidArgument("it broke")); };
    hooks_.wait["for ever"] = [this](KernelContext& c, AsyncKernel::Done done) {
      // Ends when the step does.
      auto shared = std::make_shared<AsyncKernel::Done>(std::move(done));
      c.step().cancellation->OnCancel(
          [shared](const Status& reason) { std::move (*shared)(reason); });
      waiting_.fetch_add(1);
    };
  }

  void Open(absl::string_view text) {
    RegisterTestKernels(kernels_, hooks_);
    StatusOr<std::unique_ptr<Session>> session = NewLocalSession(GraphOrFail(text), Options());
    ASSERT_TRUE(session.ok()) << session.status();
    session_ = *std::move(session);
  }
  LocalSessionOptions Options() {
    LocalSessionOptions options;
    options.devices = {&cpu0_, &cpu1_};
    options.kernels = &kernels_;
    options.environment = host_.environment();
    return options;
  }

  StatusOr<RunResult> Run(const StepSignature& signature, std::vector<Tensor> feeds = {},
                          const RunOptions& options = {}) {
    MR_ASSIGN_OR_RETURN(std::shared_ptr<PreparedStep> step, session_->Prepare(signature));
    return session_->Run(*step, std::move(feeds), options);
  }
  std::string RunText(const StepSignature& signature, std::vector<Tensor> feeds = {}) {
    const StatusOr<RunResult> result = Run(signature, std::move(feeds));
    if (!result.ok()) return std::string(result.status().message());
    std::string text;
    for (const Tensor& fetch : result->fetches) absl::StrAppend(&text, fetch.ToString(), ";");
    return text;
  }

  HostEnvironment host_;
  FakeDevice cpu0_;
  FakeDevice cpu1_;
  Hooks hooks_;
  KernelRegistry kernels_;
  std::atomic<int> waiting_{0};
  std::unique_ptr<Session> session_;
};

TEST_F(LocalSessionTest, TrainsOverTwoDevices) {
  Open(kTrainer);
  EXPECT_THAT(RunText({{}, {"read_w"}, {}}), HasSubstr("variable 'w' has no value"));
  EXPECT_EQ(RunText({{}, {}, {"init_w", "init_v"}}), "");
  const StepSignature train{{"x"}, {"sum"}, {"train_w", "train_v"}};
  EXPECT_EQ(RunText(train, {Floats({2})}), "float[1] = 3;");
  EXPECT_EQ(RunText({{}, {"read_w", "read_v"}, {}}), "float[1] = -0.5;float[1] = -0.5;");
  EXPECT_EQ(RunText(train, {Floats({0.5})}), "float[1] = 0;");
}

TEST_F(LocalSessionTest, AStepOfNothingRuns) {
  Open(kTrainer);
  EXPECT_EQ(RunText({}), "");
}

TEST_F(LocalSessionTest, TheSameSignatureIsPreparedOnce) {
  Open(kTrainer);
  const StatusOr<std::shared_ptr<PreparedStep>> a = session_->Prepare({{}, {"read_w"}, {}});
  const StatusOr<std::shared_ptr<PreparedStep>> b = session_->Prepare({{}, {"read_w"}, {}});
  const StatusOr<std::shared_ptr<PreparedStep>> c = session_->Prepare({{}, {}, {"read_w"}});
  ASSERT_TRUE(a.ok() && b.ok() && c.ok());
  EXPECT_EQ(*a, *b);
  EXPECT_NE(*a, *c);
  EXPECT_EQ((*a)->signature().fetches, std::vector<std::string>{"read_w"});
  EXPECT_NE((*a)->placed_graph().Find("w"), nullptr);
  EXPECT_THAT((*a)->Report()->ToText(), HasSubstr("requested '/device:CPU:0' by the program"));
}

TEST_F(LocalSessionTest, FeedsAreCheckedBeforeAnythingRuns) {
  Open(kTrainer);
  ASSERT_EQ(RunText({{}, {}, {"init_w", "init_v"}}), "");
  const StepSignature train{{"x"}, {"sum"}, {"train_w", "train_v"}};
  EXPECT_EQ(RunText(train, {}), "the step takes 1 feeds (x), but got 0");
  EXPECT_EQ(RunText(train, {Tensor::Scalar<float>(1)}),
            "feed 'x': expected float[?], but got float[]");
  EXPECT_EQ(RunText({{}, {"read_w"}, {}}), "float[1] = 1;");
}

TEST_F(LocalSessionTest, AnErrorEndsAllPiecesAndIsTheFirstOne) {
  Open(R"(
a = Call() {hook="fail"} @/device:CPU:1
b = Neg(a) @/device:CPU:0
c = Neg(b) @/device:CPU:1
)");
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(RunText({{}, {"c"}, {}}), "Call 'a' on /job:local/task:0/device:CPU:1: it broke");
  }
}

TEST_F(LocalSessionTest, ExtendAddsAndRefusesChanges) {
  Open("a = Const() {dtype=float, value=tensor(float[]: 1)}\nb = Neg(a)\n");
  EXPECT_EQ(RunText({{}, {"b"}, {}}), "float[] = -1;");
  EXPECT_TRUE(session_
                  ->Extend(GraphOrFail("a = Const() {dtype=float, value=tensor(float[]: 1)}\n"
                                       "b = Neg(a)\nc = Neg(b)\n"))
                  .ok());
  EXPECT_EQ(RunText({{}, {"c"}, {}}), "float[] = 1;");
  EXPECT_THAT(session_->Extend(GraphOrFail("d = NoOp()\nx = Draw()\nb = Neg(x)\n")).message(),
              HasSubstr("node 'b' (Neg) is in the session already and differs"));
  EXPECT_THAT(RunText({{}, {}, {"d"}}), HasSubstr("there is no"));  // all or nothing
}

TEST_F(LocalSessionTest, AStepThatIsCancelledEnds) {
  Open(R"(
x = Draw()
y = Wait(x) {hook="for ever"}
)");
  Cancellation cancellation;
  RunOptions options;
  options.cancellation = &cancellation;
  host_.environment().scheduler->Schedule([&] {
    while (waiting_ == 0) {
    }
    cancellation.Cancel(Cancelled("enough"));
  });
  EXPECT_EQ(Run({{}, {"y"}, {}}, {}, options).status(), Cancelled("enough"));
  // And one that is cancelled before it starts.
  EXPECT_EQ(Run({{}, {"x"}, {}}, {}, options).status(), Cancelled("enough"));
}

TEST_F(LocalSessionTest, AStepThatTakesTooLongEnds) {
  Open(R"(
x = Draw()
y = Wait(x) {hook="for ever"}
)");
  RunOptions options;
  options.timeout = absl::Milliseconds(20);
  EXPECT_EQ(Run({{}, {"y"}, {}}, {}, options).status(),
            DeadlineExceeded("the step took longer than its timeout of 20ms"));
  options.timeout = absl::Hours(1);
  EXPECT_TRUE(Run({{}, {"x"}, {}}, {}, options).ok());
}

TEST_F(LocalSessionTest, CloseCancelsWhatRunsAndRefusesMore) {
  Open(R"(
x = Draw()
y = Wait(x) {hook="for ever"}
)");
  const StatusOr<std::shared_ptr<PreparedStep>> step = session_->Prepare({{}, {"y"}, {}});
  ASSERT_TRUE(step.ok());
  Notification ended;
  Status status;
  session_->RunAsync(**step, {}, {}, [&](StatusOr<RunResult> result) {
    status = result.status();
    ended.Notify();
  });
  EXPECT_TRUE(session_->Close().ok());
  ended.Wait();
  EXPECT_EQ(status, Cancelled("the session was closed"));
  EXPECT_TRUE(session_->Close().ok());
  EXPECT_EQ(session_->Run(**step, {}).status(), FailedPrecondition("the session is closed"));
  EXPECT_EQ(session_->Prepare({}).status(), FailedPrecondition("the session is closed"));
}

TEST_F(LocalSessionTest, AStepMayOutliveItsSession) {
  Open(R"(
x = Draw()
y = Wait(x) {hook="for ever"}
)");
  StatusOr<std::shared_ptr<PreparedStep>> step = session_->Prepare({{}, {"y"}, {}});
  ASSERT_TRUE(step.ok());
  Notification ended;
  session_->RunAsync(**step, {}, {}, [&](StatusOr<RunResult> result) {
    EXPECT_FALSE(result.ok());
    ended.Notify();
  });
  *step = nullptr;
  session_.reset();
  ended.Wait();
}

TEST_F(LocalSessionTest, APreparedStepBelongsToItsSession) {
  Open("x = Draw()");
  const StatusOr<std::shared_ptr<PreparedStep>> step = session_->Prepare({{}, {"x"}, {}});
  StatusOr<std::unique_ptr<Session>> other = NewLocalSession(GraphOrFail("x = Draw()"), Options());
  ASSERT_TRUE(step.ok() && other.ok());
  EXPECT_EQ((*other)->Run(**step, {}).status(),
            InvalidArgument("the step was prepared by another session"));
}

TEST_F(LocalSessionTest, StepsRunAtOnce) {
  Open(kTrainer);
  ASSERT_EQ(RunText({{}, {}, {"init_w", "init_v"}}), "");
  const StatusOr<std::shared_ptr<PreparedStep>> step = session_->Prepare({{"x"}, {"sum"}, {}});
  ASSERT_TRUE(step.ok());
  constexpr int kSteps = 200;
  std::atomic<int> left{kSteps};
  Notification all;
  for (int i = 0; i < kSteps; ++i) {
    session_->RunAsync(**step, {Floats({static_cast<float>(i)})}, {},
                       [&, i](StatusOr<RunResult> result) {
                         EXPECT_TRUE(result.ok()) << result.status();
                         EXPECT_EQ(*result->fetches[0].data<float>(), static_cast<float>(i + 1));
                         // Its memory is of devices that go when the last step has told.
                         result->fetches.clear();
                         if (left.fetch_sub(1) == 1) all.Notify();
                       });
  }
  all.Wait();
}

TEST_F(LocalSessionTest, ATracedStepSaysWhatItDid) {
  Open(kTrainer);
  ASSERT_EQ(RunText({{}, {}, {"init_w", "init_v"}}), "");
  RunOptions options;
  options.trace = true;
  const StatusOr<RunResult> result = Run({{"x"}, {"sum"}, {}}, {Floats({1})}, options);
  ASSERT_TRUE(result.ok());
  std::set<std::string> nodes;
  int channels = 0;
  for (const KernelEvent& event : result->events) {
    nodes.insert(event.node);
    if (event.channel >= 0) ++channels;
  }
  EXPECT_THAT(nodes, ElementsAre("read_w", "read_w/_recv_0", "read_w/_send_0", "sum", "w"));
  EXPECT_EQ(channels, 2);
  EXPECT_GT(result->step_id, 0);
}

// ---- torn sets ----

TEST_F(LocalSessionTest, AStepThatFailsBeforeItsUpdatesTearsNothing) {
  Open(StrCat(kTrainer, R"(
bad = Call(sum) {hook="fail", N=1} @/device:CPU:1
train_bad = ResourceApplyGradientDescent(v, rate, bad)
)"));
  ASSERT_EQ(RunText({{}, {}, {"init_w", "init_v"}}), "");
  // The barrier of CPU:1 holds train_v back; w is of another device, which may be done with it.
  EXPECT_THAT(RunText({{"x"}, {}, {"train_v", "train_bad"}}, {Floats({2})}),
              HasSubstr("Call 'bad'"));
  EXPECT_EQ(RunText({{}, {"read_w", "read_v"}, {}}), "float[1] = 1;float[1] = 1;");
}

TEST_F(LocalSessionTest, AStepThatFailsBetweenItsUpdatesTearsTheSet) {
  Open(StrCat(kTrainer, R"(
bad = Call(read_v, ^train_w) {hook="fail", N=1}
train_bad = ResourceApplyGradientDescent(v, rate, bad)
)"));
  ASSERT_EQ(RunText({{}, {}, {"init_w", "init_v"}}), "");
  EXPECT_THAT(RunText({{"x"}, {}, {"train_w", "train_bad"}}, {Floats({2})}),
              HasSubstr("Call 'bad'"));
  EXPECT_THAT(RunText({{}, {"read_w"}, {}}), HasSubstr("variable 'w'"));
  EXPECT_THAT(RunText({{}, {"read_v"}, {}}), HasSubstr("variable 'v'"));
  // A restore heals it.
  ASSERT_EQ(RunText({{}, {}, {"init_w", "init_v"}}), "");
  EXPECT_EQ(RunText({{}, {"read_w", "read_v"}, {}}), "float[1] = 1;float[1] = 1;");
}

TEST_F(LocalSessionTest, AFailureAfterAllUpdatesTearsNothing) {
  Open(StrCat(kTrainer, R"(
bad = Call(read_v, ^train_w, ^train_v) {hook="fail", N=1}
)"));
  ASSERT_EQ(RunText({{}, {}, {"init_w", "init_v"}}), "");
  EXPECT_THAT(RunText({{"x"}, {}, {"bad"}}, {Floats({2})}), HasSubstr("Call 'bad'"));
  EXPECT_EQ(RunText({{}, {"read_w"}, {}}), "float[1] = -0.5;");
}

// ---- the random counter ----

TEST_F(LocalSessionTest, TheRandomCounterAdvancesWithCommittedSteps) {
  Open(R"(
d = Draw() @/device:CPU:0
bad = Call(^d) {hook="fail"} @/device:CPU:0
n = NoOp() @/device:CPU:0
)");
  EXPECT_EQ(RunText({{}, {"d"}, {}}), "float[] = 0;");
  EXPECT_EQ(RunText({{}, {"d"}, {}}), "float[] = 1;");
  EXPECT_THAT(RunText({{}, {"d"}, {"bad"}}), HasSubstr("it broke"));
  EXPECT_EQ(RunText({{}, {}, {"n"}}), "");
  EXPECT_EQ(RunText({{}, {"d"}, {}}), "float[] = 2;");
  EXPECT_EQ(cpu0_.resources().random_counter(""), 3);
  EXPECT_EQ(cpu1_.resources().random_counter(""), 0);
}

TEST_F(LocalSessionTest, ResetDropsVariables) {
  Open(kTrainer);
  ASSERT_EQ(RunText({{}, {}, {"init_w", "init_v"}}), "");
  EXPECT_TRUE(session_->Reset({}).ok());
  EXPECT_THAT(RunText({{}, {"read_w"}, {}}), HasSubstr("has no value"));
  EXPECT_EQ(session_->ListDevices()->size(), 2);
}

TEST_F(LocalSessionTest, WhatASessionNeedsIsAskedFor) {
  EXPECT_EQ(NewLocalSession(Graph(TestOps()), {}).status().message(), "a session needs a device");
  LocalSessionOptions options = Options();
  options.kernels = nullptr;
  EXPECT_EQ(NewLocalSession(Graph(TestOps()), options).status().message(),
            "a session needs kernels");
  options = Options();
  options.devices.push_back(&cpu0_);
  EXPECT_EQ(NewLocalSession(Graph(TestOps()), options).status().message(),
            "two devices are named /job:local/task:0/device:CPU:0");
}

TEST_F(LocalSessionTest, RunsOnASimulatedWorld) {
  Simulation world(/*seed=*/5);
  FakeDevice device("/job:local/task:0/device:CPU:0", *world.environment().scheduler);
  RegisterTestKernels(kernels_, hooks_);
  LocalSessionOptions options = Options();
  options.devices = {&device};
  options.environment = world.environment();
  StatusOr<std::unique_ptr<Session>> session = NewLocalSession(
      GraphOrFail("x = Draw()\ny = Wait(x) {hook=\"for ever\"}\n"), std::move(options));
  ASSERT_TRUE(session.ok());
  const StatusOr<std::shared_ptr<PreparedStep>> step = (*session)->Prepare({{}, {"y"}, {}});
  ASSERT_TRUE(step.ok());
  RunOptions run;
  run.timeout = absl::Seconds(30);
  Status status;
  (*session)->RunAsync(**step, {}, run,
                       [&](StatusOr<RunResult> result) { status = result.status(); });
  EXPECT_TRUE(world.RunUntil([&] { return !status.ok(); }, absl::Seconds(31)));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace millrace::testing
