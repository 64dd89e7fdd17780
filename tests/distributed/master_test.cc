// Sessions, plans and placement: what a master does before and beside steps. Steps are in
// step_test.cc.
#include "distributed/master.h"

#include <algorithm>
#include <string>
#include <vector>

#include "core/framework/resource.h"
#include "core/graph/graph_def.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/distributed/simulated_cluster.h"

namespace millrace::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kWorker0[] = "/job:worker/task:0";
constexpr char kWorker1[] = "/job:worker/task:1";
constexpr char kPs[] = "/job:ps/task:0";

const StepSignature kInit = {{}, {}, {"init"}};
const StepSignature kTrain = {{"extra:0"}, {"loss:0"}, {"train"}};
const StepSignature kRead = {{}, {"w_value:0"}, {}};

absl::Duration Now(const SimulatedCluster& world) {
  return absl::Nanoseconds(world.world.environment().clock->NowNanos());
}

std::string Message(const Status& status) { return std::string(status.message()); }

StatusOr<PlacementReport> ReportOf(SimulatedCluster& world, TestSession& session, uint64_t step) {
  DescribeStepRequest request;
  request.set_session_handle(session.handle());
  request.set_step_handle(step);
  const DescribeStepResponse response =
      world.Call(world.master(), &MasterInterface::DescribeStep, request);
  MR_RETURN_IF_ERROR(ToStatus(response.status()));
  return PlacementReportFromJson(response.report_json());
}

std::string DeviceOf(const PlacementReport& report, const std::string& node) {
  for (const PlacementDecision& decision : report.decisions) {
    if (decision.node == node) return decision.device;
  }
  return "not there";
}

TEST(MasterTest, ATaskThatIsNotNeededMayBeAbsent) {
  SimulatedCluster world;
  world.cluster().Kill(kWorker1);
  const absl::Duration start = Now(world);
  TestSession session(world, ParseGraphText(kTrainingGraph));
  EXPECT_EQ(session.status(), absl::OkStatus());
  EXPECT_LT(Now(world) - start, absl::Milliseconds(100)) << "a refused connection is known at once";
  EXPECT_EQ(session.Run(kInit).status(), absl::OkStatus());
  const StatusOr<uint64_t> read = session.Prepare(kRead);
  ASSERT_EQ(read.status(), absl::OkStatus());
  const StatusOr<PlacementReport> report = ReportOf(world, session, *read);
  ASSERT_EQ(report.status(), absl::OkStatus());
  EXPECT_THAT(report->absent_tasks, ElementsAre(kWorker1));
  EXPECT_EQ(session.Run(*read).status(), absl::OkStatus());
}

TEST(MasterTest, ASilentTaskIsWaitedForInABound) {
  SimulatedCluster world;
  world.cluster().Stop(kWorker1);
  const absl::Duration start = Now(world);
  TestSession session(world, ParseGraphText(kTrainingGraph));
  EXPECT_EQ(session.status(), absl::OkStatus());
  EXPECT_LT(Now(world) - start, absl::Seconds(2.1));
  EXPECT_EQ(session.Run(kInit).status(), absl::OkStatus());
  world.cluster().Continue(kWorker1);
}

TEST(MasterTest, ANodeOnAnAbsentTaskNamesNodeTaskAndReason) {
  SimulatedCluster world;
  world.cluster().Kill(kWorker1);
  TestSession session(world, ParseGraphText(kTrainingGraph));
  const Status status = session.Prepare(kTrain).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(Message(status),
              AllOf(HasSubstr("is to run on /job:worker/task:1"),
                    HasSubstr("/job:worker/task:1 is absent"), HasSubstr("connection refused")));
}

TEST(MasterTest, ATaskThatStartsLaterIsFoundWhenItIsNeeded) {
  SimulatedCluster world;
  world.cluster().Kill(kWorker1);
  TestSession session(world, ParseGraphText(kTrainingGraph));
  ASSERT_EQ(session.Run(kInit).status(), absl::OkStatus());
  EXPECT_EQ(session.Prepare(kTrain).status().code(), absl::StatusCode::kUnavailable);
  world.cluster().Start(kWorker1);
  EXPECT_EQ(session.Run(kTrain, {Floats({0, 0, 0, 0})}).status(), absl::OkStatus());
}

TEST(MasterTest, OnlyTasksOfThePlanHearOfTheSession) {
  SimulatedCluster world;
  TestSession session(world, ParseGraphText(kTrainingGraph));
  EXPECT_EQ(world.cluster().worker(kPs).usage().sessions, 0) << "lazily";
  ASSERT_EQ(session.Run(kInit).status(), absl::OkStatus());
  EXPECT_EQ(world.cluster().worker(kPs).usage().sessions, 1);
  EXPECT_EQ(world.cluster().worker(kWorker1).usage().sessions, 0);
}

