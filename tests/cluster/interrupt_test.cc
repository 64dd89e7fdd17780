// Ctrl-C, a killed parent, and going on afterwards.
#include <signal.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "core/io/checkpoint.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_harness.h"

namespace millrace {
namespace {

constexpr int kServers = 3;
constexpr absl::Duration kTimeout = absl::Minutes(3);
// By when all that was started has ended.
constexpr absl::Duration kPatience = absl::Seconds(5);

void ExpectGone(const std::vector<ForeignProcess>& processes) {
  const Stopwatch watch;
  for (const ForeignProcess& process : processes) {
    EXPECT_TRUE(process.EndsWithin(std::max(kPatience - watch.elapsed(), absl::ZeroDuration())))
        << "process " << process.pid() << " is left";
  }
}

// The example on servers that it starts, some steps on its way.
struct Running {
  std::string folder = NewFolder();
  std::unique_ptr<ExampleProcess> example;
  std::vector<ForeignProcess> servers;
};
Running StartAndTrain() {
  Running running;
  running.example = ExampleProcess::Start(running.folder, {"--cluster=start"});
  if (running.example == nullptr) return running;
  EXPECT_TRUE(WaitForText(running.example->output_path(), "step 3 loss", kTimeout))
      << running.example->output();
  running.servers = running.example->servers();
  EXPECT_EQ(running.servers.size(), kServers) << running.example->output();
  return running;
}

TEST(InterruptTest, SavesLeavesNoProcessAndIsResumed) {
  Running running = StartAndTrain();
  ASSERT_NE(running.example, nullptr);
  running.example->process().Signal(SIGINT);
  EXPECT_EQ(running.example->Wait(kTimeout), 130) << running.example->output();
  ExpectGone(running.servers);

  const std::map<int, double> before = running.example->losses();
  ASSERT_FALSE(before.empty());
  const int saved = before.rbegin()->first;
  const StatusOr<std::string> checkpoint = LatestCheckpoint(Files(), running.folder, "checkpoint");
  ASSERT_EQ(checkpoint.status(), Status());
  EXPECT_TRUE(absl::EndsWith(*checkpoint, StrCat("-", saved))) << *checkpoint;
  EXPECT_EQ(ReadCheckpoint(Files(), *checkpoint).status(), Status());

  const std::string steps = StrCat(saved + 5);
  const auto resumed =
      ExampleProcess::Start(running.folder, {"--cluster=start", "--resume", "--steps", steps});
  ASSERT_NE(resumed, nullptr);
  ASSERT_EQ(resumed->Wait(kTimeout), 0) << resumed->output();
  const auto uninterrupted =
      ExampleProcess::Start(NewFolder(), {"--cluster=start", "--steps", steps});
  ASSERT_NE(uninterrupted, nullptr);
  ASSERT_EQ(uninterrupted->Wait(kTimeout), 0) << uninterrupted->output();

  const std::map<int, double> losses = resumed->losses();
  const std::map<int, double> expected = uninterrupted->losses();
  ASSERT_EQ(losses.size(), 5) << resumed->output();
  EXPECT_EQ(losses.begin()->first, saved + 1);
  for (const auto& [step, loss] : losses) {
    ASSERT_TRUE(expected.contains(step));
    EXPECT_EQ(loss, expected.at(step)) << "step " << step;
  }
  for (const auto& [step, loss] : before) EXPECT_EQ(loss, expected.at(step)) << "step " << step;
}

// The terminal's Ctrl-C reaches the servers, too: they must live until the checkpoint is written.
TEST(InterruptTest, ServersLeaveCtrlCToTheirParent) {
  Running running = StartAndTrain();
  ASSERT_NE(running.example, nullptr);
  for (const ForeignProcess& server : running.servers) kill(server.pid(), SIGINT);
  running.example->process().Signal(SIGINT);
  EXPECT_EQ(running.example->Wait(kTimeout), 130) << running.example->output();
  ExpectGone(running.servers);
  EXPECT_EQ(LatestCheckpoint(Files(), running.folder, "checkpoint").status(), Status());
}

TEST(InterruptTest, AKilledParentTakesItsServersAlong) {
  Running running = StartAndTrain();
  ASSERT_NE(running.example, nullptr);
  running.example->process().Signal(SIGKILL);
  EXPECT_EQ(running.example->Wait(kTimeout), 128 + SIGKILL);
  ExpectGone(running.servers);
}

TEST(InterruptTest, AServerEndsCleanlyOnEitherSignal) {
  for (const int signal : {SIGTERM, SIGINT}) {
    const auto server = ServerProcess::Start(NewFolder(), "server", {});
    ASSERT_NE(server, nullptr);
    const StatusOr<std::string> address = server->WaitReady();
    ASSERT_EQ(address.status(), Status());
    EXPECT_TRUE(absl::StrContains(
        server->log(), StrCat("millrace server /job:localhost/task:0 listening on ", *address)))
        << server->log();
    server->process().Signal(signal);
    const StatusOr<int> code = server->process().Wait(kPatience);
    ASSERT_EQ(code.status(), Status());
    EXPECT_EQ(*code, 0) << server->log();
  }
}

}  // namespace
}  // namespace millrace
