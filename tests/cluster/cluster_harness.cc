#include "tests/cluster/cluster_harness.h"

#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/file.h"
#include "core/base/mutex.h"
#include "core/base/thread_pool.h"
#include "gtest/gtest.h"

namespace millrace {
namespace {

constexpr absl::Duration kLook = absl::Milliseconds(10);

// One for the test program; never destroyed, as processes of static objects may use it.
const Environment& TestEnvironment() {
  static HostEnvironment* const host = [] {
    ThreadPool::Options options;
    options.threads = 1;
    return new HostEnvironment(options);
  }();
  return host->environment();
}

// Where the build's files are: the test's runfiles, or the folder of outputs if it runs by hand.
std::string BuiltFile(absl::string_view path) {
  const char* const runfiles = std::getenv("TEST_SRCDIR");
  const char* const workspace = std::getenv("TEST_WORKSPACE");
  if (runfiles != nullptr && workspace != nullptr) {
    return JoinPath(JoinPath(runfiles, workspace), path);
  }
  return JoinPath(FolderOf(FolderOf(FolderOf(ProgramPath()))), path);
}

std::string EndOf(const std::string& text) {
  constexpr size_t kShown = 3000;
  return text.size() > kShown ? text.substr(text.size() - kShown) : text;
}

}  // namespace

std::string MillraceProgram() { return BuiltFile("tools/millrace/millrace"); }
std::string ExampleProgram() { return BuiltFile("python_free_api/examples/fashion_mnist"); }

std::string NewFolder() {
  std::string folder = JoinPath(testing::TempDir(), "cluster_XXXXXX");
  EXPECT_NE(mkdtemp(folder.data()), nullptr) << folder;
  return folder;
}

FileSystem& Files() { return *TestEnvironment().files; }

std::string Contents(const std::string& path) {
  if (!Files().Exists(path)) return "";
  const StatusOr<std::string> text = ReadFile(Files(), path);
  return text.ok() ? *text : "";
}

bool WaitForText(const std::string& path, absl::string_view text, absl::Duration timeout) {
  const Stopwatch watch;
  while (!absl::StrContains(Contents(path), text)) {
    if (watch.elapsed() > timeout) return false;
    Pause(kLook);
  }
  return true;
}

std::vector<int> FreePorts(int count) {
  std::vector<int> sockets;
  std::vector<int> ports;
  for (int i = 0; i < count; ++i) {
    const int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    EXPECT_EQ(bind(made, reinterpret_cast<sockaddr*>(&address), length), 0);
    EXPECT_EQ(getsockname(made, reinterpret_cast<sockaddr*>(&address), &length), 0);
    ports.push_back(ntohs(address.sin_port));
    sockets.push_back(made);
  }
  // Only now: else one port could be found twice.
  for (const int made : sockets) close(made);
  return ports;
}

Stopwatch::Stopwatch() : start_(TestEnvironment().clock->NowNanos()) {}
absl::Duration Stopwatch::elapsed() const {
  return absl::Nanoseconds(TestEnvironment().clock->NowNanos() - start_);
}

void Pause(absl::Duration duration) { Notification().WaitFor(duration); }

ForeignProcess::ForeignProcess(int pid)
    : pid_(pid), descriptor_(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))) {
  EXPECT_GE(descriptor_, 0) << "process " << pid << " does not run";
}
ForeignProcess::ForeignProcess(ForeignProcess&& other) noexcept
    : pid_(other.pid_), descriptor_(std::exchange(other.descriptor_, -1)) {}
ForeignProcess::~ForeignProcess() {
  if (descriptor_ >= 0) close(descriptor_);
}

bool ForeignProcess::EndsWithin(absl::Duration timeout) const {
  if (descriptor_ < 0) return true;
  pollfd ended = {descriptor_, POLLIN, 0};
  return poll(&ended, 1, static_cast<int>(absl::ToInt64Milliseconds(timeout))) == 1;
}

std::unique_ptr<ServerProcess> ServerProcess::Start(const std::string& folder,
                                                    const std::string& name,
                                                    std::vector<std::string> flags) {
  std::unique_ptr<ServerProcess> server(new ServerProcess);
  server->log_ = JoinPath(folder, StrCat(name, ".log"));
  server->ready_file_ = JoinPath(folder, StrCat(name, ".ready"));
  ChildProcess::Options options;
  options.arguments = {MillraceProgram(), "server", "--ready_file", server->ready_file_};
  options.arguments.insert(options.arguments.end(), flags.begin(), flags.end());
  options.output_file = server->log_;
  StatusOr<std::unique_ptr<ChildProcess>> process = ChildProcess::Start(options);
  EXPECT_EQ(process.status(), Status());
  if (!process.ok()) return nullptr;
  server->process_ = *std::move(process);
  return server;
}

