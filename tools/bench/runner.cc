#include "tools/bench/runner.h"

#include <csignal>

#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "core/base/file.h"
#include "core/base/mutex.h"
#include "core/framework/graph.pb.h"
#include "core/graph/graph_def.h"
#include "tools/bench/tcp.h"

namespace millrace::bench {
namespace {

constexpr absl::Duration kPoll = absl::Milliseconds(5);

class MillraceServers final : public Servers {
 public:
  explicit MillraceServers(std::unique_ptr<LocalCluster> cluster) : cluster_(std::move(cluster)) {}
  std::string target(const std::string& job, int task) const override {
    return cluster_->target(job, task);
  }
  std::string cluster() const override { return cluster_->spec(); }
  std::vector<int> pids() const override {
    std::vector<int> pids;
    for (const LocalCluster::Task& task : cluster_->tasks()) pids.push_back(task.pid);
    return pids;
  }

 private:
  std::unique_ptr<LocalCluster> cluster_;
};

class TensorflowServers final : public Servers {
 public:
  std::map<std::pair<std::string, int>, std::string> addresses;
  std::vector<std::unique_ptr<ChildProcess>> processes;
  std::string spec;

  std::string target(const std::string& job, int task) const override {
    const auto found = addresses.find({job, task});
    return found == addresses.end() ? "" : StrCat("grpc://", found->second);
  }
  std::string cluster() const override { return spec; }
  std::vector<int> pids() const override {
    std::vector<int> pids;
    for (const auto& process : processes) pids.push_back(process->pid());
    return pids;
  }
};

}  // namespace

// Of an earlier run, a file would be taken for this one's.
std::string Runner::NewPath(const std::string& name) {
  const std::string path = JoinPath(options_.folder, StrCat(++files_, "-", name));
  (void)environment_.files->Remove(path);
  return path;
}

std::map<std::string, std::string> Runner::TensorflowEnvironment(bool onednn) const {
  return {{"TF_CPP_MIN_LOG_LEVEL", "3"}, {"TF_ENABLE_ONEDNN_OPTS", onednn ? "1" : "0"}};
}

StatusOr<std::string> Runner::TensorflowVersion() {
  const std::string output = NewPath("version.txt");
  MR_ASSIGN_OR_RETURN(
      const auto process,
      ChildProcess::Start({{options_.tensorflow_peer, options_.tensorflow_library, "version"},
                           TensorflowEnvironment(false),
                           output}));
  MR_ASSIGN_OR_RETURN(const int code, process->Wait(options_.timeout));
  MR_ASSIGN_OR_RETURN(std::string text, ReadFile(*environment_.files, output));
  if (code != 0) return FailedPrecondition("TensorFlow does not run here: ", text);
  return std::string(absl::StripSuffix(text, "\n"));
}

Status Runner::Save(const std::string& name, BenchGraph* graph) {
  GraphDef def;
  ExportGraphDef(graph->graph, &def);
  graph->run.graph = JoinPath(options_.folder, StrCat(name, ".pb"));
  MR_RETURN_IF_ERROR(environment_.files->CreateFolder(options_.folder));
  return WriteFile(*environment_.files, graph->run.graph, def.SerializeAsString());
}

StatusOr<StepTimes> Runner::Time(System system, const StepRun& run, bool onednn) {
  FileSystem& files = *environment_.files;
  const std::string run_path = NewPath("run.json");
  const std::string times_path = NewPath("times.json");
  const std::string log_path = NewPath("log.txt");
  MR_RETURN_IF_ERROR(WriteFile(files, run_path, run.ToJson()));
  ChildProcess::Options child;
  if (system == System::kMillrace) {
    child.arguments = {options_.millrace, "bench", "--step", run_path, "--times", times_path};
  } else {
    child.arguments = {options_.tensorflow_peer, options_.tensorflow_library, "step", run_path,
                       times_path};
    child.environment = TensorflowEnvironment(onednn);
  }
  child.output_file = log_path;
  MR_ASSIGN_OR_RETURN(const auto process, ChildProcess::Start(child));
  MR_ASSIGN_OR_RETURN(const int code, process->Wait(options_.timeout));
  if (code != 0) {
    return Internal(absl::StrJoin(child.arguments, " "), " ended with code ", code, ": ",
                    ReadFile(files, log_path).value_or(""));
  }
  MR_ASSIGN_OR_RETURN(const std::string text, ReadFile(files, times_path));
  return StepTimes::FromJson(text, times_path);
}

StatusOr<std::unique_ptr<Servers>> Runner::Start(
    System system, const std::vector<std::pair<std::string, int>>& jobs) {
  if (system == System::kMillrace) {
    LocalClusterOptions start;
    start.server = options_.millrace;
    start.jobs = jobs;
    start.folder = NewPath("servers");
    start.flags = {"--threads", "1"};
    MR_ASSIGN_OR_RETURN(auto cluster, LocalCluster::Start(start, environment_));
    return std::unique_ptr<Servers>(std::make_unique<MillraceServers>(std::move(cluster)));
  }
  auto servers = std::make_unique<TensorflowServers>();
  int count = 0;
  for (const auto& [job, tasks] : jobs) count += tasks;
  MR_ASSIGN_OR_RETURN(const std::vector<int> ports, FreePorts(count));
  std::vector<std::string> parts;
  size_t next = 0;
  for (const auto& [job, tasks] : jobs) {
    std::vector<std::string> addresses;
    for (int task = 0; task < tasks; ++task) {
      addresses.push_back(StrCat("127.0.0.1:", ports[next++]));
      servers->addresses[{job, task}] = addresses.back();
    }
    parts.push_back(StrCat(job, "=", absl::StrJoin(addresses, ",")));
  }
  servers->spec = absl::StrJoin(parts, ";");
  std::vector<std::string> ready;
  for (const auto& [key, address] : servers->addresses) {
    ready.push_back(NewPath("ready"));
    MR_ASSIGN_OR_RETURN(
        auto process,
        ChildProcess::Start({{options_.tensorflow_peer, options_.tensorflow_library, "serve",
                              servers->spec, key.first, StrCat(key.second), ready.back()},
                             TensorflowEnvironment(false),
                             NewPath("server.log")}));
    servers->processes.push_back(std::move(process));
  }
  const int64_t start = environment_.clock->NowNanos();
  for (const std::string& path : ready) {
    while (!environment_.files->Exists(path)) {
      if (absl::Nanoseconds(environment_.clock->NowNanos() - start) > options_.timeout) {
        return DeadlineExceeded("TensorFlow's servers were not ready within ",
                                absl::FormatDuration(options_.timeout));
      }
      Notification().WaitFor(kPoll);
    }
  }
  return std::unique_ptr<Servers>(std::move(servers));
}

}  // namespace millrace::bench
