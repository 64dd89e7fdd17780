#include "tests/core/runtime/executor_fixture.h"

namespace millrace::testing {
namespace {

INSTANTIATE_TEST_SUITE_P(Start, ExecutorStartTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Caller" : "Pool"; });

TEST_P(ExecutorStartTest, AnErrorNamesNodeOpDeviceAndShapes) {
  Compile(R"(
x = Placeholder() {dtype=float, shape=[?]}
y = Neg(x)
z = Call(y, x) {hook="fail"}
after = Slow(z)
)",
          {"x"}, {"after"});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(RunText({Floats({1, 2})}),
              "Call 'z' on /job:local/task:0/device:CPU:0: it broke (inputs: float[2], float[2])");
  }
}

TEST_P(ExecutorStartTest, TheFirstErrorEndsTheStepAndItsWaiters) {
  hooks_.wait["receive"] = [](KernelContext& c, AsyncKernel::Done done) {
    c.step().rendezvous->RecvAsync(0, [done = std::move(done)](StatusOr<Tensor> value) mutable {
      std::move(done)(value.status());
    });
  };
  Compile(R"(
x = Placeholder() {dtype=float, shape=[?]}
w = Wait(x) {hook="receive"}
z = CallSlow(x) {hook="fail"}
s = Add(w, z)
)",
          {"x"}, {"s"});
  for (int i = 0; i < 20; ++i) {
    LocalRendezvous rendezvous(1);
    Cancellation cancellation;
    ExecutorRun run;
    run.context.rendezvous = &rendezvous;
    run.context.cancellation = &cancellation;
    run.feeds = {Floats({1})};
    const Status status = Run(std::move(run)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("CallSlow 'z'"));
    EXPECT_EQ(cancellation.reason(), status);
  }
}

TEST_P(ExecutorStartTest, CancellationEndsWhatWaitsAndWhatHasNotStarted) {
  Notification waiting;
  hooks_.wait["receive"] = [&](KernelContext& c, AsyncKernel::Done done) {
    c.step().rendezvous->RecvAsync(0, [done = std::move(done)](StatusOr<Tensor> value) mutable {
      std::move(done)(value.status());
    });
    waiting.Notify();
  };
  std::atomic<bool> ran_after{false};
  hooks_.call["after"] = [&](KernelContext& c) {
    ran_after = true;
    return hooks_.call["pass"](c);
  };
  Compile(R"(
x = Placeholder() {dtype=float, shape=[?]}
w = Wait(x) {hook="receive"}
z = Call(w) {hook="after"}
)",
          {"x"}, {"z"});
  LocalRendezvous rendezvous(1);
  Cancellation cancellation;
  pool_.Schedule([&] {
    waiting.Wait();
    cancellation.Cancel(Cancelled("enough"));
  });
  ExecutorRun run;
  run.context.rendezvous = &rendezvous;
  run.context.cancellation = &cancellation;
  run.feeds = {Floats({1})};
  EXPECT_EQ(Run(std::move(run)).status(), Cancelled("enough"));
  EXPECT_FALSE(ran_after);

  // A step that is cancelled already does nothing.
  LocalRendezvous unused(1);
  ExecutorRun late;
  late.context.rendezvous = &unused;
  late.context.cancellation = &cancellation;
  late.feeds = {Floats({1})};
  EXPECT_EQ(Run(std::move(late)).status(), Cancelled("enough"));
}

TEST_F(ExecutorTest, CancellingAtAnyMomentEndsEveryStepOnce) {
  std::string text = "x = Placeholder() {dtype=float, shape=[?]}\nn0 = Neg(x)\n";
  for (int i = 1; i < 200; ++i) {
    absl::StrAppend(&text, "n", i, " = ", i % 10 == 0 ? "Slow" : "Neg", "(n", i - 1, ")\n");
  }
  Compile(text, {"x"}, {"n199"});
  for (int i = 0; i < 200; ++i) {
    Cancellation cancellation;
    ExecutorRun run;
    run.context.cancellation = &cancellation;
    run.feeds = {Floats({1})};
    Notification cancelled;
    pool_.Schedule([&] {
      cancellation.Cancel(Cancelled("enough"));
      cancelled.Notify();
    });
    const Status status = Run(std::move(run)).status();
    EXPECT_TRUE(status.ok() || status == Cancelled("enough")) << status;
    cancelled.Wait();
  }
}

// ---- several steps at once ----