constexpr char kFree[] = R"(
a = VarHandleOp() {dtype=float, shape=[1], shared_name="a"}
b = VarHandleOp() {dtype=float, shape=[1], shared_name="b"}
one = Const() {dtype=float, value=tensor(float[1]: 1)}
a_set = AssignVariableOp(a, one)
b_set = AssignVariableOp(b, one)
)";

TEST(MasterTest, FreeNodesStayWithTheMasterUnlessAPolicyIsNamed) {
  SimulatedCluster world;
  const StepSignature both = {{}, {}, {"a_set", "b_set"}};
  {
    TestSession session(world, ParseGraphText(kFree));
    const StatusOr<uint64_t> step = session.Prepare(both);
    ASSERT_EQ(step.status(), absl::OkStatus());
    const StatusOr<PlacementReport> report = ReportOf(world, session, *step);
    ASSERT_EQ(report.status(), absl::OkStatus());
    EXPECT_EQ(DeviceOf(*report, "a"), "/job:worker/task:0/device:CPU:0");
    EXPECT_EQ(DeviceOf(*report, "b"), "/job:worker/task:0/device:CPU:0");
  }
  SessionSettings settings;
  settings.set_policy("round_robin");
  TestSession session(world, ParseGraphText(kFree), settings);
  const StatusOr<uint64_t> step = session.Prepare(both);
  ASSERT_EQ(step.status(), absl::OkStatus());
  const StatusOr<PlacementReport> report = ReportOf(world, session, *step);
  ASSERT_EQ(report.status(), absl::OkStatus());
  EXPECT_NE(DeviceOf(*report, "a"), DeviceOf(*report, "b"));
  settings.set_policy("best");
  const Status unknown = TestSession(world, ParseGraphText(kFree), settings).status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(unknown), HasSubstr("there is no placement policy 'best'; there is "
                                          "round_robin"));
}

TEST(MasterTest, AGraphThatCannotBeReadIsRefusedWithItsNode) {
  SimulatedCluster world;
  CreateSessionRequest request;
  NodeDef* node = request.mutable_graph_def()->add_node();
  node->set_name("x");
  node->set_op("NoSuchOp");
  const CreateSessionResponse response =
      world.Call(world.master(), &MasterInterface::CreateSession, request);
  EXPECT_THAT(response.status().message(), AllOf(HasSubstr("NoSuchOp"), HasSubstr(kWorker0)));
  EXPECT_EQ(world.cluster().master(kWorker0).usage().sessions, 0);
}

TEST(MasterTest, CreateSessionTakesEffectOnce) {
  SimulatedCluster world;
  CreateSessionRequest request;
  request.set_request_id("abc");
  const auto first = world.Start(world.master(), &MasterInterface::CreateSession, request);
  const auto second = world.Start(world.master(), &MasterInterface::CreateSession, request);
  world.Await(*first);
  world.Await(*second);
  const CreateSessionResponse third =
      world.Call(world.master(), &MasterInterface::CreateSession, request);
  EXPECT_FALSE(third.session_handle().empty());
  EXPECT_EQ(first->response.session_handle(), third.session_handle());
  EXPECT_EQ(second->response.session_handle(), third.session_handle());
  EXPECT_EQ(world.cluster().master(kWorker0).usage().sessions, 1);
  request.set_request_id("abd");
  const CreateSessionResponse other =
      world.Call(world.master(), &MasterInterface::CreateSession, request);
  EXPECT_NE(other.session_handle(), third.session_handle());
}