StatusOr<std::string> ServerProcess::WaitReady(absl::Duration timeout) {
  const Stopwatch watch;
  while (!Files().Exists(ready_file_)) {
    // Waiting for its end is also the pause between two looks.
    const StatusOr<int> ended = process_->Wait(kLook);
    if (ended.ok()) return Unavailable("ended with code ", *ended, ": ", EndOf(log()));
    if (watch.elapsed() > timeout) return DeadlineExceeded("not ready: ", EndOf(log()));
  }
  const std::string ready = Contents(ready_file_);
  return std::string(absl::StripSuffix(ready, "\n"));
}

std::unique_ptr<HandStartedCluster> HandStartedCluster::Start(
    const std::vector<std::pair<std::string, int>>& jobs) {
  // Another process may take a port between its choice and its use.
  constexpr int kTries = 3;
  Status status;
  for (int i = 0; i < kTries; ++i) {
    std::unique_ptr<HandStartedCluster> cluster(new HandStartedCluster);
    status = cluster->StartAll(jobs);
    if (status.ok()) return cluster;
  }
  ADD_FAILURE() << status;
  return nullptr;
}

Status HandStartedCluster::StartAll(const std::vector<std::pair<std::string, int>>& jobs) {
  folder_ = NewFolder();
  int tasks = 0;
  for (const auto& [job, count] : jobs) tasks += count;
  const std::vector<int> ports = FreePorts(tasks);
  std::vector<std::string> parts;
  size_t next = 0;
  for (const auto& [job, count] : jobs) {
    std::vector<std::string> addresses;
    for (int task = 0; task < count; ++task) {
      addresses.push_back(StrCat("127.0.0.1:", ports[next++]));
      addresses_[{job, task}] = addresses.back();
    }
    parts.push_back(StrCat(job, "=", absl::StrJoin(addresses, ",")));
  }
  spec_ = absl::StrJoin(parts, ";");
  for (const auto& [key, address] : addresses_) {
    const auto& [job, task] = key;
    servers_[key] =
        ServerProcess::Start(folder_, StrCat(job, "-", task),
                             {"--cluster", spec_, "--job", job, "--task", StrCat(task)});
    if (servers_[key] == nullptr) return Internal("cannot start a process");
  }
  for (const auto& [key, server] : servers_) {
    MR_ASSIGN_OR_RETURN(const std::string address, server->WaitReady());
    if (address != addresses_[key])
      return Internal("asked for ", addresses_[key], ", got ", address);
  }
  return absl::OkStatus();
}

std::string HandStartedCluster::target(const std::string& job, int task) const {
  return StrCat("grpc://", address(job, task));
}

std::unique_ptr<ExampleProcess> ExampleProcess::Start(const std::string& folder,
                                                      std::vector<std::string> flags) {
  auto example = std::make_unique<ExampleProcess>();
  for (int i = 0; example->output_.empty() || Files().Exists(example->output_); ++i) {
    example->output_ = JoinPath(folder, StrCat("output-", i, ".txt"));
  }
  ChildProcess::Options options;
  options.arguments = {ExampleProgram(), "--out",           folder,
                       "--server",       MillraceProgram(), "--print_losses"};
  options.arguments.insert(options.arguments.end(), flags.begin(), flags.end());
  options.output_file = example->output_;
  StatusOr<std::unique_ptr<ChildProcess>> process = ChildProcess::Start(options);
  EXPECT_EQ(process.status(), Status());
  if (!process.ok()) return nullptr;
  example->process_ = *std::move(process);
  return example;
}

int ExampleProcess::Wait(absl::Duration timeout) {
  const StatusOr<int> code = process_->Wait(timeout);
  if (code.ok()) return *code;
  ADD_FAILURE() << "the example still runs after " << timeout << ": " << EndOf(output());
  process_->Signal(SIGKILL);
  (void)process_->Wait(kLong);
  return -1;
}

std::map<int, double> ExampleProcess::losses() const {
  std::map<int, double> losses;
  for (absl::string_view line : absl::StrSplit(output(), '\n')) {
    int step = 0;
    double loss = 0;
    if (std::sscanf(std::string(line).c_str(), "step %d loss %lf", &step, &loss) == 2) {
      losses[step] = loss;
    }
  }
  return losses;
}

std::vector<ForeignProcess> ExampleProcess::servers() const {
  std::vector<ForeignProcess> servers;
  for (absl::string_view line : absl::StrSplit(output(), '\n')) {
    int pid = 0;
    // "  /job:ps/task:0: process 4711, log ..."
    if (std::sscanf(std::string(line).c_str(), " /job:%*s process %d,", &pid) == 1) {
      servers.emplace_back(pid);
    }
  }
  return servers;
}

}  // namespace millrace
