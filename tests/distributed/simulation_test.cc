// One master and its workers in simulated worlds: every seed is another order of events, and each
// must come to the same end.
#include <map>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/distributed/simulated_cluster.h"

namespace millrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kWorker0[] = "/job:worker/task:0";
constexpr char kWorker1[] = "/job:worker/task:1";
constexpr char kPs[] = "/job:ps/task:0";

const StepSignature kInit = {{}, {}, {"init"}};
const StepSignature kTrain = {{"extra:0"}, {"loss:0"}, {"train"}};
const StepSignature kRead = {{}, {"w_value:0"}, {}};

Tensor NoExtra() { return Floats({0, 0, 0, 0}); }

struct Outcome {
  std::vector<float> losses;
  std::vector<float> w;
  uint64_t trace_hash = 0;
};

Outcome Train(uint64_t seed, int steps) {
  SimulatedClusterOptions options;
  options.seed = seed;
  options.max_delay = absl::Milliseconds(5);
  SimulatedCluster world(options);
  Outcome outcome;
  TestSession session(world, ParseGraphText(kTrainingGraph));
  EXPECT_EQ(session.status(), absl::OkStatus());
  EXPECT_EQ(session.Run(kInit).status(), absl::OkStatus());
  const StatusOr<uint64_t> train = session.Prepare(kTrain);
  EXPECT_EQ(train.status(), absl::OkStatus());
  if (!train.ok()) return outcome;
  for (int i = 0; i < steps; ++i) {
    const StatusOr<std::vector<Tensor>> fetches = session.Run(*train, {NoExtra()});
    EXPECT_EQ(fetches.status(), absl::OkStatus());
    if (!fetches.ok()) return outcome;
    outcome.losses.push_back((*fetches)[0].data<float>()[0]);
  }
  const StatusOr<std::vector<Tensor>> w = session.Run(kRead);
  EXPECT_EQ(w.status(), absl::OkStatus());
  if (w.ok()) outcome.w = ValuesOf((*w)[0]);
  EXPECT_EQ(session.Close(), absl::OkStatus());
  for (const auto& [task, address] : world.cluster().spec().Tasks()) {
    const Worker::Usage usage = world.cluster().worker(task).usage();
    EXPECT_EQ(usage.sessions, 0) << task;
    EXPECT_EQ(usage.live_steps, 0) << task;
  }
  outcome.trace_hash = world.world.trace_hash();
  return outcome;
}

TEST(SimulationTest, EveryOrderOfEventsGivesTheSameNumbers) {
  const Outcome first = Train(1, 20);
  ASSERT_EQ(first.losses.size(), 20u);
  EXPECT_FLOAT_EQ(first.losses[0], 44);  // 1+4+9+16 + 9+4+1
  EXPECT_LT(first.losses[19], 20);
  for (uint64_t seed = 2; seed <= 50; ++seed) {
    const Outcome other = Train(seed, 20);
    EXPECT_EQ(other.losses, first.losses) << "seed " << seed;
    EXPECT_EQ(other.w, first.w) << "seed " << seed;
  }
}

TEST(SimulationTest, ASeedIsOneOrder) {
  EXPECT_EQ(Train(7, 5).trace_hash, Train(7, 5).trace_hash);
  EXPECT_NE(Train(7, 5).trace_hash, Train(8, 5).trace_hash);
}

