// What a master does with one step: at most once, one cause of failure, bounds on time.
#include <algorithm>
#include <string>
#include <vector>

#include "core/framework/tensor_proto.h"
#include "core/graph/graph_def.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/distributed/simulated_cluster.h"

namespace millrace::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kWorker0[] = "/job:worker/task:0";
constexpr char kWorker1[] = "/job:worker/task:1";
constexpr char kPs[] = "/job:ps/task:0";

const StepSignature kInit = {{}, {}, {"init"}};
const StepSignature kTrain = {{"extra:0"}, {"loss:0"}, {"train"}};
const StepSignature kRead = {{}, {"w_value:0"}, {}};

// Worker 0 waits at gate "g0", worker 1 at "g1"; each value goes to the other task as well.
constexpr char kGates[] = R"(
a = Const() {dtype=float, value=tensor(float[1]: 1)} @/job:worker/task:0
b = Const() {dtype=float, value=tensor(float[1]: 2)} @/job:worker/task:1
a1 = Gate(a) {name="g0"} @/job:worker/task:0
b1 = Gate(b) {name="g1"} @/job:worker/task:1
sum = AddV2(a1, b1) @/job:worker/task:0
dif = Sub(a1, b1) @/job:worker/task:1
)";
const StepSignature kBoth = {{}, {"sum:0", "dif:0"}, {}};

// A count on each of two ps; the second one's update waits for a check of the feed.
constexpr char kTwoPs[] = R"(
x = Placeholder() {dtype=float, shape=[1]} @/job:worker/task:0
zero = Const() {dtype=float, value=tensor(float[]: 0)} @/job:ps/task:0
zero1 = Const() {dtype=float, value=tensor(float[]: 0)} @/job:ps/task:1
one = Const() {dtype=float, value=tensor(float[]: 1)} @/job:ps/task:0
one1 = Const() {dtype=float, value=tensor(float[]: 1)} @/job:ps/task:1
a = VarHandleOp() {dtype=float, shape=[], shared_name="a"} @/job:ps/task:0
b = VarHandleOp() {dtype=float, shape=[], shared_name="b"} @/job:ps/task:1
a_init = AssignVariableOp(a, zero) @/job:ps/task:0
b_init = AssignVariableOp(b, zero1) @/job:ps/task:1
a_add = AssignAddVariableOp(a, one) @/job:ps/task:0
gate = Gate(x) {name="late"} @/job:worker/task:0
checked = Check(gate) @/job:worker/task:0
b_add = AssignAddVariableOp(b, one1, ^checked) @/job:ps/task:1
a_value = ReadVariableOp(a) {dtype=float} @/job:ps/task:0
b_value = ReadVariableOp(b) {dtype=float} @/job:ps/task:1
)";

absl::Duration Now(const SimulatedCluster& world) {
  return absl::Nanoseconds(world.world.environment().clock->NowNanos());
}

std::string Message(const Status& status) { return std::string(status.message()); }

Tensor NoExtra() { return Floats({0, 0, 0, 0}); }

class StepTest : public ::testing::Test {
 protected:
  StepTest() {
    for (const char* gate : {"g0", "g1", "late"}) CloseGate(gate);
  }
};