TEST(MasterTest, AnExtensionIsAddedOnce) {
  SimulatedCluster world;
  TestSession session(world, ParseGraphText(kTrainingGraph));
  ExtendSessionRequest request;
  request.set_session_handle(session.handle());
  request.set_current_graph_version(1);
  NodeDef* node = request.mutable_graph_def()->add_node();
  node->set_name("twice");
  node->set_op("AddV2");
  node->add_input("w_value");
  node->add_input("w_value");
  const auto extend = [&](const ExtendSessionRequest& extension) {
    return world.Call(world.master(), &MasterInterface::ExtendSession, extension);
  };
  for (int i = 0; i < 2; ++i) {
    const ExtendSessionResponse response = extend(request);
    EXPECT_EQ(ToStatus(response.status()), absl::OkStatus());
    EXPECT_EQ(response.new_graph_version(), 2);
  }
  ASSERT_EQ(session.Run(kInit).status(), absl::OkStatus());
  EXPECT_EQ(session.Run(StepSignature{{}, {"twice:0"}, {}}).status(), absl::OkStatus());

  request.set_current_graph_version(5);
  const Status early = ToStatus(extend(request).status());
  EXPECT_EQ(early.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(early), HasSubstr("has version 2, but the extension is for version 5"));
  request.set_current_graph_version(2);
  node = request.mutable_graph_def()->mutable_node(0);
  node->set_name("bad");
  node->set_input(1, "nobody");
  const Status bad = ToStatus(extend(request).status());
  EXPECT_THAT(Message(bad), AllOf(HasSubstr("bad"), HasSubstr("nobody")));
  node->set_input(1, "twice");
  EXPECT_EQ(extend(request).new_graph_version(), 3) << "the failed one left no trace";
}

TEST(MasterTest, SessionsOfSeveralMastersShareVariables) {
  SimulatedCluster world;
  TestSession first(world, ParseGraphText(kTrainingGraph));
  TestSession second(world, world.master(kWorker1), ParseGraphText(kTrainingGraph));
  TestSession third(world, world.master(kPs), ParseGraphText(kTrainingGraph));
  ASSERT_EQ(first.Run(kInit).status(), absl::OkStatus());
  ASSERT_EQ(second.Run(kTrain, {Floats({0, 0, 0, 0})}).status(), absl::OkStatus());
  ASSERT_EQ(first.Close(), absl::OkStatus());
  const StatusOr<std::vector<Tensor>> w = third.Run(kRead);
  ASSERT_EQ(w.status(), absl::OkStatus());
  EXPECT_THAT(ValuesOf((*w)[0]), ElementsAre(0.2f, 0.2f, 0.2f, 0.2f));
}