// A worker dies at some moment of a step, another one each seed.
void KillInAStep(uint64_t seed) {
  SCOPED_TRACE(seed);
  SimulatedClusterOptions options;
  options.seed = seed;
  options.max_delay = absl::Milliseconds(5);
  SimulatedCluster world(options);
  TestSession session(world, ParseGraphText(kTrainingGraph));
  ASSERT_EQ(session.Run(kInit).status(), absl::OkStatus());
  const StatusOr<uint64_t> train = session.Prepare(kTrain);
  ASSERT_EQ(train.status(), absl::OkStatus());
  ASSERT_EQ(session.Run(*train, {NoExtra()}).status(), absl::OkStatus());

  const auto hit = session.Start(session.Request(*train, {NoExtra()}));
  world.world.RunFor(absl::Microseconds(500) * static_cast<double>(seed % 40));
  const bool was_over = hit->done;
  world.cluster().Kill(kWorker1);
  const int64_t killed = world.world.environment().clock->NowNanos();
  world.Await(*hit, absl::Seconds(60));
  if (!was_over) {
    // Within the bound, with the task's name; or it had ended before the death was felt.
    const Status status = ToStatus(hit->response.status());
    const auto took = absl::Nanoseconds(world.world.environment().clock->NowNanos() - killed);
    EXPECT_LE(took, absl::Seconds(5));
    if (!status.ok()) {
      EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr(kWorker1));
    }
  }
  // Steps that need it fail at once or in the bound; others do not notice.
  const Status next = session.Run(*train, {NoExtra()}).status();
  EXPECT_EQ(next.code(), absl::StatusCode::kUnavailable) << next;
  EXPECT_THAT(std::string(next.message()), HasSubstr(kWorker1));
  const StatusOr<std::vector<Tensor>> w = session.Run(kRead);
  EXPECT_EQ(w.status(), absl::OkStatus());

  // It comes back empty: the old session says so, a new one works.
  world.cluster().Start(kWorker1);
  world.world.RunFor(absl::Seconds(3));
  const Status stale = session.Run(*train, {NoExtra()}).status();
  EXPECT_EQ(stale.code(), absl::StatusCode::kAborted) << stale;
  EXPECT_THAT(std::string(stale.message()), HasSubstr("restarted"));
  EXPECT_EQ(session.Close(), absl::OkStatus());
  TestSession again(world, ParseGraphText(kTrainingGraph));
  ASSERT_EQ(again.status(), absl::OkStatus());
  EXPECT_EQ(again.Run(kTrain, {NoExtra()}).status(), absl::OkStatus());
}

TEST(SimulationTest, ADeadWorkerIsNamedAndTheOthersGoOn) {
  for (uint64_t seed = 1; seed <= 50; ++seed) KillInAStep(seed);
}

TEST(SimulationTest, ASilentWorkerIsDeadAfterItsBound) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    SimulatedClusterOptions options;
    options.seed = seed;
    SimulatedCluster world(options);
    TestSession session(world, ParseGraphText(kTrainingGraph));
    ASSERT_EQ(session.Run(kInit).status(), absl::OkStatus());
    const StatusOr<uint64_t> train = session.Prepare(kTrain);
    ASSERT_EQ(train.status(), absl::OkStatus());
    world.cluster().Stop(kPs);
    const int64_t start = world.world.environment().clock->NowNanos();
    const Status status = session.Run(*train, {NoExtra()}).status();
    const auto took = absl::Nanoseconds(world.world.environment().clock->NowNanos() - start);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(kPs));
    EXPECT_LE(took, absl::Seconds(5));
    // It was only slow: nothing is lost.
    world.cluster().Continue(kPs);
    world.world.RunFor(absl::Seconds(3));
    EXPECT_EQ(session.Run(*train, {NoExtra()}).status(), absl::OkStatus());
  }
}

// A task may answer, and die before what it sent has left: who waits for that must not wait for
// ever, although no call to the dead task is under way. No stream stood before this step, so none
// breaks.
TEST(SimulationTest, ATaskThatDiesAfterItsAnswerEndsTheStep) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    SimulatedClusterOptions options;
    options.seed = seed;
    SimulatedCluster world(options);
    TestSession session(world, ParseGraphText(R"(
b = Const() {dtype=float, value=tensor(float[1]: 2)} @/job:worker/task:1
c = Identity(b) @/job:worker/task:0
)"));
    const StatusOr<uint64_t> step = session.Prepare({{}, {"c:0"}, {}});
    ASSERT_EQ(step.status(), absl::OkStatus());
    // Control is fast and data is slow: its answer comes, its tensor does not.
    world.network.set_max_delay(absl::Seconds(3));
    const auto hit = session.Start(session.Request(*step));
    ASSERT_TRUE(
        world.RunUntil([&] { return world.cluster().worker(kWorker1).usage().kept_replies == 1; }));
    world.world.RunFor(absl::Milliseconds(10));
    if (hit->done) continue;  // the tensor was quick
    world.cluster().Kill(kWorker1);
    const int64_t killed = world.world.environment().clock->NowNanos();
    world.Await(*hit, absl::Seconds(60));
    EXPECT_LE(absl::Nanoseconds(world.world.environment().clock->NowNanos() - killed),
              absl::Seconds(5.1));
    const Status status = ToStatus(hit->response.status());
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(kWorker1));
  }
}

