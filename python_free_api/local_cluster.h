#ifndef PYTHON_FREE_API_LOCAL_CLUSTER_H_
#define PYTHON_FREE_API_LOCAL_CLUSTER_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/process.h"
#include "core/base/scheduler.h"

namespace millrace {

struct LocalClusterOptions {
  std::string server;                             // the millrace program
  std::vector<std::pair<std::string, int>> jobs;  // {"ps", 1}, {"worker", 2}
  std::string folder;                             // for what the servers report and print
  std::vector<std::string> flags;                 // more flags of each server
  absl::Duration start_timeout = absl::Seconds(30);
};

// Server processes on the loopback interface, each on a port of its own choice. They end with this
// process, however it ends.
class LocalCluster {
 public:
  // Starts all, and waits until each has reported its port. Errors name the task and show the end
  // of what it printed.
  static StatusOr<std::unique_ptr<LocalCluster>> Start(const LocalClusterOptions& options,
                                                       const Environment& environment);
  // Stops what still runs.
  ~LocalCluster();

  // "ps=127.0.0.1:4001;worker=127.0.0.1:4002,127.0.0.1:4003"
  const std::string& spec() const { return spec_; }
  // "grpc://127.0.0.1:4002"; empty if there is no such task.
  std::string target(absl::string_view job, int task) const;

  struct Task {
    std::string name;  // "/job:ps/task:0"
    int pid = 0;
    int exit_code = -1;  // -1 while it runs
    std::string log;     // path
  };
  std::vector<Task> tasks() const;
  // Asks all to end (SIGTERM), waits, kills those that do not within `patience`; then tasks() has
  // every exit code.
  void Stop(absl::Duration patience = absl::Seconds(5));

 private:
  struct Server {
    std::string job;
    int index;
    Task task;
    std::string ready_file;
    std::string address;
    std::unique_ptr<ChildProcess> process;
  };
  LocalCluster() = default;
  std::vector<Server> servers_;
  std::string spec_;
};

}  // namespace millrace

#endif  // PYTHON_FREE_API_LOCAL_CLUSTER_H_
