#include "distributed/worker.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/simulation.h"
#include "core/device/cpu_device.h"
#include "core/framework/resource.h"
#include "core/framework/tensor_proto.h"
#include "core/graph/graph_def.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/distributed/test_program.h"

namespace millrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kTask[] = "/job:ps/task:0";
constexpr uint64_t kIncarnation = 4711;
constexpr uint64_t kSession = 99;

// Counts its runs in a variable; "out" is the count after this run.
constexpr char kCounter[] = R"(
n = VarHandleOp() {dtype=float, shape=[], shared_name="n"}
one = Const() {dtype=float, value=tensor(float[]: 1)}
add = AssignAddVariableOp(n, one)
out = ReadVariableOp(n, ^add) {dtype=float}
)";
// The same, behind a gate.
constexpr char kGated[] = R"(
n = VarHandleOp() {dtype=float, shape=[], shared_name="n"}
one = Const() {dtype=float, value=tensor(float[]: 1)}
behind = Gate(one) {name="worker"}
add = AssignAddVariableOp(n, behind)
out = ReadVariableOp(n, ^add) {dtype=float}
)";

template <typename Response>
struct Reply {
  Response response;
  bool done = false;
  Status status() const { return ToStatus(response.status()); }
};

// One worker without peers, in a simulated world.
class WorkerTest : public ::testing::Test {
 protected:
  WorkerTest() : world_(1) {
    CpuDeviceOptions device;
    device.job = "ps";
    devices_ = MakeCpuDevices(device, *world_.environment().scheduler);
    WorkerOptions options;
    options.task = kTask;
    options.devices = {devices_[0].get()};
    options.kernels = &TestKernels();
    options.ops = TestOps();
    options.environment = world_.environment();
    options.incarnation = kIncarnation;
    options.build_version = "1.2";
    options.pid = 17;
    options.idle_lease = absl::Seconds(20);
    options.kept_replies = 8;
    options.kept_reply_bytes = 100;
    worker_ = std::make_unique<Worker>(options);
    const auto n = devices_[0]->resources().LookupOrCreateVariable("", "n", DType::kFloat, Shape());
    EXPECT_EQ((*n)->Assign(Tensor::Scalar<float>(0)), absl::OkStatus());
    CloseGate("worker");
  }
  ~WorkerTest() override {
    bool drained = false;
    worker_->Shutdown([&] { drained = true; });
    EXPECT_TRUE(world_.RunUntil([&] { return drained; }, absl::Seconds(10)));
  }

  template <typename Request, typename Response>
  std::shared_ptr<Reply<Response>> Start(
      void (WorkerInterface::*method)(const Request*, Response*, const CallOptions&, CallDone),
      const Request& request, Cancellation* cancellation = nullptr) {
    auto reply = std::make_shared<Reply<Response>>();
    auto kept = std::make_shared<Request>(request);
    CallOptions options;
    options.cancellation = cancellation;
    WorkerInterface& worker = *worker_;
    (worker.*method)(kept.get(), &reply->response, options, [kept, reply](const Status& status) {
      EXPECT_EQ(status, absl::OkStatus());
      EXPECT_FALSE(reply->done) << "answered twice";
      reply->done = true;
    });
    return reply;
  }
  template <typename Request, typename Response>
  Response Call(void (WorkerInterface::*method)(const Request*, Response*, const CallOptions&,
                                                CallDone),
                const Request& request) {
    const auto reply = Start(method, request);
    EXPECT_TRUE(world_.RunUntil([&] { return reply->done; }, absl::Seconds(60)));
    return reply->response;
  }
  template <typename Request, typename Response>
  Status StatusOf(void (WorkerInterface::*method)(const Request*, Response*, const CallOptions&,
                                                  CallDone),
                  const Request& request) {
    return ToStatus(Call(method, request).status());
  }