// Each control message may be lost, on its way there or back, or come twice.
void LoseMessages(uint64_t seed) {
  SCOPED_TRACE(seed);
  SimulatedClusterOptions options;
  options.seed = seed;
  options.max_delay = absl::Milliseconds(3);
  SimulatedCluster world(options);
  TestSession session(world, ParseGraphText(kTrainingGraph));
  ASSERT_EQ(session.Run(kInit).status(), absl::OkStatus());
  const StatusOr<uint64_t> train = session.Prepare(kTrain);
  ASSERT_EQ(train.status(), absl::OkStatus());
  int calls = 0;
  world.cluster().wire().SetFaults([&](const std::string&, const std::string& method) {
    Wire::Fault fault;
    if (method != "RunStep" && method != "AbortStep") return fault;
    ++calls;
    fault.twice = calls % 3 == 0;
    fault.lose_request = calls % 11 == 5;
    fault.lose_response = calls % 7 == 4;
    return fault;
  });
  int good = 0;
  for (int i = 0; i < 30; ++i) {
    const Status status = session.Run(*train, {NoExtra()}).status();
    if (status.ok()) {
      ++good;
    } else {
      EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr("/job:"));
    }
  }
  EXPECT_GT(good, 5);
  world.cluster().wire().SetFaults(nullptr);
  EXPECT_EQ(session.Run(kRead).status(), absl::OkStatus());
  EXPECT_EQ(session.Close(), absl::OkStatus());
  for (const char* task : {kPs, kWorker0, kWorker1}) {
    EXPECT_EQ(world.cluster().worker(task).usage().live_steps, 0) << task;
  }
}

TEST(SimulationTest, LostAndRepeatedMessagesEndInAnAnswer) {
  for (uint64_t seed = 1; seed <= 20; ++seed) LoseMessages(seed);
}

TEST(SimulationTest, AThousandStepsHoldNothing) {
  SimulatedCluster world;
  TestSession session(world, ParseGraphText(kTrainingGraph));
  ASSERT_EQ(session.Run(kInit).status(), absl::OkStatus());
  const StatusOr<uint64_t> train = session.Prepare(kTrain);
  ASSERT_EQ(train.status(), absl::OkStatus());
  std::map<std::string, int> kept;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(session.Run(*train, {NoExtra()}).status(), absl::OkStatus());
    if (i == 99) {
      for (const char* task : {kPs, kWorker0, kWorker1}) {
        kept[task] = world.cluster().worker(task).usage().kept_replies;
      }
    }
  }
  for (const char* task : {kPs, kWorker0, kWorker1}) {
    const Worker::Usage usage = world.cluster().worker(task).usage();
    EXPECT_EQ(usage.live_steps, 0) << task;
    EXPECT_LE(usage.kept_replies, kept[task] + 1) << task;
    EXPECT_LE(usage.kept_replies, 2) << task;
  }
  // The master says with its next heartbeats that the last one is over, too.
  world.world.RunFor(absl::Seconds(2));
  for (const char* task : {kPs, kWorker0, kWorker1}) {
    EXPECT_EQ(world.cluster().worker(task).usage().kept_replies, 0) << task;
    const StreamDataPlane::Usage held = world.DataPlaneUsage(task);
    EXPECT_EQ(held.steps, 0) << task;
    EXPECT_EQ(held.queued_tensors, 0) << task;
    EXPECT_EQ(held.early_bytes, 0) << task;
  }
}

}  // namespace
}  // namespace millrace::testing
