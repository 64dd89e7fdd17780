#include "core/runtime/executor.h"

#include "absl/strings/str_join.h"
#include "core/base/mutex.h"
#include "core/base/simulation.h"
#include "core/base/thread_pool.h"
#include "core/runtime/local_rendezvous.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/runtime/test_program.h"

namespace millrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kCpu[] = "/job:local/task:0/device:CPU:0";

ThreadPool::Options FourThreads() {
  ThreadPool::Options options;
  options.threads = 4;
  return options;
}

Tensor Floats(std::initializer_list<float> values) {
  return Tensor::Of<float>(Shape({static_cast<int64_t>(values.size())}), values);
}

std::vector<float> Values(const Tensor& tensor) {
  const auto span = tensor.span<float>();
  return std::vector<float>(span.begin(), span.end());
}

class ExecutorTest : public ::testing::Test {
 protected:
  ExecutorTest() : pool_(FourThreads()), device_(kCpu, pool_) {
    hooks_.call["pass"] = [](KernelContext& c) {
      std::copy_n(c.input(0).data<float>(), c.input(0).num_elements(),
                  c.output(0).mutable_data<float>());
      return absl::OkStatus();
    };
    hooks_.call["fail"] = [](KernelContext&) { return Status(InvalidArgument("it broke")); };
    hooks_.call["nothing"] = [](KernelContext&) { return absl::OkStatus(); };
    hooks_.wait["now"] = [](KernelContext&, AsyncKernel::Done done) {
      std::move(done)(absl::OkStatus());
    };
    hooks_.wait["later"] = [this](KernelContext&, AsyncKernel::Done done) {
      auto shared = std::make_shared<AsyncKernel::Done>(std::move(done));
      pool_.Schedule([shared] { std::move (*shared)(absl::OkStatus()); });
    };
  }
  ~ExecutorTest() override {
    executor_.reset();
    plan_.reset();
    EXPECT_EQ(device_.bytes_in_use(), 0);
  }

  Status TryCompile(absl::string_view text, const std::vector<std::string>& feeds,
                    const std::vector<std::string>& fetches) {
    if (kernels_.All().empty()) RegisterTestKernels(kernels_, hooks_);
    MR_ASSIGN_OR_RETURN(
        plan_, ExecutionPlan::Create(WholePartition(GraphOrFail(text), kCpu, feeds, fetches),
                                     device_, kernels_));
    executor_ = std::make_unique<Executor>(*plan_, pool_);
    return absl::OkStatus();
  }
  void Compile(absl::string_view text, const std::vector<std::string>& feeds,
               const std::vector<std::string>& fetches) {
    const Status status = TryCompile(text, feeds, fetches);
    ASSERT_TRUE(status.ok()) << status;
  }

  StatusOr<std::vector<Tensor>> Run(std::vector<Tensor> feeds) {
    ExecutorRun run;
    run.feeds = std::move(feeds);
    return Run(std::move(run));
  }
  StatusOr<std::vector<Tensor>> Run(ExecutorRun run) {
    Notification ended;
    StatusOr<std::vector<Tensor>> result = std::vector<Tensor>();
    run.context.step_id = 1;
    run.caller_runs = caller_runs_;
    executor_->Run(std::move(run), [&](Status status, std::vector<Tensor> fetches) {
      if (status.ok()) {
        result = std::move(fetches);
      } else {
        result = std::move(status);
      }
      ended.Notify();
    });
    ended.Wait();
    return result;
  }
  // The fetches' values, or the error.
  std::string RunText(std::vector<Tensor> feeds) {
    const StatusOr<std::vector<Tensor>> fetches = Run(std::move(feeds));
    if (!fetches.ok()) return std::string(fetches.status().message());
    std::vector<std::string> texts;
    for (const Tensor& fetch : *fetches) texts.push_back(fetch.ToString());
    return absl::StrJoin(texts, "; ");
  }

  bool caller_runs_ = false;
  ThreadPool pool_;
  FakeDevice device_;
  Hooks hooks_;
  KernelRegistry kernels_;
  std::unique_ptr<ExecutionPlan> plan_;
  std::unique_ptr<Executor> executor_;
};