TEST_F(StepTest, WrongFeedsAreNamedBeforeAnythingIsSent) {
  SimulatedCluster world;
  TestSession session(world, ParseGraphText(kTrainingGraph));
  const StatusOr<uint64_t> train = session.Prepare(kTrain);
  ASSERT_EQ(train.status(), absl::OkStatus());
  EXPECT_EQ(session.Run(*train).status(), InvalidArgument("the step has 1 feeds, but got 0"));
  EXPECT_EQ(session.Run(*train, {Floats({1, 2})}).status(),
            InvalidArgument("feed 'extra:0': expected float[4], but got float[2]"));
  EXPECT_EQ(session.Run(*train, {Tensor::Of<int32_t>({4}, {1, 2, 3, 4})}).status(),
            InvalidArgument("feed 'extra:0': expected float[4], but got int32[4]"));
  EXPECT_EQ(world.cluster().wire().calls("RunStep"), 0);
  EXPECT_EQ(session.Run(999).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(StepTest, ARequestTakesEffectOnce) {
  SimulatedCluster world;
  TestSession session(world, ParseGraphText(kTwoPs));
  // Only the first ps is needed.
  ASSERT_EQ(session.Run(StepSignature{{}, {}, {"a_init"}}).status(), absl::OkStatus());
  const StatusOr<uint64_t> add = session.Prepare({{}, {}, {"a_add"}});
  ASSERT_EQ(add.status(), absl::OkStatus());
  const RunPreparedRequest request = session.Request(*add);
  const auto first = session.Start(request);
  const auto second = session.Start(request);
  world.Await(*first);
  world.Await(*second);
  const auto third = session.Start(request);
  world.Await(*third);
  for (const auto& pending : {first, second, third}) {
    EXPECT_EQ(ToStatus(pending->response.status()), absl::OkStatus());
    EXPECT_EQ(pending->response.step_id(), first->response.step_id());
  }
  const StatusOr<std::vector<Tensor>> value = session.Run(StepSignature{{}, {"a_value:0"}, {}});
  ASSERT_EQ(value.status(), absl::OkStatus());
  EXPECT_THAT(ValuesOf((*value)[0]), ElementsAre(1));
}

TEST_F(StepTest, AFailureIsKeptToo) {
  SimulatedCluster world;
  TestSession session(world, ParseGraphText(kTrainingGraph));
  const StatusOr<uint64_t> read = session.Prepare(kRead);
  ASSERT_EQ(read.status(), absl::OkStatus());
  const RunPreparedRequest request = session.Request(*read);
  const auto first = session.Start(request);
  world.Await(*first);
  EXPECT_EQ(ToStatus(first->response.status()).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_EQ(session.Run(kInit).status(), absl::OkStatus());
  const auto again = session.Start(request);
  world.Await(*again);
  EXPECT_EQ(again->response.status().message(), first->response.status().message());
}

TEST_F(StepTest, TwoThousandStepsKeepNoMoreThanTheLast) {
  SimulatedCluster world;
  TestSession session(world, ParseGraphText(kTrainingGraph));
  const StatusOr<uint64_t> step = session.Prepare({{}, {}, {"zero"}});
  ASSERT_EQ(step.status(), absl::OkStatus());
  for (int i = 0; i < 2000; ++i) ASSERT_EQ(session.Run(*step).status(), absl::OkStatus());
  const Master::Usage usage = world.cluster().master(kWorker0).usage();
  EXPECT_EQ(usage.live_steps, 0);
  EXPECT_LE(usage.kept_replies, 64);
  EXPECT_LE(world.cluster().worker(kPs).usage().kept_replies, 1);
}

TEST_F(StepTest, TheCauseIsReportedAndTheOthersEnd) {
  SimulatedCluster world;
  TestSession session(world, ParseGraphText(R"(
x = Placeholder() {dtype=float, shape=[1]} @/job:worker/task:1
checked = Check(x) @/job:worker/task:1
a = Const() {dtype=float, value=tensor(float[1]: 1)} @/job:worker/task:0
waits = Gate(a) {name="g0"} @/job:worker/task:0
sum = AddV2(waits, checked) @/job:worker/task:0
p = Gate(a) {name="g0"} @/job:ps/task:0
)"));
  const StepSignature signature = {{"x:0"}, {"sum:0", "p:0"}, {}};
  const StatusOr<uint64_t> step = session.Prepare(signature);
  ASSERT_EQ(step.status(), absl::OkStatus());
  const absl::Duration start = Now(world);
  const Status status = session.Run(*step, {Floats({1})}).status();
  EXPECT_LT(Now(world) - start, absl::Seconds(1));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(status), AllOf(HasSubstr("Check 'checked'"), HasSubstr("told to fail"),
                                     HasSubstr("/job:worker/task:1/device:CPU:0")));
  EXPECT_EQ(WaitingAt("g0"), 0);
  world.world.RunFor(absl::Seconds(1));
  for (const char* task : {kPs, kWorker0, kWorker1}) {
    EXPECT_EQ(world.cluster().worker(task).usage().live_steps, 0) << task;
  }
  OpenGate("g0");
  EXPECT_EQ(session.Run(*step, {Floats({-1})}).status(), absl::OkStatus());
}

TEST_F(StepTest, ATimeoutNamesTheTasksThatAreStillAtIt) {
  SimulatedCluster world;
  TestSession session(world, ParseGraphText(kGates));
  const StatusOr<uint64_t> step = session.Prepare(kBoth);
  ASSERT_EQ(step.status(), absl::OkStatus());
  OpenGate("g0");
  RunPreparedRequest request = session.Request(*step);
  request.mutable_options()->set_timeout_in_ms(1000);
  const absl::Duration start = Now(world);
  const auto pending = session.Start(request);
  world.Await(*pending);
  EXPECT_LT(Now(world) - start, absl::Seconds(1.5));
  const Status status = ToStatus(pending->response.status());
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  // Both: worker 0 waits for what worker 1 does not send.
  EXPECT_THAT(Message(status), AllOf(HasSubstr("timeout of 1s"), HasSubstr(kWorker1)));
  world.world.RunFor(absl::Seconds(1));
  EXPECT_EQ(WaitingAt("g1"), 0);
  EXPECT_EQ(world.cluster().worker(kWorker1).usage().live_steps, 0);
}

TEST_F(StepTest, ATimeoutHoldsForASilentTaskToo) {
  SimulatedCluster world;
  TestSession session(world, ParseGraphText(kTrainingGraph));
  ASSERT_EQ(session.Run(kInit).status(), absl::OkStatus());
  const StatusOr<uint64_t> train = session.Prepare(kTrain);
  ASSERT_EQ(train.status(), absl::OkStatus());
  world.cluster().Stop(kPs);
  RunPreparedRequest request = session.Request(*train, {NoExtra()});
  request.mutable_options()->set_timeout_in_ms(1000);
  const absl::Duration start = Now(world);
  const auto pending = session.Start(request);
  world.Await(*pending);
  EXPECT_LT(Now(world) - start, absl::Seconds(1.5));
  EXPECT_EQ(ToStatus(pending->response.status()).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(pending->response.status().message(), HasSubstr(kPs));
  world.cluster().Continue(kPs);
}

TEST_F(StepTest, AClientThatGoesEndsItsStep) {
  SimulatedCluster world;
  TestSession session(world, ParseGraphText(kGates));
  const StatusOr<uint64_t> step = session.Prepare(kBoth);
  ASSERT_EQ(step.status(), absl::OkStatus());
  const auto pending = session.Start(session.Request(*step));
  ASSERT_TRUE(world.RunUntil([] { return WaitingAt("g0") == 1 && WaitingAt("g1") == 1; }));
  pending->cancellation.Cancel(Cancelled("the user gave up"));
  world.Await(*pending);
  EXPECT_EQ(pending->transport, Cancelled("the user gave up"));
  EXPECT_TRUE(world.RunUntil(
      [&] {
        return world.cluster().master(kWorker0).usage().live_steps == 0 && WaitingAt("g0") == 0 &&
               WaitingAt("g1") == 0;
      },
      absl::Seconds(2)));
}

TEST_F(StepTest, CloseEndsRunningSteps) {
  SimulatedCluster world;
  TestSession session(world, ParseGraphText(kGates));
  const StatusOr<uint64_t> step = session.Prepare(kBoth);
  ASSERT_EQ(step.status(), absl::OkStatus());
  const auto pending = session.Start(session.Request(*step));
  ASSERT_TRUE(world.RunUntil([] { return WaitingAt("g0") == 1 && WaitingAt("g1") == 1; }));
  EXPECT_EQ(session.Close(), absl::OkStatus());
  world.Await(*pending, absl::Seconds(2));
  EXPECT_EQ(ToStatus(pending->response.status()).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(WaitingAt("g0") + WaitingAt("g1"), 0);
}

TEST_F(StepTest, SeveralStepsOfASessionRunAtOnce) {
  SimulatedCluster world;
  TestSession session(world, ParseGraphText(kGates));
  const StatusOr<uint64_t> step = session.Prepare(kBoth);
  ASSERT_EQ(step.status(), absl::OkStatus());
  std::vector<std::shared_ptr<Pending<RunPreparedResponse>>> pending;
  for (int i = 0; i < 10; ++i) pending.push_back(session.Start(session.Request(*step)));
  ASSERT_TRUE(world.RunUntil([] { return WaitingAt("g0") == 10 && WaitingAt("g1") == 10; }));
  OpenGate("g0");
  OpenGate("g1");
  for (const auto& run : pending) {
    world.Await(*run);
    const StatusOr<std::vector<Tensor>> fetches = FetchesOf(run->response);
    ASSERT_EQ(fetches.status(), absl::OkStatus());
    EXPECT_THAT(ValuesOf((*fetches)[0]), ElementsAre(3));
    EXPECT_THAT(ValuesOf((*fetches)[1]), ElementsAre(-1));
  }
}

TEST_F(StepTest, ATracedStepHasEventsOfAllTasks) {
  SimulatedCluster world;
  TestSession session(world, ParseGraphText(kTrainingGraph));
  ASSERT_EQ(session.Run(kInit).status(), absl::OkStatus());
  const StatusOr<uint64_t> train = session.Prepare(kTrain);
  ASSERT_EQ(train.status(), absl::OkStatus());
  RunPreparedRequest request = session.Request(*train, {NoExtra()});
  request.mutable_options()->set_trace_level(1);
  const auto pending = session.Start(request);
  world.Await(*pending);
  std::vector<std::string> devices;
  for (const DeviceStepStats& device : pending->response.step_stats().dev_stats()) {
    devices.push_back(device.device());
  }
  std::sort(devices.begin(), devices.end());
  EXPECT_THAT(devices, ElementsAre("/job:ps/task:0/device:CPU:0", "/job:worker/task:0/device:CPU:0",
                                   "/job:worker/task:1/device:CPU:0"));
}

// Fails the step of kTwoPs after its first ps was updated, and reads that ps.
Status ReadAfterHalfAStep(bool independent_updates) {
  SimulatedClusterOptions options;
  options.jobs = {{"ps", 2}, {"worker", 1}};
  SimulatedCluster world(options);
  SessionSettings settings;
  settings.set_independent_updates(independent_updates);
  TestSession session(world, ParseGraphText(kTwoPs), settings);
  EXPECT_EQ(session.Run(StepSignature{{}, {}, {"a_init", "b_init"}}).status(), absl::OkStatus());
  const StatusOr<uint64_t> add = session.Prepare({{"x:0"}, {}, {"a_add", "b_add"}});
  EXPECT_EQ(add.status(), absl::OkStatus());
  if (!add.ok()) return add.status();
  OpenGate("late");
  EXPECT_EQ(session.Run(*add, {Floats({0})}).status(), absl::OkStatus());
  CloseGate("late");
  const auto pending = session.Start(session.Request(*add, {Floats({1})}));
  // By then ps 0 has long updated.
  world.world.RunFor(absl::Seconds(1));
  OpenGate("late");
  world.Await(*pending);
  EXPECT_EQ(ToStatus(pending->response.status()).code(), absl::StatusCode::kInvalidArgument);
  const StatusOr<std::vector<Tensor>> b = session.Run(StepSignature{{}, {"b_value:0"}, {}});
  EXPECT_EQ(b.status(), absl::OkStatus()) << "it was not touched";
  return session.Run(StepSignature{{}, {"a_value:0"}, {}}).status();
}

TEST_F(StepTest, ASetThatIsTornOverTasksIsBlocked) {
  const Status status = ReadAfterHalfAStep(/*independent_updates=*/false);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(Message(status), HasSubstr("'a'"));
}

TEST_F(StepTest, IndependentUpdatesAreNoSet) {
  EXPECT_EQ(ReadAfterHalfAStep(/*independent_updates=*/true), absl::OkStatus());
}

// --- RunStep, as a foreign client calls it.

RunStepRequest ForeignRequest(const TestSession& session, const std::vector<std::string>& fetches) {
  RunStepRequest request;
  request.set_session_handle(session.handle());
  for (const std::string& fetch : fetches) request.add_fetch(fetch);
  request.set_store_errors_in_response_body(true);
  return request;
}

void AddFeed(RunStepRequest& request, const std::string& name, const Tensor& value) {
  NamedTensor* feed = request.add_feed();
  feed->set_name(name);
  EXPECT_EQ(TensorToProto(value, feed->mutable_tensor()), absl::OkStatus());
}

TEST_F(StepTest, AForeignStepNamesFeedsAndFetchesInAnyOrder) {
  SimulatedCluster world;
  TestSession session(world, ParseGraphText(R"(
x = Placeholder() {dtype=float, shape=[2]}
y = Placeholder() {dtype=float, shape=[2]}
d = Sub(x, y)
s = AddV2(x, y)
)"));
  RunStepRequest request = ForeignRequest(session, {"s:0", "d:0", "s:0"});
  AddFeed(request, "y:0", Floats({1, 1}));
  AddFeed(request, "x:0", Floats({5, 7}));
  const RunStepResponse response = world.Call(world.master(), &MasterInterface::RunStep, request);
  EXPECT_EQ(response.status_code(), 0) << response.status_error_message();
  ASSERT_EQ(response.tensor_size(), 3);
  EXPECT_EQ(response.tensor(0).name(), "s:0");
  EXPECT_EQ(response.tensor(1).name(), "d:0");
  EXPECT_EQ(response.tensor(2).name(), "s:0");
  EXPECT_THAT(ValuesOf(*TensorFromProto(response.tensor(1).tensor())), ElementsAre(4, 6));
  EXPECT_THAT(ValuesOf(*TensorFromProto(response.tensor(2).tensor())), ElementsAre(6, 8));

  // The other order is the same plan.
  RunStepRequest other = ForeignRequest(session, {"d:0", "s:0"});
  AddFeed(other, "x:0", Floats({5, 7}));
  AddFeed(other, "y:0", Floats({1, 1}));
  EXPECT_EQ(world.Call(world.master(), &MasterInterface::RunStep, other).status_code(), 0);
  EXPECT_EQ(world.cluster().master(kWorker0).usage().plans, 1);
  EXPECT_EQ(response.metadata().step_stats().dev_stats_size(), 0);
  other.mutable_options()->set_trace_level(3);
  EXPECT_EQ(world.Call(world.master(), &MasterInterface::RunStep, other)
                .metadata()
                .step_stats()
                .dev_stats_size(),
            1);
}

TEST_F(StepTest, AForeignStepsErrorsAreInItsBody) {
  SimulatedCluster world;
  TestSession session(world, ParseGraphText(kTrainingGraph));
  const auto run = [&](const RunStepRequest& request) {
    return world.Call(world.master(), &MasterInterface::RunStep, request);
  };
  RunStepResponse response = run(ForeignRequest(session, {"nobody:0"}));
  EXPECT_EQ(response.status_code(), static_cast<int>(absl::StatusCode::kNotFound));
  EXPECT_THAT(response.status_error_message(), HasSubstr("nobody"));
  response = run(ForeignRequest(session, {"w_value:0"}));
  EXPECT_EQ(response.status_code(), static_cast<int>(absl::StatusCode::kFailedPrecondition));
  RunStepRequest twice = ForeignRequest(session, {"extra:0"});
  AddFeed(twice, "extra:0", NoExtra());
  AddFeed(twice, "extra:0", NoExtra());
  EXPECT_EQ(run(twice).status_code(), static_cast<int>(absl::StatusCode::kInvalidArgument));
  RunStepRequest partial = ForeignRequest(session, {"w_value:0"});
  partial.set_partial_run_handle("p");
  EXPECT_EQ(run(partial).status_code(), static_cast<int>(absl::StatusCode::kUnimplemented));
  RunStepRequest lost = ForeignRequest(session, {"w_value:0"});
  lost.set_session_handle("gone");
  EXPECT_EQ(run(lost).status_code(), static_cast<int>(absl::StatusCode::kAborted));
  // Or, for who asks so, in the transport's status.
  RunStepRequest request = ForeignRequest(session, {"nobody:0"});
  request.set_store_errors_in_response_body(false);
  const auto pending = world.Start(world.master(), &MasterInterface::RunStep, request);
  world.Await(*pending);
  EXPECT_EQ(pending->transport.code(), absl::StatusCode::kNotFound);
}

TEST_F(StepTest, AForeignStepTakesEffectOnceByItsId) {
  SimulatedCluster world;
  TestSession session(world, ParseGraphText(kTwoPs));
  ASSERT_EQ(session.Run(StepSignature{{}, {}, {"a_init"}}).status(), absl::OkStatus());
  RunStepRequest add = ForeignRequest(session, {});
  add.add_target("a_add");
  add.set_request_id(-5);
  const auto first = world.Start(world.master(), &MasterInterface::RunStep, add);
  const auto second = world.Start(world.master(), &MasterInterface::RunStep, add);
  world.Await(*first);
  world.Await(*second);
  EXPECT_EQ(world.Call(world.master(), &MasterInterface::RunStep, add).status_code(), 0);
  // Without an id each counts.
  add.set_request_id(0);
  EXPECT_EQ(world.Call(world.master(), &MasterInterface::RunStep, add).status_code(), 0);
  EXPECT_EQ(world.Call(world.master(), &MasterInterface::RunStep, add).status_code(), 0);
  const StatusOr<std::vector<Tensor>> value = session.Run(StepSignature{{}, {"a_value:0"}, {}});
  ASSERT_EQ(value.status(), absl::OkStatus());
  EXPECT_THAT(ValuesOf((*value)[0]), ElementsAre(3));
}

}  // namespace
}  // namespace millrace::testing