TEST(MasterTest, AnIdleSessionEndsEverywhere) {
  SimulatedCluster world;
  SessionSettings settings;
  settings.set_idle_lease_seconds(30);
  TestSession session(world, ParseGraphText(kTrainingGraph), settings);
  ASSERT_EQ(session.Run(kInit).status(), absl::OkStatus());
  world.world.RunFor(absl::Seconds(25));
  ASSERT_EQ(session.Run(kInit).status(), absl::OkStatus());
  world.world.RunFor(absl::Seconds(25));
  EXPECT_EQ(world.cluster().master(kWorker0).usage().sessions, 1);
  world.world.RunFor(absl::Seconds(20));
  EXPECT_EQ(world.cluster().master(kWorker0).usage().sessions, 0);
  EXPECT_EQ(world.cluster().worker(kPs).usage().sessions, 0);
  const Status gone = session.Run(kInit).status();
  EXPECT_EQ(gone.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(Message(gone), AllOf(HasSubstr(session.handle()), HasSubstr(kWorker0)));
}

TEST(MasterTest, ASessionInUseOutlivesItsWorkersLease) {
  SimulatedCluster world;
  TestSession session(world, ParseGraphText(kTrainingGraph));
  ASSERT_EQ(session.Run(kInit).status(), absl::OkStatus());
  // Heartbeats go on although the client does nothing.
  world.world.RunFor(absl::Minutes(10));
  EXPECT_EQ(world.cluster().worker(kPs).usage().sessions, 1);
  EXPECT_EQ(session.Run(kRead).status(), absl::OkStatus());
}

TEST(MasterTest, WorkersForgetTheSessionsOfADeadMaster) {
  SimulatedCluster world;
  TestSession session(world, ParseGraphText(kTrainingGraph));
  ASSERT_EQ(session.Run(kInit).status(), absl::OkStatus());
  world.cluster().Kill(kWorker0);
  world.world.RunFor(absl::Minutes(2));
  EXPECT_EQ(world.cluster().worker(kPs).usage().sessions, 0);
  // Its variables are not the session's.
  EXPECT_THAT(world.cluster().device(kPs).resources().List(), ElementsAre("/w"));
}

TEST(MasterTest, AMasterThatWasRestartedSaysAborted) {
  SimulatedCluster world;
  TestSession session(world, ParseGraphText(kTrainingGraph));
  world.cluster().Kill(kWorker0);
  world.cluster().Start(kWorker0);
  const Status status = session.Run(kInit).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
}

TEST(MasterTest, ListsDevices) {
  SimulatedCluster world;
  world.cluster().Kill(kWorker1);
  for (const bool of_session : {false, true}) {
    ListDevicesRequest request;
    TestSession session(world, ParseGraphText(kTrainingGraph));
    if (of_session) request.set_session_handle(session.handle());
    const ListDevicesResponse response =
        world.Call(world.master(), &MasterInterface::ListDevices, request);
    ASSERT_EQ(response.local_device_size(), 1);
    EXPECT_EQ(response.local_device(0).name(), "/job:worker/task:0/device:CPU:0");
    ASSERT_EQ(response.remote_device_size(), 1);
    EXPECT_EQ(response.remote_device(0).name(), "/job:ps/task:0/device:CPU:0");
    EXPECT_EQ(response.remote_device(0).incarnation(), world.cluster().incarnation(kPs));
    EXPECT_THAT(response.absent_task(), ElementsAre(kWorker1));
  }
}

TEST(MasterTest, ResetDropsVariablesWhereFiltersSay) {
  SimulatedCluster world;
  TestSession session(world, ParseGraphText(kTrainingGraph));
  ASSERT_EQ(session.Run(kInit).status(), absl::OkStatus());
  const auto reset = [&](ResetRequest request) {
    return ToStatus(world.Call(world.master(), &MasterInterface::Reset, request).status());
  };
  ResetRequest request;
  request.add_device_filters("/job:worker");
  EXPECT_EQ(reset(request), absl::OkStatus());
  EXPECT_EQ(session.Run(kRead).status(), absl::OkStatus());
  request.Clear();
  request.add_container("other");
  EXPECT_EQ(reset(request), absl::OkStatus());
  EXPECT_EQ(session.Run(kRead).status(), absl::OkStatus());
  request.Clear();
  request.set_session_handle(session.handle());
  world.cluster().Kill(kWorker1);  // nothing to drop there
  EXPECT_EQ(reset(request), absl::OkStatus());
  EXPECT_EQ(session.Run(kRead).status().code(), absl::StatusCode::kFailedPrecondition);
  world.cluster().Stop(kPs);  // it may still hold some
  const Status silent = reset(request);
  EXPECT_FALSE(silent.ok());
  EXPECT_THAT(Message(silent), HasSubstr(kPs));
  world.cluster().Continue(kPs);
}

TEST(MasterTest, ASessionMayBringItsCluster) {
  SimulatedClusterOptions options;
  options.adjust_master = [](MasterOptions& master) {
    master.cluster = ClusterSpec();
    // Its address says nothing: the cluster writes it otherwise.
    master.address = [] { return "127.0.0.1:1"; };
  };
  SimulatedCluster world(options);
  // Without one, the master's own task is the cluster.
  TestSession alone(world, ParseGraphText(kFree));
  EXPECT_EQ(alone.Run(StepSignature{{}, {}, {"a_set"}}).status(), absl::OkStatus());
  SessionSettings settings;
  settings.set_cluster(world.cluster().spec().ToString());
  TestSession session(world, ParseGraphText(kTrainingGraph), settings);
  ASSERT_EQ(session.status(), absl::OkStatus());
  EXPECT_EQ(session.Run(kInit).status(), absl::OkStatus());
  EXPECT_EQ(session.Run(kTrain, {Floats({0, 0, 0, 0})}).status(), absl::OkStatus());

  settings.set_cluster("ps=ps0:1");
  const Status without = TestSession(world, ParseGraphText(kFree), settings).status();
  EXPECT_EQ(without.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(without), AllOf(HasSubstr("ps=ps0:1"), HasSubstr(kWorker0)));
  settings.set_cluster("ps");
  EXPECT_THAT(Message(TestSession(world, ParseGraphText(kFree), settings).status()),
              HasSubstr("the session's cluster"));
}

TEST(MasterTest, TheClusterTellsATaskItsName) {
  // The server was started as worker 0, and its address is that of ps 0 in the session's cluster.
  SimulatedClusterOptions options;
  options.jobs = {{"worker", 1}};
  options.adjust_master = [](MasterOptions& master) {
    master.cluster = ClusterSpec();
    master.address = [] { return "worker0:1"; };
  };
  SimulatedCluster world(options);
  SessionSettings settings;
  settings.set_cluster("ps=worker0:1");
  TestSession session(world, ParseGraphText(kTrainingGraph), settings);
  ASSERT_EQ(session.status(), absl::OkStatus());
  EXPECT_EQ(session.Run(kInit).status(), absl::OkStatus());
  const StatusOr<uint64_t> step = session.Prepare(kRead);
  ASSERT_EQ(step.status(), absl::OkStatus());
  const StatusOr<PlacementReport> report = ReportOf(world, session, *step);
  ASSERT_EQ(report.status(), absl::OkStatus());
  EXPECT_EQ(DeviceOf(*report, "w"), "/job:ps/task:0/device:CPU:0");
}

TEST(MasterTest, TheReportTellsWhatCrossedEachLink) {
  SimulatedCluster world;
  TestSession session(world, ParseGraphText(kTrainingGraph));
  ASSERT_EQ(session.Run(kInit).status(), absl::OkStatus());
  const StatusOr<uint64_t> train = session.Prepare(kTrain);
  ASSERT_EQ(train.status(), absl::OkStatus());
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(session.Run(*train, {Floats({0, 0, 0, 0})}).status(), absl::OkStatus());
  }
  const StatusOr<PlacementReport> report = ReportOf(world, session, *train);
  ASSERT_EQ(report.status(), absl::OkStatus());
  ASSERT_FALSE(report->links.empty());
  for (const PlacementReport::Link& link : report->links) {
    EXPECT_TRUE(link.crosses_tasks);
    EXPECT_EQ(link.measured_steps, 3);
    EXPECT_EQ(link.measured_payload_bytes, 3 * link.predicted_bytes)
        << link.source << " to " << link.destination;
    // Each tensor came with the header of its frame, and nothing else.
    const int64_t headers = link.measured_wire_bytes - link.measured_payload_bytes;
    EXPECT_GE(headers, 3 * 35 * link.tensors);
    EXPECT_LE(headers, 3 * (35 + 8 * kMaxRank) * link.tensors);
  }
  EXPECT_EQ(ReportOf(world, session, 77).status().code(), absl::StatusCode::kNotFound);
}

