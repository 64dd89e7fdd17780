#include "python_free_api/local_cluster.h"

#include <csignal>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "core/base/file.h"
#include "distributed/cluster_spec.h"

namespace millrace {
namespace {

constexpr absl::Duration kPoll = absl::Milliseconds(10);
constexpr size_t kShownLogBytes = 2000;

std::string EndOfLog(FileSystem& files, const std::string& path) {
  StatusOr<std::string> log = ReadFile(files, path);
  if (!log.ok() || log->empty()) return "it printed nothing";
  const size_t from = log->size() > kShownLogBytes ? log->size() - kShownLogBytes : 0;
  return StrCat("it printed:\n", log->substr(from));
}

}  // namespace

StatusOr<std::unique_ptr<LocalCluster>> LocalCluster::Start(const LocalClusterOptions& options,
                                                            const Environment& environment) {
  FileSystem& files = *environment.files;
  for (const auto& [job, count] : options.jobs) {
    if (count < 1) {
      return InvalidArgument("job '", job, "' of a cluster needs at least one task, but gets ",
                             count);
    }
  }
  MR_RETURN_IF_ERROR(files.CreateFolder(options.folder));
  std::unique_ptr<LocalCluster> cluster(new LocalCluster);
  for (const auto& [job, count] : options.jobs) {
    for (int i = 0; i < count; ++i) {
      Server server;
      server.job = job;
      server.index = i;
      server.task.name = TaskName(job, i);
      const std::string base = JoinPath(options.folder, StrCat(job, "-", i));
      server.task.log = StrCat(base, ".log");
      server.ready_file = StrCat(base, ".ready");
      // A file of an earlier run would be taken for this one's.
      if (files.Exists(server.ready_file)) MR_RETURN_IF_ERROR(files.Remove(server.ready_file));
      ChildProcess::Options child;
      child.arguments = {options.server,
                         "server",
                         "--job",
                         job,
                         "--task",
                         StrCat(i),
                         "--port",
                         "0",
                         "--die_with_parent",
                         "--ready_file",
                         server.ready_file};
      child.arguments.insert(child.arguments.end(), options.flags.begin(), options.flags.end());
      child.output_file = server.task.log;
      StatusOr<std::unique_ptr<ChildProcess>> process = ChildProcess::Start(child);
      if (!process.ok()) return Annotate(process.status(), StrCat("starting ", server.task.name));
      server.process = *std::move(process);
      server.task.pid = server.process->pid();
      cluster->servers_.push_back(std::move(server));
    }
  }
  const int64_t start = environment.clock->NowNanos();
  for (Server& server : cluster->servers_) {
    while (!files.Exists(server.ready_file)) {
      // Waiting for its end is also the pause between two looks.
      StatusOr<int> ended = server.process->Wait(kPoll);
      if (ended.ok()) {
        return Unavailable("server ", server.task.name, " ended with code ", *ended,
                           " before it was ready; ", EndOfLog(files, server.task.log));
      }
      if (absl::Nanoseconds(environment.clock->NowNanos() - start) > options.start_timeout) {
        return DeadlineExceeded("server ", server.task.name, " was not ready within ",
                                absl::FormatDuration(options.start_timeout), "; ",
                                EndOfLog(files, server.task.log));
      }
    }
    MR_ASSIGN_OR_RETURN(std::string ready, ReadFile(files, server.ready_file));
    server.address = std::string(absl::StripAsciiWhitespace(ready));
  }
  ClusterSpec spec;
  for (const auto& [job, count] : options.jobs) {
    std::vector<std::string> addresses;
    for (const Server& server : cluster->servers_) {
      if (server.job == job) addresses.push_back(server.address);
    }
    MR_RETURN_IF_ERROR(spec.AddJob(job, std::move(addresses)));
  }
  cluster->spec_ = spec.ToString();
  return cluster;
}

LocalCluster::~LocalCluster() { Stop(); }

std::string LocalCluster::target(absl::string_view job, int task) const {
  for (const Server& server : servers_) {
    if (server.job == job && server.index == task) return StrCat("grpc://", server.address);
  }
  return "";
}

std::vector<LocalCluster::Task> LocalCluster::tasks() const {
  std::vector<Task> tasks;
  for (const Server& server : servers_) {
    Task task = server.task;
    if (task.exit_code < 0) task.exit_code = server.process->PollExitCode();
    tasks.push_back(std::move(task));
  }
  return tasks;
}

void LocalCluster::Stop(absl::Duration patience) {
  for (Server& server : servers_) {
    if (server.process->PollExitCode() < 0) server.process->Signal(SIGTERM);
  }
  for (Server& server : servers_) {
    StatusOr<int> code = server.process->Wait(patience);
    if (!code.ok()) {
      server.process->Signal(SIGKILL);
      code = server.process->Wait(patience);
    }
    server.task.exit_code = code.ok() ? *code : -1;
  }
}

}  // namespace millrace