// Both ways to start a step.
class ExecutorStartTest : public ExecutorTest, public ::testing::WithParamInterface<bool> {
 protected:
  ExecutorStartTest() { caller_runs_ = GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(Start, ExecutorStartTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Caller" : "Pool"; });

TEST_P(ExecutorStartTest, FeedsComputesAndFetchesInOrder) {
  Compile(R"(
x = Placeholder() {dtype=float, shape=[?]}
c = Const() {dtype=float, value=tensor(float[]: 10)}
y = Neg(x)
z = Add(y, c)
s = Slow(z)
)",
          {"x"}, {"s", "y", "c", "x", "y"});
  EXPECT_EQ(RunText({Floats({1, 2})}),
            "float[2] = -9 -8; float[2] = -1 -2; float[] = 10; float[2] = 1 2; float[2] = -1 -2");
  EXPECT_EQ(RunText({Floats({5})}),
            "float[1] = -5; float[1] = -5; float[] = 10; float[1] = 5; float[1] = -5");
}

TEST_P(ExecutorStartTest, ADiamondOfExpensiveNodesRunsEachOnce) {
  std::atomic<int> runs{0};
  hooks_.call["count"] = [&](KernelContext& c) {
    runs.fetch_add(1);
    return hooks_.call["pass"](c);
  };
  std::string text = "x = Placeholder() {dtype=float, shape=[?]}\ns0 = Neg(x)\n";
  for (int i = 0; i < 20; ++i) {
    for (const char* side : {"a", "b", "c"}) {
      absl::StrAppend(&text, side, i, " = CallSlow(s", i, ") {hook=\"count\"}\n");
    }
    absl::StrAppend(&text, "t", i, " = Add(a", i, ", b", i, ", ^c", i, ")\n");
    absl::StrAppend(&text, "s", i + 1, " = Neg(t", i, ")\n");
  }
  Compile(text, {"x"}, {"s20"});
  for (int step = 0; step < 50; ++step) {
    runs = 0;
    EXPECT_EQ(RunText({Floats({1})}), "float[1] = -1.04858e+06");
    EXPECT_EQ(runs, 60);
  }
}

TEST_P(ExecutorStartTest, LongChainsUseNoStack) {
  std::string text = "x = Placeholder() {dtype=float, shape=[1]}\nn0 = Neg(x)\n";
  constexpr int kNodes = 100000;
  for (int i = 1; i < kNodes; ++i) absl::StrAppend(&text, "n", i, " = Neg(n", i - 1, ")\n");
  Compile(text, {"x"}, {StrCat("n", kNodes - 1)});
  EXPECT_EQ(RunText({Floats({7})}), "float[1] = 7");
}

TEST_P(ExecutorStartTest, ChainsOfAsynchronousNodesUseNoStack) {
  std::string text = "n0 = Placeholder() {dtype=float, shape=[1]}\n";
  for (int i = 1; i <= 20000; ++i) {
    absl::StrAppend(&text, "n", i, " = Wait(n", i - 1, ") {hook=\"", i % 100 == 0 ? "later" : "now",
                    "\"}\n");
  }
  Compile(text, {"n0"}, {"n20000"});
  EXPECT_EQ(RunText({Floats({7})}), "float[1] = 7");
}

TEST_P(ExecutorStartTest, ControlEdgesOrder) {
  Mutex mutex;
  std::string order;
  for (const char* name : {"a", "b", "c", "d"}) {
    hooks_.call[name] = [&, name](KernelContext&) {
      MutexLock lock(mutex);
      order += name;
      return absl::OkStatus();
    };
  }
  Compile(R"(
a = CallSlow() {hook="a"}
b = Call(^a) {hook="b"}
c = CallSlow(^b) {hook="c"}
d = Call(^c, ^a) {hook="d"}
)",
          {}, {});
  for (int i = 0; i < 20; ++i) EXPECT_EQ(RunText({}), "");
  EXPECT_EQ(order.substr(0, 8), "abcdabcd");
}

// ---- memory ----

TEST_F(ExecutorTest, DeadInputsAreReusedInPlace) {
  std::string text = "x = Placeholder() {dtype=float, shape=[1000]}\nn0 = Neg(x)\n";
  for (int i = 1; i < 50; ++i) absl::StrAppend(&text, "n", i, " = Neg(n", i - 1, ")\n");
  Compile(text, {"x"}, {"n49"});
  const Tensor x = Tensor::Zeros(DType::kFloat, Shape({1000}));
  ASSERT_TRUE(Run({x}).ok());
  EXPECT_EQ(device_.allocations(), 1);
}

TEST_F(ExecutorTest, WhatOthersHoldIsNotOverwritten) {
  Compile(R"(
x = Placeholder() {dtype=float, shape=[?]}
c = Const() {dtype=float, value=tensor(float[1]: 10)}
kept = Neg(x)
a = Neg(kept)
b = Neg(kept)
same = Identity(b)
twice = Add(b, b)
view = Neg(same)
d = Neg(c)
e = Neg(d)
)",
          {"x"}, {"kept", "a", "b", "twice", "view", "e", "c"});
  const Tensor x = Floats({3});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(RunText({x}),
              "float[1] = -3; float[1] = 3; float[1] = 3; float[1] = 6; float[1] = -3; "
              "float[1] = 10; float[1] = 10");
  }
  EXPECT_THAT(Values(x), ElementsAre(3));
}

