// Steps that do nothing leave nothing: memory of the servers stays flat, no step stays alive.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "distributed/cluster_spec.h"
#include "distributed/grpc/client.h"
#include "gtest/gtest.h"
#include "python_free_api/millrace.h"
#include "tests/cluster/cluster_harness.h"

namespace millrace {
namespace {

constexpr int64_t kGrowth = 5 << 20;

// --steps=200000 runs the long form.
int64_t steps = 20'000;

// A worker, asked what it holds.
class Probe {
 public:
  Probe(const std::string& task, const std::string& address, const Environment& environment)
      : worker_(GrpcWorkerFactory(Options(environment)).Connect(task, address)) {
    GetStatusRequest request;
    request.set_protocol_version(kProtocolVersion);
    GetStatusResponse response;
    Call([&](CallDone done) { worker_->GetStatus(&request, &response, {}, std::move(done)); });
    EXPECT_EQ(ToStatus(response.status()), Status());
    incarnation_ = response.incarnation();
  }

  HeartbeatResponse Ask() {
    HeartbeatRequest request;
    request.set_incarnation(incarnation_);
    HeartbeatResponse response;
    Call([&](CallDone done) { worker_->Heartbeat(&request, &response, {}, std::move(done)); });
    EXPECT_EQ(ToStatus(response.status()), Status());
    return response;
  }

 private:
  static GrpcCallerOptions Options(const Environment& environment) {
    GrpcCallerOptions options;
    options.environment = environment;
    return options;
  }
  static void Call(absl::FunctionRef<void(CallDone)> call) {
    Notification done;
    call([&](Status status) {
      EXPECT_EQ(status, Status());
      done.Notify();
    });
    done.Wait();
  }

  std::unique_ptr<WorkerInterface> worker_;
  uint64_t incarnation_ = 0;
};

TEST(NullStepsTest, LeaveNothing) {
  const std::vector<std::pair<std::string, int>> tasks = {{"ps", 0}, {"worker", 0}, {"worker", 1}};
  const auto cluster = HandStartedCluster::Start({{"ps", 1}, {"worker", 2}});
  ASSERT_NE(cluster, nullptr);
  StatusOr<std::unique_ptr<Runtime>> runtime = Runtime::Create();
  ASSERT_EQ(runtime.status(), Status());
  GraphBuilder b((*runtime)->ops());
  StepSignature signature;
  for (const auto& [job, task] : tasks) {
    auto scope = b.DeviceScope(TaskName(job, task));
    signature.targets.push_back(Group(b, {}).name());
  }
  SessionOptions options;
  options.target = cluster->target("worker", 0);
  StatusOr<std::unique_ptr<Session>> session = (*runtime)->OpenSession(b, options);
  ASSERT_EQ(session.status(), Status());
  StatusOr<std::shared_ptr<PreparedStep>> step = (*session)->Prepare(signature);
  ASSERT_EQ(step.status(), Status());

  std::vector<std::unique_ptr<Probe>> probes;
  for (const auto& [job, task] : tasks) {
    probes.push_back(std::make_unique<Probe>(TaskName(job, task), cluster->address(job, task),
                                             (*runtime)->environment()));
  }
  // Caches fill and pools grow to what they need: the master's take some 20,000 steps to.
  const int64_t warm_up = std::max<int64_t>(steps / 4, 20'000);
  std::vector<int64_t> resident;
  const Stopwatch watch;
  for (int64_t i = 0; i < warm_up + steps; ++i) {
    ASSERT_EQ((*session)->Run(**step, {}).status(), Status()) << "step " << i;
    if (i + 1 != warm_up) continue;
    for (const auto& probe : probes) resident.push_back(probe->Ask().resident_bytes());
  }
  std::printf("%d steps, %.0f us each\n", static_cast<int>(warm_up + steps),
              absl::ToDoubleMicroseconds(watch.elapsed()) / static_cast<double>(warm_up + steps));
  for (size_t i = 0; i < probes.size(); ++i) {
    const HeartbeatResponse now = probes[i]->Ask();
    const std::string name = TaskName(tasks[i].first, tasks[i].second);
    std::printf("%s: %.1f MB resident, grown by %.2f MB\n", name.c_str(),
                static_cast<double>(now.resident_bytes()) / (1 << 20),
                static_cast<double>(now.resident_bytes() - resident[i]) / (1 << 20));
    EXPECT_LT(now.resident_bytes() - resident[i], kGrowth) << name;
    EXPECT_EQ(now.live_steps(), 0) << name;
    EXPECT_EQ(now.buffered_bytes(), 0) << name;
  }
  EXPECT_EQ((*session)->Close(), Status());
}

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  millrace::Flags flags("null_steps_test", "Runs steps that do nothing over gRPC.");
  flags.Add("steps", &millrace::steps, "after a quarter as many, 20000 at least, to warm up");
  const millrace::Status status = flags.Parse(millrace::Arguments(argc, argv));
  if (!status.ok()) {
    std::fprintf(stderr, "null_steps_test: %s\n", std::string(status.message()).c_str());
    return 2;
  }
  return RUN_ALL_TESTS();
}
