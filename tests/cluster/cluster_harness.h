#ifndef TESTS_CLUSTER_CLUSTER_HARNESS_H_
#define TESTS_CLUSTER_CLUSTER_HARNESS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/process.h"
#include "core/base/scheduler.h"
#include "core/base/status.h"

// Real processes: `millrace server` and the Fashion-MNIST example, started, watched and ended. All
// waiting has a time limit, so that a test ends whatever hangs.
namespace millrace {

// Only a failure takes that long.
inline constexpr absl::Duration kLong = absl::Seconds(60);

// The built programs.
std::string MillraceProgram();
std::string ExampleProgram();

// A new, empty folder for one test.
std::string NewFolder();

// The files of the operating system.
FileSystem& Files();
// All that is in a file; "" if there is none (yet).
std::string Contents(const std::string& path);
// Waits until the file holds `text`; false if it did not within `timeout`.
bool WaitForText(const std::string& path, absl::string_view text, absl::Duration timeout = kLong);

// Ports of the loopback interface that were free a moment ago.
std::vector<int> FreePorts(int count);

// The time since it was made, for measured bounds.
class Stopwatch {
 public:
  Stopwatch();
  absl::Duration elapsed() const;

 private:
  int64_t start_;
};
// Lets the other processes go on for a while.
void Pause(absl::Duration duration);

// A process that is nobody's child here: a server that the example started.
class ForeignProcess {
 public:
  // REQUIRES: it runs now.
  explicit ForeignProcess(int pid);
  ForeignProcess(ForeignProcess&& other) noexcept;
  ~ForeignProcess();
  int pid() const { return pid_; }
  // Whether it ended, at the latest after so long. What is left to be reaped has ended.
  bool EndsWithin(absl::Duration timeout) const;

 private:
  int pid_;
  int descriptor_;  // follows the process, not whoever gets its pid next
};

// `millrace server` with a log of its own.
class ServerProcess {
 public:
  // Starts "millrace server <flags> --ready_file ..." in `folder`; `name` is for the files there.
  static std::unique_ptr<ServerProcess> Start(const std::string& folder, const std::string& name,
                                              std::vector<std::string> flags);
  // Its address once it answers; an error, with the end of its log, if it ended or was not ready.
  StatusOr<std::string> WaitReady(absl::Duration timeout = kLong);
  ChildProcess& process() { return *process_; }
  std::string log() const { return Contents(log_); }

 private:
  ServerProcess() = default;
  std::unique_ptr<ChildProcess> process_;
  std::string log_;
  std::string ready_file_;
};

// Servers started by hand, as a user does: each with the whole cluster spec.
class HandStartedCluster {
 public:
  // {{"ps", 1}, {"worker", 2}}; all answer when it returns. Null, with a failure of the test, if
  // they do not.
  static std::unique_ptr<HandStartedCluster> Start(
      const std::vector<std::pair<std::string, int>>& jobs);
  const std::string& spec() const { return spec_; }
  std::string address(const std::string& job, int task) const { return addresses_.at({job, task}); }
  // "grpc://127.0.0.1:7001"
  std::string target(const std::string& job, int task) const;
  ServerProcess& server(const std::string& job, int task) { return *servers_.at({job, task}); }

 private:
  using Key = std::pair<std::string, int>;
  Status StartAll(const std::vector<std::pair<std::string, int>>& jobs);
  std::string folder_;
  std::string spec_;
  std::map<Key, std::string> addresses_;
  std::map<Key, std::unique_ptr<ServerProcess>> servers_;
};

// The Fashion-MNIST example.
class ExampleProcess {
 public:
  // Runs with "--out <folder>" and these flags; its output goes to a file that is new each time.
  static std::unique_ptr<ExampleProcess> Start(const std::string& folder,
                                               std::vector<std::string> flags);
  ChildProcess& process() { return *process_; }
  const std::string& output_path() const { return output_; }
  std::string output() const { return Contents(output_); }
  // The exit code, -1 if it still ran after `timeout` (and was killed then).
  int Wait(absl::Duration timeout);
  // Losses by step, from lines "step 12 loss 0.345".
  std::map<int, double> losses() const;
  // The servers that it says it started.
  std::vector<ForeignProcess> servers() const;

 private:
  std::unique_ptr<ChildProcess> process_;
  std::string output_;
};

}  // namespace millrace

#endif  // TESTS_CLUSTER_CLUSTER_HARNESS_H_