  Status CreateSession(uint64_t incarnation = kIncarnation) {
    CreateWorkerSessionRequest request;
    request.set_incarnation(incarnation);
    request.set_session(kSession);
    request.set_task(kTask);
    return StatusOf(&WorkerInterface::CreateSession, request);
  }
  static RegisterPlanRequest PlanOf(const Graph& graph, uint64_t plan, const std::string& fetch) {
    RegisterPlanRequest request;
    request.set_incarnation(kIncarnation);
    request.set_session(kSession);
    request.set_plan(plan);
    PartitionMessage* partition = request.add_partition();
    partition->set_device(StrCat(kTask, "/device:CPU:0"));
    ExportGraphDef(graph, partition->mutable_graph());
    if (!fetch.empty()) partition->add_fetch()->set_port(fetch);
    return request;
  }
  Status Register(const char* text, uint64_t plan = 1, const std::string& fetch = "out:0") {
    return StatusOf(&WorkerInterface::RegisterPlan, PlanOf(ParseGraphText(text), plan, fetch));
  }
  static WorkerRunStepRequest StepOf(uint64_t step, uint64_t plan = 1) {
    WorkerRunStepRequest request;
    request.set_incarnation(kIncarnation);
    request.set_session(kSession);
    request.set_plan(plan);
    request.set_step(step);
    return request;
  }
  std::shared_ptr<Reply<WorkerRunStepResponse>> StartStep(const WorkerRunStepRequest& request,
                                                          Cancellation* cancellation = nullptr) {
    return Start(&WorkerInterface::RunStep, request, cancellation);
  }
  WorkerRunStepResponse RunStep(const WorkerRunStepRequest& request) {
    return Call(&WorkerInterface::RunStep, request);
  }
  static AbortStepRequest AbortOf(uint64_t step, const Status& reason) {
    AbortStepRequest request;
    request.set_incarnation(kIncarnation);
    request.set_session(kSession);
    request.set_step(step);
    SetStatus(reason, request.mutable_reason());
    return request;
  }
  static float Fetched(const WorkerRunStepResponse& response) {
    EXPECT_EQ(ToStatus(response.status()), absl::OkStatus());
    if (response.fetch_size() != 1) return -1;
    const StatusOr<Tensor> tensor = TensorFromProto(response.fetch(0).tensor());
    return tensor.ok() ? tensor->data<float>()[0] : -1;
  }

  Simulation world_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::unique_ptr<Worker> worker_;
};

TEST_F(WorkerTest, SaysWhoItIs) {
  GetStatusRequest request;
  request.set_protocol_version(kProtocolVersion);
  const GetStatusResponse response = Call(&WorkerInterface::GetStatus, request);
  EXPECT_EQ(ToStatus(response.status()), absl::OkStatus());
  EXPECT_EQ(response.incarnation(), kIncarnation);
  EXPECT_EQ(response.build_version(), "1.2");
  EXPECT_EQ(response.pid(), 17);
  ASSERT_EQ(response.device_size(), 1);
  EXPECT_EQ(response.device(0).name(), "/job:ps/task:0/device:CPU:0");
}

TEST_F(WorkerTest, NamesBothProtocolsIfTheyDiffer) {
  GetStatusRequest request;
  request.set_protocol_version(kProtocolVersion + 1);
  request.set_build_version("9.9");
  const Status status = StatusOf(&WorkerInterface::GetStatus, request);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("speaks protocol 1 (build 1.2)"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("2 (build 9.9)"));
}

TEST_F(WorkerTest, EveryCallForAnotherLifeIsAborted) {
  EXPECT_EQ(CreateSession(), absl::OkStatus());
  const auto expect_aborted = [&](auto method, auto request) {
    request.set_incarnation(kIncarnation + 1);
    const Status status = StatusOf(method, request);
    EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << request.GetTypeName();
    EXPECT_THAT(std::string(status.message()), HasSubstr("/job:ps/task:0 was restarted"));
  };
  expect_aborted(&WorkerInterface::CreateSession, CreateWorkerSessionRequest());
  expect_aborted(&WorkerInterface::DeleteSession, DeleteWorkerSessionRequest());
  expect_aborted(&WorkerInterface::RegisterPlan, RegisterPlanRequest());
  expect_aborted(&WorkerInterface::DeregisterPlan, DeregisterPlanRequest());
  expect_aborted(&WorkerInterface::RunStep, StepOf(1));
  expect_aborted(&WorkerInterface::AbortStep, AbortStepRequest());
  expect_aborted(&WorkerInterface::Heartbeat, HeartbeatRequest());
  expect_aborted(&WorkerInterface::Reset, WorkerResetRequest());
}

