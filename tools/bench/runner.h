#ifndef TOOLS_BENCH_RUNNER_H_
#define TOOLS_BENCH_RUNNER_H_

#include <memory>
#include <string>
#include <vector>

#include "core/base/process.h"
#include "core/base/scheduler.h"
#include "python_free_api/local_cluster.h"
#include "tools/bench/graphs.h"

namespace millrace::bench {

struct RunnerOptions {
  std::string millrace;                       // the millrace program
  std::string tensorflow_peer;                // the program that runs TensorFlow
  std::string tensorflow_library;             // "": no peer is measured
  std::string folder;                         // for graphs, runs, times, logs
  absl::Duration timeout = absl::Minutes(5);  // of one process
};

enum class System { kMillrace, kTensorflow };

// Servers of one system on the loopback interface.
class Servers {
 public:
  virtual ~Servers() = default;  // ends them
  virtual std::string target(const std::string& job, int task) const = 0;
  // For StepRun::cluster.
  virtual std::string cluster() const = 0;
  virtual std::vector<int> pids() const = 0;
};

// Runs steps in either system, each run in a process of its own. Not thread-safe.
class Runner {
 public:
  Runner(RunnerOptions options, const Environment& environment)
      : options_(std::move(options)), environment_(environment) {}

  bool has_peer() const { return !options_.tensorflow_library.empty(); }
  const Environment& environment() const { return environment_; }
  // As its library tells.
  StatusOr<std::string> TensorflowVersion();

  // Writes `graph` to a file of that name; run.graph is its path then.
  Status Save(const std::string& name, BenchGraph* graph);
  // `onednn`: whether TensorFlow may use oneDNN's kernels.
  StatusOr<StepTimes> Time(System system, const StepRun& run, bool onednn = false);
  // Starts servers and waits until each answers. With one thread each for kernels.
  StatusOr<std::unique_ptr<Servers>> Start(System system,
                                           const std::vector<std::pair<std::string, int>>& jobs);

 private:
  StatusOr<std::string> Capture(const std::vector<std::string>& arguments);
  std::map<std::string, std::string> TensorflowEnvironment(bool onednn) const;
  std::string NewPath(const std::string& name);

  RunnerOptions options_;
  const Environment& environment_;
  int files_ = 0;
};

}  // namespace millrace::bench

#endif  // TOOLS_BENCH_RUNNER_H_
