#include "tests/core/runtime/executor_fixture.h"

namespace millrace::testing {
namespace {

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
x = Placeholder() {dtype=float, shape=[?]}
a = Call(x) {hook="pass"}
b = Call(a) {hook="pass"}
unread = Call(a) {hook="pass"}
c = Call(b, ^unread) {hook="pass"}
d = Call(^c) {hook="look"}
)",
          {"x"}, {"c"});
  ASSERT_TRUE(Run({Tensor::Zeros(DType::kFloat, Shape({1000}))}).ok());
  // c, and the line of d's own scalar.
  EXPECT_EQ(seen, 4064);
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

}  // namespace
}  // namespace millrace::testing