TEST_F(WorkerTest, CreateSessionAndRegisterPlanMayBeRepeated) {
  EXPECT_EQ(CreateSession(), absl::OkStatus());
  EXPECT_EQ(CreateSession(), absl::OkStatus());
  const RegisterPlanRequest plan = PlanOf(ParseGraphText(kCounter), 1, "out:0");
  const auto first = Start(&WorkerInterface::RegisterPlan, plan);
  const auto second = Start(&WorkerInterface::RegisterPlan, plan);
  EXPECT_TRUE(world_.RunUntil([&] { return first->done && second->done; }, absl::Seconds(1)));
  EXPECT_EQ(first->status(), absl::OkStatus());
  EXPECT_EQ(second->status(), absl::OkStatus());
  EXPECT_EQ(Register(kCounter), absl::OkStatus());
  EXPECT_EQ(worker_->usage().plans, 1);
  EXPECT_EQ(worker_->usage().sessions, 1);
}

TEST_F(WorkerTest, ASessionHasOneNameForTheTask) {
  EXPECT_EQ(CreateSession(), absl::OkStatus());
  CreateWorkerSessionRequest request;
  request.set_incarnation(kIncarnation);
  request.set_session(kSession);
  request.set_task("/job:worker/task:3");
  EXPECT_EQ(StatusOf(&WorkerInterface::CreateSession, request).message(),
            "/job:ps/task:0 is called /job:ps/task:0 in the session, not /job:worker/task:3");
}

TEST_F(WorkerTest, AnOlderEpochIsRefused) {
  CreateWorkerSessionRequest request;
  request.set_incarnation(kIncarnation);
  request.set_task(kTask);
  request.set_session(1);
  request.set_epoch(5);
  EXPECT_EQ(StatusOf(&WorkerInterface::CreateSession, request), absl::OkStatus());
  request.set_session(2);
  request.set_epoch(4);
  const Status status = StatusOf(&WorkerInterface::CreateSession, request);
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("has seen epoch 5"));
}

TEST_F(WorkerTest, APlanWithAnUnknownOpNamesOpAndHost) {
  EXPECT_EQ(CreateSession(), absl::OkStatus());
  RegisterPlanRequest plan = PlanOf(ParseGraphText(kCounter), 1, "out:0");
  plan.mutable_partition(0)->mutable_graph()->mutable_node(0)->set_op("MyOp");
  const Status status = StatusOf(&WorkerInterface::RegisterPlan, plan);
  EXPECT_THAT(std::string(status.message()), HasSubstr("MyOp"));
  EXPECT_THAT(std::string(status.message()), HasSubstr(kTask));
  EXPECT_EQ(worker_->usage().plans, 0);
}