TEST(MasterTest, UnpreparedStepsShareABoundedCache) {
  SimulatedClusterOptions options;
  options.adjust_master = [](MasterOptions& master) { master.cached_plans = 3; };
  SimulatedCluster world(options);
  TestSession session(world, ParseGraphText(kTrainingGraph));
  ASSERT_EQ(session.Prepare(kInit).status(), absl::OkStatus());
  const auto run = [&](std::vector<std::string> targets) {
    RunStepRequest request;
    request.set_session_handle(session.handle());
    for (const std::string& target : targets) request.add_target(target);
    return world.Call(world.master(), &MasterInterface::RunStep, request).status_code();
  };
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(run({"init"}), 0);  // prepared, too
    for (const char* node : {"zero", "half", "rate", "w", "axes", "t0"}) EXPECT_EQ(run({node}), 0);
    EXPECT_EQ(run({"w", "zero"}), 0);
    EXPECT_EQ(run({"zero", "w"}), 0) << "the same plan";
  }
  world.world.RunFor(absl::Seconds(1));
  EXPECT_EQ(world.cluster().master(kWorker0).usage().plans, 4);
  EXPECT_LE(world.cluster().worker(kPs).usage().plans, 4);
}

TEST(MasterTest, CloseIsIdempotentAndFinal) {
  SimulatedCluster world;
  TestSession session(world, ParseGraphText(kTrainingGraph));
  const StatusOr<uint64_t> init = session.Prepare(kInit);
  ASSERT_EQ(init.status(), absl::OkStatus());
  EXPECT_EQ(session.Close(), absl::OkStatus());
  EXPECT_EQ(session.Close(), absl::OkStatus());
  EXPECT_EQ(session.Run(*init).status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(session.Prepare(kInit).status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(world.cluster().worker(kPs).usage().sessions, 0);
  EXPECT_EQ(world.cluster().worker(kPs).usage().plans, 0);
}

TEST(MasterTest, AnOpThatAWorkerLacksIsNamedWithTheWorker) {
  auto lacking = std::make_shared<OpRegistry>();
  for (const OpDef* op : TestOps()->All()) {
    if (op->name() != "Check") lacking->Add(*op);
  }
  SimulatedClusterOptions options;
  options.adjust_worker = [&](WorkerOptions& worker) {
    if (worker.task == kPs) worker.ops = lacking;
  };
  SimulatedCluster world(options);
  TestSession session(world, ParseGraphText(R"(
one = Const() {dtype=float, value=tensor(float[1]: 1)} @/job:ps
checked = Check(one) @/job:ps
)"));
  const Status status = session.Prepare({{}, {"checked:0"}, {}}).status();
  EXPECT_THAT(Message(status), AllOf(HasSubstr("Check"), HasSubstr(kPs)));
  EXPECT_EQ(world.cluster().worker(kPs).usage().plans, 0);
}

}  // namespace
}  // namespace millrace::testing