TEST_F(ExecutorTest, FourStepsAtOnceDoNotMix) {
  std::string text = "x = Placeholder() {dtype=float, shape=[?]}\ns0 = Neg(x)\n";
  for (int i = 0; i < 30; ++i) {
    absl::StrAppend(&text, "a", i, " = Slow(s", i, ")\nb", i, " = Wait(s", i,
                    ") {hook=\"later\"}\nt", i, " = Add(a", i, ", x)\ns", i + 1, " = Add(t", i,
                    ", b", i, ")\n");
  }
  Compile(text, {"x"}, {"s30"});
  // s -> -s + x + s = x.
  constexpr int kRounds = 50;
  std::atomic<int> left{4};
  std::atomic<int> wrong{0};
  Notification all;
  std::function<void(int, int)> start = [&](int step, int round) {
    const float x = static_cast<float>(step * 1000 + round);
    ExecutorRun run;
    run.context.step_id = static_cast<uint64_t>(step);
    std::vector<float> values(static_cast<size_t>(step) + 1, x);
    run.feeds = {Tensor::Of<float>(Shape({step + 1}), absl::MakeConstSpan(values))};
    executor_->Run(std::move(run),
                   [&, step, round, values](Status status, std::vector<Tensor> fetches) {
                     if (!status.ok() || Values(fetches[0]) != values) wrong.fetch_add(1);
                     fetches.clear();  // of the device, which may be gone when this call returns
                     if (round + 1 < kRounds) {
                       start(step, round + 1);
                     } else if (left.fetch_sub(1) == 1) {
                       all.Notify();
                     }
                   });
  };
  for (int step = 0; step < 4; ++step) start(step, 0);
  all.Wait();
  EXPECT_EQ(wrong, 0);
}

TEST_F(ExecutorTest, RunsOnASimulatedScheduler) {
  Simulation world(/*seed=*/3);
  FakeDevice device(kCpu, *world.environment().scheduler);
  hooks_.wait["timer"] = [&](KernelContext&, AsyncKernel::Done done) {
    auto shared = std::make_shared<AsyncKernel::Done>(std::move(done));
    world.environment().timers->After(absl::Seconds(1),
                                      [shared] { std::move (*shared)(absl::OkStatus()); });
  };
  RegisterTestKernels(kernels_, hooks_);
  auto plan = ExecutionPlan::Create(WholePartition(GraphOrFail(R"(
x = Placeholder() {dtype=float, shape=[?]}
a = Slow(x)
b = Wait(x) {hook="timer"}
c = Add(a, b)
)"),
                                                   kCpu, {"x"}, {"c"}),
                                    device, kernels_);
  ASSERT_TRUE(plan.ok()) << plan.status();
  Executor executor(**plan, *world.environment().scheduler);
  bool ended = false;
  ExecutorRun run;
  run.feeds = {Floats({3})};
  executor.Run(std::move(run), [&](Status status, std::vector<Tensor> fetches) {
    ended = true;
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_THAT(Values(fetches[0]), ElementsAre(0));
  });
  EXPECT_TRUE(world.RunUntil([&] { return ended; }, absl::Seconds(2)));
}

// ---- updates and statistics ----

TEST_F(ExecutorTest, CountsUpdatesAndMarksTheirVariablesTorn) {
  Compile(R"(
w = VarHandleOp() {shape=[1], shared_name="weights"}
v = VarHandleOp() {shape=[1]}
x = Placeholder() {dtype=float, shape=[?]}
a = AssignVariableOp(w, x)
b = AssignAddVariableOp(v, x, ^a)
)",
          {"x"}, {});
  EXPECT_THAT(plan_->updated_variables(), ElementsAre("weights", "v"));
  EXPECT_EQ(plan_->num_updates(), 2);
  EXPECT_FALSE(plan_->draws_random());
  UpdateProgress updates;
  ExecutorRun run;
  run.updates = &updates;
  run.feeds = {Floats({1})};
  EXPECT_THAT(Run(std::move(run)).status().message(), HasSubstr("AssignAddVariableOp 'b'"));
  EXPECT_EQ(updates.finished, 1);
  const auto w = std::dynamic_pointer_cast<Variable>(device_.resources().Lookup("", "weights"));
  EXPECT_TRUE(w->Read().ok());
  plan_->MarkTorn(1);
  EXPECT_EQ(w->Read().status().code(), absl::StatusCode::kFailedPrecondition);
}

class Recorder final : public StepObserver {
 public:
  void OnKernel(const DeviceName& device, const Node& node, int64_t ready, int64_t start,
                int64_t end, int64_t bytes) override {
    MutexLock lock(mutex_);
    EXPECT_EQ(device.ToString(), kCpu);
    EXPECT_LE(ready, start) << node.name();
    EXPECT_LE(start, end) << node.name();
    lines_.push_back(StrCat(node.name(), " ", bytes));
  }
  std::vector<std::string> lines() {
    MutexLock lock(mutex_);
    return lines_;
  }

 private:
  Mutex mutex_;
  std::vector<std::string> lines_;
};

class TickingClock final : public Clock {
 public:
  int64_t NowNanos() const override { return now_.fetch_add(1); }
  int64_t WallMicros() const override { return 0; }

 private:
  mutable std::atomic<int64_t> now_{1};
};

TEST_F(ExecutorTest, AnObserverSeesEachKernel) {
  Compile(R"(
x = Placeholder() {dtype=float, shape=[?]}
a = Neg(x)
b = Wait(a) {hook="later"}
c = Slow(b)
)",
          {"x"}, {"c"});
  Recorder recorder;
  TickingClock clock;
  ExecutorRun run;
  run.observer = &recorder;
  run.clock = &clock;
  run.feeds = {Floats({1, 2})};
  ASSERT_TRUE(Run(std::move(run)).ok());
  EXPECT_THAT(recorder.lines(), ElementsAre("a 8", "b 8", "c 8"));
}

}  // namespace
}  // namespace millrace::testing