TEST_F(ExecutorTest, AReadVariableIsNotOverwritten) {
  Compile(R"(
w = VarHandleOp() {shape=[1]}
r = ReadVariableOp(w)
n = Neg(r)
)",
          {}, {"n"});
  const auto variable =
      device_.resources().LookupOrCreateVariable("", "w", DType::kFloat, Shape({1}));
  ASSERT_TRUE((*variable)->Assign(Floats({4})).ok());
  EXPECT_EQ(RunText({}), "float[1] = -4");
  EXPECT_EQ(RunText({}), "float[1] = -4");
}

TEST_F(ExecutorTest, BroadcastOutputsTakeOnlyBuffersOfTheirSize) {
  Compile(R"(
x = Placeholder() {dtype=float, shape=[?]}
y = Placeholder() {dtype=float, shape=[]}
a = Neg(x)
b = Neg(y)
z = Add(b, a)
)",
          {"x", "y"}, {"z"});
  EXPECT_EQ(RunText({Floats({1, 2, 3}), Tensor::Scalar<float>(10)}), "float[3] = -11 -12 -13");
}

TEST_F(ExecutorTest, TensorsAreReleasedAfterTheirLastReader) {
  std::atomic<int64_t> seen{-1};
  hooks_.call["look"] = [&](KernelContext&) {
    seen = device_.bytes_in_use();
    return absl::OkStatus();
  };
  Compile(R"(
x = Placeholder() {dtype=float, shape=[1000]}
a = Call(x) {hook="pass"}
b = Call(a) {hook="pass"}
unread = Call(a) {hook="pass"}
c = Call(b, ^unread) {hook="pass"}
d = Call(^c) {hook="look"}
)",
          {"x"}, {"c"});
  ASSERT_TRUE(Run({Tensor::Zeros(DType::kFloat, Shape({1000}))}).ok());
  // c, and d's own scalar.
  EXPECT_EQ(seen, 4004);
}

TEST_F(ExecutorTest, NoMemoryIsAnErrorOfTheNode) {
  FakeDevice small(kCpu, pool_, /*memory_limit=*/1000);
  RegisterTestKernels(kernels_, hooks_);
  auto plan = ExecutionPlan::Create(
      WholePartition(GraphOrFail("x = Placeholder() {dtype=float, shape=[?]}\ny = Neg(x)\n"), kCpu,
                     {"x"}, {"y"}),
      small, kernels_);
  ASSERT_TRUE(plan.ok());
  plan_ = *std::move(plan);
  executor_ = std::make_unique<Executor>(*plan_, pool_);
  EXPECT_THAT(RunText({Tensor::Zeros(DType::kFloat, Shape({1000}))}),
              HasSubstr("Neg 'y' on /job:local/task:0/device:CPU:0: no memory for float[1000] "
                        "(4000 bytes)"));
  EXPECT_EQ(RunText({Floats({1})}), "float[1] = -1");
  executor_.reset();
  plan_.reset();
}

// ---- shapes ----

TEST_F(ExecutorTest, TheMemoKeepsWhatShapesImply) {
  Compile(R"(
x = Placeholder() {dtype=float, shape=[?]}
static = Const() {dtype=float, value=tensor(float[2]: 1 2)}
a = Neg(x)
b = Neg(a)
c = Neg(static)
)",
          {"x"}, {"b", "c"});
  EXPECT_EQ(plan_->prepared_count(), 1);  // c
  const Tensor full = Floats({1, 2, 3, 4});
  const Tensor last = Floats({1});
  ASSERT_TRUE(Run({full}).ok());
  EXPECT_EQ(plan_->prepared_count(), 3);
  ASSERT_TRUE(Run({last}).ok());
  EXPECT_EQ(plan_->prepared_count(), 5);
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(Run({full}).ok());
    ASSERT_TRUE(Run({last}).ok());
  }
  EXPECT_EQ(plan_->prepared_count(), 5);
}

TEST_F(ExecutorTest, TheMemoIsBounded) {
  Compile("x = Placeholder() {dtype=float, shape=[?]}\ny = Neg(x)\n", {"x"}, {"y"});
  for (int round = 0; round < 2; ++round) {
    for (int n = 1; n <= 20; ++n) {
      const StatusOr<std::vector<Tensor>> fetches = Run({Tensor::Zeros(DType::kFloat, Shape({n}))});
      ASSERT_TRUE(fetches.ok());
      EXPECT_EQ((*fetches)[0].num_elements(), n);
    }
  }
  EXPECT_EQ(plan_->prepared_count(), 20 + 12);
}