TEST_F(WorkerTest, PlansThatDoNotFitAreRefusedByName) {
  EXPECT_EQ(CreateSession(), absl::OkStatus());
  const RegisterPlanRequest good = PlanOf(ParseGraphText(kCounter), 1, "out:0");
  const auto expect_refused = [&](const RegisterPlanRequest& plan, const char* message) {
    const Status status = StatusOf(&WorkerInterface::RegisterPlan, plan);
    EXPECT_FALSE(status.ok()) << message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
    EXPECT_EQ(worker_->usage().plans, 0);
  };
  RegisterPlanRequest plan = good;
  plan.mutable_partition(0)->set_device("/job:worker/task:7/device:CPU:0");
  expect_refused(plan, "a partition for /job:worker/task:7/device:CPU:0 came to /job:ps/task:0");
  plan = good;
  plan.mutable_partition(0)->set_device("/job:ps/task:0/device:CPU:1");
  expect_refused(plan, "has no device /job:ps/task:0/device:CPU:1; it has CPU:0");
  plan = good;
  plan.mutable_partition(0)->set_device("/job:ps");
  expect_refused(plan, "'/job:ps' is no full device name");
  plan = good;
  *plan.add_partition() = good.partition(0);
  expect_refused(plan, "two partitions for /job:ps/task:0/device:CPU:0");
  plan = good;
  plan.mutable_partition(0)->mutable_fetch(0)->set_port("nothing:0");
  expect_refused(plan, "nothing");
  plan = good;
  plan.mutable_partition(0)->add_target("nothing");
  expect_refused(plan, "target 'nothing' is not in its partition");
  plan = good;
  ChannelMessage* channel = plan.add_channel();
  channel->set_id(3);
  channel->set_source("/job:ps/task:0/device:CPU:0");
  channel->set_destination("/job:ps/task:0/device:CPU:0");
  *plan.add_channel() = *channel;
  expect_refused(plan, "channel 3 is there twice");
  plan = good;
  channel = plan.add_channel();
  channel->set_id(4'000'000'000);
  channel->set_source("/job:ps/task:0/device:CPU:0");
  channel->set_destination("/job:ps/task:0/device:CPU:0");
  expect_refused(plan, "channel 4000000000");
  plan = good;
  channel = plan.add_channel();
  channel->set_source("/job:ps/task:0/device:CPU:0");
  channel->set_destination("/job:worker/task:1/device:CPU:0");
  expect_refused(plan, "/job:ps/task:0 has no data plane");
}

TEST_F(WorkerTest, AStepOfNoPlanIsNotFound) {
  EXPECT_EQ(CreateSession(), absl::OkStatus());
  EXPECT_EQ(ToStatus(RunStep(StepOf(1, 5)).status()),
            NotFound("plan 5 is not registered on /job:ps/task:0"));
}

TEST_F(WorkerTest, AStepRunsOnceHoweverOftenItComes) {
  EXPECT_EQ(CreateSession(), absl::OkStatus());
  EXPECT_EQ(Register(kGated), absl::OkStatus());
  const auto first = StartStep(StepOf(1));
  const auto second = StartStep(StepOf(1));
  world_.RunFor(absl::Seconds(1));
  EXPECT_FALSE(first->done);
  EXPECT_EQ(WaitingAt("worker"), 1);
  OpenGate("worker");
  EXPECT_TRUE(world_.RunUntil([&] { return first->done && second->done; }, absl::Seconds(1)));
  EXPECT_EQ(Fetched(first->response), 1);
  EXPECT_EQ(Fetched(second->response), 1);
  EXPECT_TRUE(second->response.updates_started());
  // The reply is kept...
  EXPECT_EQ(Fetched(RunStep(StepOf(1))), 1);
  EXPECT_EQ(Fetched(RunStep(StepOf(2))), 2);
  EXPECT_EQ(Fetched(RunStep(StepOf(1))), 1);
  // ... until the master says that the step is over.
  WorkerRunStepRequest third = StepOf(3);
  third.set_ended_below(3);
  EXPECT_EQ(Fetched(RunStep(third)), 3);
  EXPECT_EQ(worker_->usage().kept_replies, 1);
  const Status late = ToStatus(RunStep(StepOf(1)).status());
  EXPECT_EQ(late.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(late.message()), HasSubstr("step 1 on /job:ps/task:0 is over"));
  EXPECT_EQ(Fetched(RunStep(StepOf(4))), 4) << "late repeats ran nothing";
}

TEST_F(WorkerTest, KeptRepliesAreBounded) {
  EXPECT_EQ(CreateSession(), absl::OkStatus());
  EXPECT_EQ(Register(kCounter), absl::OkStatus());
  for (uint64_t step = 1; step <= 2000; ++step) EXPECT_EQ(Fetched(RunStep(StepOf(step))), step);
  EXPECT_EQ(worker_->usage().kept_replies, 8);
  EXPECT_EQ(worker_->usage().live_steps, 0);
  EXPECT_EQ(ToStatus(RunStep(StepOf(5)).status()).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(Fetched(RunStep(StepOf(2000))), 2000);
}

TEST_F(WorkerTest, ALargeReplyIsNotKeptButItsStepIsNotRunAgain) {
  EXPECT_EQ(CreateSession(), absl::OkStatus());
  const char* graph = R"(
n = VarHandleOp() {dtype=float, shape=[], shared_name="n"}
one = Const() {dtype=float, value=tensor(float[]: 1)}
add = AssignAddVariableOp(n, one)
size = Const() {dtype=int32, value=tensor(int32[1]: 1000)}
out = Fill(size, one, ^add)
)";
  EXPECT_EQ(Register(graph), absl::OkStatus());
  EXPECT_EQ(Fetched(RunStep(StepOf(1))), 1);
  const Status again = ToStatus(RunStep(StepOf(1)).status());
  EXPECT_EQ(again.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(again.message()), HasSubstr("too large to keep"));
  EXPECT_EQ(Register(kCounter, 2), absl::OkStatus());
  EXPECT_EQ(Fetched(RunStep(StepOf(2, 2))), 2);
}

TEST_F(WorkerTest, AnAbortMayComeBeforeItsStep) {
  EXPECT_EQ(CreateSession(), absl::OkStatus());
  EXPECT_EQ(Register(kCounter), absl::OkStatus());
  EXPECT_EQ(StatusOf(&WorkerInterface::AbortStep, AbortOf(1, Unavailable("/job:x is dead"))),
            absl::OkStatus());
  EXPECT_EQ(ToStatus(RunStep(StepOf(1)).status()), Unavailable("/job:x is dead"));
  EXPECT_EQ(Fetched(RunStep(StepOf(2))), 1) << "the aborted step changed nothing";
}

TEST_F(WorkerTest, AnAbortEndsAStepThatWaits) {
  EXPECT_EQ(CreateSession(), absl::OkStatus());
  EXPECT_EQ(Register(kGated), absl::OkStatus());
  const auto step = StartStep(StepOf(1));
  world_.RunFor(absl::Seconds(1));
  EXPECT_EQ(StatusOf(&WorkerInterface::AbortStep, AbortOf(1, Unavailable("enough"))),
            absl::OkStatus());
  EXPECT_TRUE(world_.RunUntil([&] { return step->done; }, absl::Seconds(2)));
  EXPECT_EQ(step->status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(step->status().message()), HasSubstr("enough"));
  EXPECT_FALSE(step->response.updates_started());
  EXPECT_EQ(worker_->usage().live_steps, 0);
  EXPECT_EQ(WaitingAt("worker"), 0);
}

TEST_F(WorkerTest, AStepThatIsAboutToUpdateGetsTimeToEnd) {
  EXPECT_EQ(CreateSession(), absl::OkStatus());
  EXPECT_EQ(Register(kGated), absl::OkStatus());
  const auto step = StartStep(StepOf(1));
  world_.RunFor(absl::Seconds(1));
  EXPECT_EQ(StatusOf(&WorkerInterface::AbortStep, AbortOf(1, Unavailable("enough"))),
            absl::OkStatus());
  world_.RunFor(absl::Milliseconds(500));
  OpenGate("worker");
  EXPECT_TRUE(world_.RunUntil([&] { return step->done; }, absl::Seconds(2)));
  EXPECT_EQ(Fetched(step->response), 1);
}

TEST_F(WorkerTest, AStepEndsWhenAllItsCallersAreGone) {
  EXPECT_EQ(CreateSession(), absl::OkStatus());
  EXPECT_EQ(Register(kGated), absl::OkStatus());
  Cancellation first_call;
  Cancellation second_call;
  const auto first = StartStep(StepOf(1), &first_call);
  const auto second = StartStep(StepOf(1), &second_call);
  world_.RunFor(absl::Milliseconds(10));
  first_call.Cancel(Cancelled("gone"));
  world_.RunFor(absl::Seconds(5));
  EXPECT_FALSE(second->done) << "one still waits";
  second_call.Cancel(Cancelled("gone"));
  EXPECT_TRUE(world_.RunUntil([&] { return first->done && second->done; }, absl::Seconds(2)));
  EXPECT_EQ(second->status().code(), absl::StatusCode::kCancelled);
}

TEST_F(WorkerTest, AFailedUpdateLeavesATornSetThatIsBlocked) {
  EXPECT_EQ(CreateSession(), absl::OkStatus());
  const char* torn = R"(
n = VarHandleOp() {dtype=float, shape=[], shared_name="n"}
m = VarHandleOp() {dtype=float, shape=[], shared_name="m"}
one = Const() {dtype=float, value=tensor(float[]: 1)}
add = AssignAddVariableOp(n, one)
bad = FailingUpdate(m, ^add)
out = Identity(one, ^bad)
)";
  EXPECT_EQ(Register(torn), absl::OkStatus());
  const WorkerRunStepResponse response = RunStep(StepOf(1));
  const Status failed = ToStatus(response.status());
  EXPECT_EQ(failed.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(failed.message()), HasSubstr("FailingUpdate 'bad' on /job:ps/task:0"));
  EXPECT_TRUE(response.updates_started());
  EXPECT_EQ(Register(kCounter, 2), absl::OkStatus());
  const Status blocked = ToStatus(RunStep(StepOf(2, 2)).status());
  EXPECT_EQ(blocked.code(), absl::StatusCode::kFailedPrecondition) << blocked;
  EXPECT_THAT(std::string(blocked.message()), HasSubstr("'n'"));
  // A restore assigns it anew.
  const char* assign = R"(
n = VarHandleOp() {dtype=float, shape=[], shared_name="n"}
ten = Const() {dtype=float, value=tensor(float[]: 10)}
set = AssignVariableOp(n, ten)
out = Identity(ten, ^set)
)";
  EXPECT_EQ(Register(assign, 3), absl::OkStatus());
  EXPECT_EQ(Fetched(RunStep(StepOf(3, 3))), 10);
  EXPECT_EQ(Fetched(RunStep(StepOf(4, 2))), 11);
}

