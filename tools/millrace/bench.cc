// millrace bench: measures this build, beside TensorFlow if wanted.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "core/base/file.h"
#include "core/base/process.h"
#include "core/base/thread_pool.h"
#include "python_free_api/version.h"
#include "tools/bench/millrace_system.h"
#include "tools/bench/suite.h"
#include "tools/millrace/command.h"

namespace millrace {
namespace {

constexpr char kLibrary[] = "libtensorflow_cc.so.2";

struct Options {
  std::string suite = "first";
  bool peers = false;
  std::string tensorflow;
  std::string only;
  int64_t rounds = 3;
  double seconds = 1;
  std::string folder = "/tmp/millrace-bench";
  std::string out;
  std::string json;
  std::string step;
  std::string times;
};

// The library itself, or the one in a folder, or the one of the environment that tools/interop
// makes.
StatusOr<std::string> FindTensorflow(FileSystem& files, const std::string& given) {
  if (!given.empty()) {
    const std::string path = absl::StrContains(given, ".so") ? given : JoinPath(given, kLibrary);
    if (files.Exists(path)) return path;
    return NotFound("--tensorflow: there is no ", path);
  }
  const char* const home = std::getenv("HOME");
  const std::string libraries =
      JoinPath(home == nullptr ? "" : home, ".cache/millrace-interop/venv/lib");
  for (const std::string& version : files.List(libraries).value_or(std::vector<std::string>())) {
    const std::string path =
        StrCat(libraries, "/", version, "/site-packages/tensorflow/", kLibrary);
    if (files.Exists(path)) return path;
  }
  return NotFound(
      "no TensorFlow to measure: give --tensorflow FOLDER (of the Python package, with ", kLibrary,
      "), or run tools/interop once, which installs it under ", libraries);
}

Status TimeStep(const Options& options, const Environment& environment) {
  FileSystem& files = *environment.files;
  if (options.times.empty()) return InvalidArgument("--step needs --times, the file to write");
  MR_ASSIGN_OR_RETURN(const std::string text, ReadFile(files, options.step));
  MR_ASSIGN_OR_RETURN(const bench::StepRun run, bench::StepRun::FromJson(text, options.step));
  MR_ASSIGN_OR_RETURN(const bench::StepTimes times, bench::TimeMillrace(run, *environment.clock));
  return WriteFile(files, options.times, times.ToJson());
}

Status WriteReport(FileSystem& files, const Options& options, const std::string& peer,
                   const std::vector<bench::Row>& rows) {
  if (!options.json.empty()) {
    MR_RETURN_IF_ERROR(WriteFile(files, options.json, bench::ToJson(rows)));
  }
  if (options.out.empty()) return absl::OkStatus();
  std::string document;
  if (files.Exists(options.out)) {
    MR_ASSIGN_OR_RETURN(document, ReadFile(files, options.out));
  }
  const std::string text =
      StrCat("Millrace ", kVersion, peer.empty() ? "" : StrCat(" beside TensorFlow ", peer), ", ",
             options.rounds, " rounds in turn. Median (10th percentile; samples).\n\n",
             bench::ToMarkdown(rows));
  return WriteFile(files, options.out,
                   bench::ReplaceSection(document, StrCat("suite ", options.suite), text));
}

Status Bench(const Options& options) {
  ThreadPool::Options threads;
  threads.threads = 1;
  const HostEnvironment host(threads);
  FileSystem& files = *host.environment().files;
  if (!options.step.empty()) return TimeStep(options, host.environment());
  if (options.suite != "first") {
    return InvalidArgument("there is no suite '", options.suite, "'; there is 'first'");
  }
  if (options.rounds < 1 || options.rounds > 1000 || !(options.seconds > 0)) {
    return InvalidArgument("--rounds must be from 1 to 1000 and --seconds above 0, but are ",
                           options.rounds, " and ", options.seconds);
  }
  bench::RunnerOptions runner_options;
  runner_options.millrace = ProgramPath();
  runner_options.tensorflow_peer =
      JoinPath(FolderOf(ProgramPath()), "../bench/tensorflow/tensorflow_peer");
  runner_options.folder = options.folder;
  std::string peer;
  if (options.peers) {
    MR_ASSIGN_OR_RETURN(runner_options.tensorflow_library,
                        FindTensorflow(files, options.tensorflow));
    if (!files.Exists(runner_options.tensorflow_peer)) {
      return FailedPrecondition("--peers needs ", runner_options.tensorflow_peer,
                                ": bazel build //tools/bench/...");
    }
  }
  bench::Runner runner(runner_options, host.environment());
  MR_RETURN_IF_ERROR(files.CreateFolder(options.folder));
  if (options.peers) {
    MR_ASSIGN_OR_RETURN(peer, runner.TensorflowVersion());
  }
  bench::SuiteOptions suite;
  suite.rounds = static_cast<int>(options.rounds);
  suite.seconds = options.seconds;
  suite.only = options.only;
  const auto show = [](const bench::Row& row) {
    std::string line = absl::StrFormat("%-62s %9.2f %s", row.name, row.ours.median, row.unit);
    if (!row.peer_name.empty()) {
      absl::StrAppendFormat(&line, "  %s %.2f  ratio %.2f", row.peer_name, row.peer.median,
                            row.ratio());
    }
    if (row.aim > 0) {
      absl::StrAppendFormat(&line, " (aim %.2f%s)", row.aim, row.met() ? "" : ", missed");
    }
    std::puts(line.c_str());
    std::fflush(stdout);
  };
  MR_ASSIGN_OR_RETURN(const std::vector<bench::Row> rows,
                      bench::RunFirstSuite(runner, suite, show));
  return WriteReport(files, options, peer, rows);
}

}  // namespace

int BenchCommand(const std::vector<std::string>& arguments) {
  constexpr char kName[] = "millrace bench";
  Options options;
  Flags flags(
      kName,
      "Measures what a node, a step, a byte over the network and a training step cost; with "
      "--peers\nbeside TensorFlow on the same graphs, in turns. Prints a ratio a row: below "
      "1 is faster than\nthe peer.\n\n"
      "  millrace bench --suite first --peers -o docs/benchmarks.md");
  flags.Add("suite", &options.suite, "the rows to measure: 'first'");
  flags.Add("peers", &options.peers, "measure TensorFlow, too (its C API, in the fastest setting)");
  flags.Add("tensorflow", &options.tensorflow,
            "TensorFlow's library, or the folder with it; '': that of tools/interop");
  flags.Add("only", &options.only,
            "groups whose name has this: executor, feeds, null_step, variable, training, "
            "large_graph, server");
  flags.Add("rounds", &options.rounds, "times that each system is measured");
  flags.Add("seconds", &options.seconds, "of steps in each round");
  flags.Add("folder", &options.folder, "for graphs and logs");
  flags.Add("out", &options.out, "write the table into that file of Markdown; -o for short");
  flags.Add("json", &options.json, "write the figures there");
  flags.Add("step", &options.step, "only time the one step that this file describes");
  flags.Add("times", &options.times, "where --step leaves its times");
  return RunCommand(kName, arguments, flags, [&] { return Bench(options); });
}

}  // namespace millrace