TEST_F(ExecutorTest, ValuesOfHostInputsAreInTheKey) {
  Compile(R"(
d = Placeholder() {dtype=int32, shape=[?]}
v = Placeholder() {dtype=float, shape=[]}
y = Fill(d, v)
)",
          {"d", "v"}, {"y"});
  const auto fill = [&](std::initializer_list<int32_t> dims, float value) {
    return RunText({Tensor::Of<int32_t>(Shape({static_cast<int64_t>(dims.size())}), dims),
                    Tensor::Scalar(value)});
  };
  EXPECT_EQ(fill({2}, 1), "float[2] = 1 1");
  EXPECT_EQ(fill({2}, 5), "float[2] = 5 5");
  EXPECT_EQ(hooks_.prepared, 1);
  EXPECT_EQ(fill({3}, 1), "float[3] = 1 1 1");
  EXPECT_EQ(fill({2}, 2), "float[2] = 2 2");
  EXPECT_EQ(hooks_.prepared, 2);
  EXPECT_EQ(fill({1, 2}, 2), "float[1,2] = 2 2");
  EXPECT_THAT(fill({-4}, 2), HasSubstr("Fill 'y' on /job:local/task:0/device:CPU:0: "));
}

TEST_F(ExecutorTest, ConstantHostInputsAreKnownAtOnce) {
  Compile(R"(
d = Const() {dtype=int32, value=tensor(int32[1]: 2)}
v = Placeholder() {dtype=float, shape=[]}
y = Fill(d, v)
)",
          {"v"}, {"y"});
  EXPECT_EQ(hooks_.prepared, 1);
  EXPECT_EQ(RunText({Tensor::Scalar<float>(1)}), "float[2] = 1 1");
  EXPECT_EQ(hooks_.prepared, 1);
}

TEST_F(ExecutorTest, ShapesBehindPartiallyKnownVariablesAreThoseOfTheirValues) {
  hooks_.call["size"] = [](KernelContext& c) {
    *c.output(0).mutable_data<float>() = static_cast<float>(c.input(0).num_elements());
    return absl::OkStatus();
  };
  Compile(R"(
w = VarHandleOp() {shape=[?]}
r = ReadVariableOp(w)
n = Neg(r)
)",
          {}, {"n"});
  const auto variable = device_.resources().LookupOrCreateVariable(
      "", "w", DType::kFloat, PartialShape{PartialShape::kUnknown});
  ASSERT_TRUE((*variable)->Assign(Floats({4, 5})).ok());
  EXPECT_EQ(RunText({}), "float[2] = -4 -5");
  ASSERT_TRUE((*variable)->Assign(Floats({4})).ok());
  EXPECT_EQ(RunText({}), "float[1] = -4");
}

TEST_F(ExecutorTest, AKernelThatBreaksItsShapeIsFound) {
  Compile(R"(
x = Placeholder() {dtype=float, shape=[?]}
y = Claim(x) {shape=[4]}
z = Neg(y)
)",
          {"x"}, {"z"});
  EXPECT_EQ(RunText({Floats({1, 2, 3, 4})}), "float[4] = -1 -2 -3 -4");
  EXPECT_EQ(RunText({Floats({1})}),
            "Claim 'y' on /job:local/task:0/device:CPU:0: output 0 is float[1], but the graph says "
            "float[4] (inputs: float[1])");
}

// ---- feeds ----

TEST_F(ExecutorTest, FeedsMustFit) {
  Compile("x = Placeholder() {dtype=float, shape=[?,2]}\ny = Neg(x)\n", {"x"}, {"y"});
  EXPECT_EQ(RunText({}), "the step has 1 feeds on /job:local/task:0/device:CPU:0, but got 0");
  EXPECT_EQ(RunText({Floats({1})}), "feed 'x': expected float[?,2], but got float[1]");
  EXPECT_EQ(RunText({Tensor::Zeros(DType::kInt32, Shape({3, 2}))}),
            "feed 'x': expected float[?,2], but got int32[3,2]");
  EXPECT_EQ(RunText({Tensor()}), "feed 'x': expected float[?,2], but got no tensor");
}

TEST_F(ExecutorTest, CompilingNamesTheNodeAtFault) {
  const auto error = [&](absl::string_view text, const std::vector<std::string>& feeds) {
    return std::string(TryCompile(text, feeds, {}).message());
  };
  EXPECT_EQ(error("x = Placeholder() {dtype=float}\ny = Neg(x)\n", {}),
            "placeholder 'x' is neither fed nor pruned");
  EXPECT_THAT(error("x = Placeholder() {dtype=float, shape=[2,2]}\ny = MatMul(x, x)\n", {"x"}),
              HasSubstr("MatMul 'y' on /job:local/task:0/device:CPU:0: "));
  EXPECT_EQ(error("y = Call() {hook=\"no such\"}\n", {}),
            "Call 'y' on /job:local/task:0/device:CPU:0: there is no such hook");
}

// ---- errors and cancellation ----

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