TEST_F(WorkerTest, TheMasterMayMarkAnEndedStepsUpdatesAsTorn) {
  EXPECT_EQ(CreateSession(), absl::OkStatus());
  EXPECT_EQ(Register(kCounter), absl::OkStatus());
  EXPECT_EQ(Fetched(RunStep(StepOf(1))), 1);
  AbortStepRequest torn = AbortOf(1, Unavailable("another task"));
  torn.set_torn(true);
  EXPECT_EQ(StatusOf(&WorkerInterface::AbortStep, torn), absl::OkStatus());
  EXPECT_EQ(ToStatus(RunStep(StepOf(2)).status()).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(WorkerTest, ASessionWhoseMasterIsSilentEnds) {
  EXPECT_EQ(CreateSession(), absl::OkStatus());
  EXPECT_EQ(Register(kGated), absl::OkStatus());
  const auto step = StartStep(StepOf(1));
  HeartbeatRequest heartbeat;
  heartbeat.set_incarnation(kIncarnation);
  heartbeat.add_session(kSession);
  for (int i = 0; i < 6; ++i) {
    world_.RunFor(absl::Seconds(10));
    const HeartbeatResponse response = Call(&WorkerInterface::Heartbeat, heartbeat);
    EXPECT_EQ(response.live_steps(), 1);
  }
  EXPECT_FALSE(step->done);
  EXPECT_TRUE(world_.RunUntil([&] { return step->done; }, absl::Seconds(30)));
  EXPECT_EQ(step->status().code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(step->status().message()), HasSubstr("silent"));
  EXPECT_EQ(worker_->usage().sessions, 0);
  EXPECT_EQ(worker_->usage().plans, 0);
  // A late call does not bring it back.
  EXPECT_EQ(CreateSession().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(ToStatus(RunStep(StepOf(2)).status()).code(), absl::StatusCode::kAborted);
}

TEST_F(WorkerTest, DeleteSessionEndsItsSteps) {
  EXPECT_EQ(CreateSession(), absl::OkStatus());
  EXPECT_EQ(Register(kGated), absl::OkStatus());
  const auto step = StartStep(StepOf(1));
  DeleteWorkerSessionRequest request;
  request.set_incarnation(kIncarnation);
  request.set_session(kSession);
  EXPECT_EQ(StatusOf(&WorkerInterface::DeleteSession, request), absl::OkStatus());
  EXPECT_TRUE(world_.RunUntil([&] { return step->done; }, absl::Seconds(2)));
  EXPECT_EQ(step->status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(StatusOf(&WorkerInterface::DeleteSession, request), absl::OkStatus()) << "idempotent";
}

TEST_F(WorkerTest, APlanMayGoWhileItsStepRuns) {
  EXPECT_EQ(CreateSession(), absl::OkStatus());
  EXPECT_EQ(Register(kGated), absl::OkStatus());
  const auto step = StartStep(StepOf(1));
  world_.RunFor(absl::Milliseconds(10));
  DeregisterPlanRequest request;
  request.set_incarnation(kIncarnation);
  request.set_session(kSession);
  request.set_plan(1);
  EXPECT_EQ(StatusOf(&WorkerInterface::DeregisterPlan, request), absl::OkStatus());
  EXPECT_EQ(worker_->usage().plans, 0);
  OpenGate("worker");
  EXPECT_TRUE(world_.RunUntil([&] { return step->done; }, absl::Seconds(2)));
  EXPECT_EQ(Fetched(step->response), 1);
  EXPECT_EQ(ToStatus(RunStep(StepOf(2)).status()).code(), absl::StatusCode::kNotFound);
}

TEST_F(WorkerTest, FeedsThatAreMissingOrBrokenAreNamed) {
  EXPECT_EQ(CreateSession(), absl::OkStatus());
  RegisterPlanRequest plan = PlanOf(ParseGraphText(R"(
x = Placeholder() {dtype=float, shape=[2]}
out = Identity(x)
)"),
                                    1, "out:0");
  PartitionMessage::Endpoint* feed = plan.mutable_partition(0)->add_feed();
  feed->set_index(7);
  feed->set_port("x:0");
  EXPECT_EQ(StatusOf(&WorkerInterface::RegisterPlan, plan), absl::OkStatus());
  const auto run = [&](uint64_t step, int index, const Tensor* value, const char* raw) {
    WorkerRunStepRequest request = StepOf(step);
    IndexedTensor* tensor = request.add_feed();
    tensor->set_index(index);
    if (value != nullptr) {
      EXPECT_EQ(TensorToProto(*value, tensor->mutable_tensor()), absl::OkStatus());
    }
    if (raw != nullptr) tensor->mutable_tensor()->set_tensor_content(raw);
    return RunStep(request);
  };
  const Tensor good = Tensor::Of<float>({2}, {3, 4});
  const Tensor wrong = Tensor::Of<int32_t>({2}, {3, 4});
  EXPECT_EQ(Fetched(run(1, 7, &good, nullptr)), 3);
  EXPECT_EQ(ToStatus(run(2, 6, &good, nullptr).status()),
            InvalidArgument("/job:ps/task:0: feed number 7 is missing"));
  EXPECT_THAT(std::string(ToStatus(run(3, 7, &wrong, nullptr).status()).message()),
              HasSubstr("feed 'x'"));
  EXPECT_THAT(std::string(ToStatus(run(4, 7, &good, "abc").status()).message()),
              HasSubstr("feed number 7"));
}

TEST_F(WorkerTest, ATracedStepTellsItsKernels) {
  EXPECT_EQ(CreateSession(), absl::OkStatus());
  EXPECT_EQ(Register(kCounter), absl::OkStatus());
  WorkerRunStepRequest request = StepOf(1);
  request.set_trace(true);
  const WorkerRunStepResponse response = RunStep(request);
  ASSERT_EQ(response.step_stats().dev_stats_size(), 1);
  std::vector<std::string> labels;
  for (const NodeExecStats& node : response.step_stats().dev_stats(0).node_stats()) {
    labels.push_back(node.timeline_label());
  }
  EXPECT_THAT(labels, ::testing::Contains("add = AssignAddVariableOp()"));
}

TEST_F(WorkerTest, ResetDropsVariables) {
  WorkerResetRequest request;
  request.set_incarnation(kIncarnation);
  EXPECT_THAT(devices_[0]->resources().List(), ElementsAre("/n"));
  EXPECT_EQ(StatusOf(&WorkerInterface::Reset, request), absl::OkStatus());
  EXPECT_THAT(devices_[0]->resources().List(), ElementsAre());
}

TEST_F(WorkerTest, AfterShutdownItRefusesAndDrains) {
  EXPECT_EQ(CreateSession(), absl::OkStatus());
  EXPECT_EQ(Register(kGated), absl::OkStatus());
  const auto step = StartStep(StepOf(1));
  world_.RunFor(absl::Milliseconds(10));
  bool drained = false;
  worker_->Shutdown([&] { drained = true; });
  EXPECT_FALSE(drained) << "a step still runs";
  EXPECT_EQ(CreateSession().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(world_.RunUntil([&] { return step->done && drained; }, absl::Seconds(5)));
  EXPECT_EQ(step->status().code(), absl::StatusCode::kCancelled);
  // For the fixture.
  WorkerOptions options;
  options.environment = world_.environment();
  worker_ = std::make_unique<Worker>(options);
}

}  // namespace
}  // namespace millrace::testing
