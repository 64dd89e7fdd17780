#include <atomic>

#include "core/base/spin.h"
#include "tests/core/runtime/executor_fixture.h"

namespace millrace::testing {
namespace {

// What lies in the step's one piece of memory, and what does not.
class StepMemoryTest : public ExecutorTest {
 protected:
  int64_t PlannedBytes(absl::string_view text, const std::vector<std::string>& feeds,
                       const std::vector<std::string>& fetches) {
    const Status status = TryCompile(text, feeds, fetches);
    EXPECT_TRUE(status.ok()) << status;
    return status.ok() ? plan_->planned_bytes() : -1;
  }
};

// One line of memory each: values of up to 16 floats.
constexpr char kPassTwice[] = R"(
x = Placeholder() {dtype=float, shape=[4]}
a = Call(x) {hook="pass"}
b = Call(a) {hook="pass"}
c = Call(b) {hook="pass"}
d = Call(c) {hook="pass"}
)";

TEST_F(StepMemoryTest, AChainTakesTurnsInTwoPlaces) {
  EXPECT_EQ(PlannedBytes(kPassTwice, {"x"}, {"d"}), 128);
  EXPECT_EQ(RunText({Floats({1, 2, 3, 4})}), "float[4] = 1 2 3 4");
}

TEST_F(StepMemoryTest, AChainInPlaceStaysInOne) {
  std::string text = "x = Placeholder() {dtype=float, shape=[4]}\nn0 = Neg(x)\n";
  for (int i = 1; i <= 20; ++i) absl::StrAppend(&text, "n", i, " = Neg(n", i - 1, ")\n");
  text += "last = Call(n20) {hook=\"pass\"}\n";
  EXPECT_EQ(PlannedBytes(text, {"x"}, {"last"}), 64);
  EXPECT_EQ(RunText({Floats({1, 2, 3, 4})}), "float[4] = -1 -2 -3 -4");
  EXPECT_EQ(device_.allocations(), 2);  // the step's memory and what was fetched
}

TEST_F(StepMemoryTest, AChainInPlaceThatEndsInAFetchIsTheFetchedBuffer) {
  EXPECT_EQ(PlannedBytes("x = Placeholder() {dtype=float, shape=[4]}\na = Neg(x)\nb = Neg(a)\n"
                         "c = Neg(b)\n",
                         {"x"}, {"c"}),
            0);
  EXPECT_EQ(RunText({Floats({1, 2, 3, 4})}), "float[4] = -1 -2 -3 -4");
  EXPECT_EQ(device_.allocations(), 1);
}

TEST_F(StepMemoryTest, WhatIsFetchedOrOfUnknownSizeIsNot) {
  EXPECT_EQ(PlannedBytes("x = Placeholder() {dtype=float, shape=[4]}\ny = Neg(x)\n", {"x"}, {"y"}),
            0);
  EXPECT_EQ(PlannedBytes("x = Placeholder() {dtype=float, shape=[?]}\n"
                         "a = Call(x) {hook=\"pass\"}\nb = Call(a) {hook=\"pass\"}\n",
                         {"x"}, {"b"}),
            0);
}

TEST_F(StepMemoryTest, WhatAnAliasOfItIsFetchedIsNot) {
  EXPECT_EQ(PlannedBytes("x = Placeholder() {dtype=float, shape=[4]}\na = Neg(x)\n"
                         "b = Identity(a)\nc = Identity(b)\n",
                         {"x"}, {"c"}),
            0);
  const StatusOr<std::vector<Tensor>> first = Run({Floats({1, 2, 3, 4})});
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(RunText({Floats({5, 6, 7, 8})}), "float[4] = -5 -6 -7 -8");
  EXPECT_THAT(Values((*first)[0]), ElementsAre(-1, -2, -3, -4));
}

TEST_F(StepMemoryTest, AnAliasKeepsTheMemoryUntilItsOwnReadersHaveEnded) {
  hooks_.call["twice"] = [](KernelContext& c) {
    for (int i = 0; i < 4; ++i) {
      c.output(0).mutable_data<float>()[i] = 2 * c.input(0).data<float>()[i];
    }
    return absl::OkStatus();
  };
  // `b` is `a`; `c` and `d` are made while it waits for its reader.
  Compile(R"(
x = Placeholder() {dtype=float, shape=[4]}
a = Call(x) {hook="pass"}
b = Identity(a)
c = Call(x, ^b) {hook="twice"}
d = Call(c) {hook="twice"}
e = Add(b, d)
f = Slow(e)
)",
          {"x"}, {"f"});
  EXPECT_EQ(RunText({Floats({1, 2, 3, 4})}), "float[4] = -5 -10 -15 -20");
}

TEST_F(StepMemoryTest, AValueThatANodeReadsTwiceIsNotTakenOver) {
  Compile(R"(
x = Placeholder() {dtype=float, shape=[4]}
a = Call(x) {hook="pass"}
b = Add(a, a)
c = Identity(b)
d = Add(b, c)
e = Neg(d)
)",
          {"x"}, {"e"});
  EXPECT_EQ(RunText({Floats({1, 2, 3, 4})}), "float[4] = -4 -8 -12 -16");
}

TEST_F(StepMemoryTest, AStepFindsNoMemoryOfAnotherThatRunsAtOnce) {
  std::atomic<int> inside{0};
  hooks_.call["meet"] = [&](KernelContext& c) {
    inside.fetch_add(1);
    while (inside.load() < 2) SpinPause();
    return hooks_.call["pass"](c);
  };
  Compile(R"(
x = Placeholder() {dtype=float, shape=[4]}
a = Call(x) {hook="pass"}
b = CallSlow(a) {hook="meet"}
c = Add(a, b)
d = Neg(c)
)",
          {"x"}, {"d"});
  std::string texts[2];
  {
    ThreadPool pool(FourThreads());  // a step each, which ends with the pool
    for (int i = 0; i < 2; ++i) {
      pool.Schedule([&, i] {
        texts[i] = RunText({i == 0 ? Floats({1, 2, 3, 4}) : Floats({5, 6, 7, 8})});
      });
    }
  }
  EXPECT_EQ(texts[0], "float[4] = -2 -4 -6 -8");
  EXPECT_EQ(texts[1], "float[4] = -10 -12 -14 -16");
}

TEST_F(StepMemoryTest, AKernelThatKeepsAnInputIsFoundOut) {
  Tensor kept;
  bool keeps = true;
  hooks_.call["keep"] = [&](KernelContext& c) {
    if (keeps) kept = c.input(0);
    return hooks_.call["pass"](c);
  };
  Compile(R"(
x = Placeholder() {dtype=float, shape=[4]}
a = Call(x) {hook="pass"}
b = Call(a) {hook="keep"}
)",
          {"x"}, {"b"});
  EXPECT_THAT(RunText({Floats({1, 2, 3, 4})}), HasSubstr("keeps a part of the step's memory"));
  kept = Tensor();
  keeps = false;
  EXPECT_EQ(RunText({Floats({1, 2, 3, 4})}), "float[4] = 1 2 3 4");
}

TEST_F(StepMemoryTest, AFailedStepLeavesNothing) {
  Compile(R"(
x = Placeholder() {dtype=float, shape=[4]}
a = Call(x) {hook="pass"}
b = Call(a) {hook="fail"}
c = Call(b) {hook="pass"}
)",
          {"x"}, {"c"});
  EXPECT_THAT(RunText({Floats({1, 2, 3, 4})}), HasSubstr("it broke"));
  EXPECT_EQ(device_.bytes_in_use(), 0);
}

}  // namespace
}  // namespace millrace::testing
