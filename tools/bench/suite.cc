#include "tools/bench/suite.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "python_free_api/runtime.h"
#include "tools/bench/tcp.h"

namespace millrace::bench {
namespace {

using Samples = std::vector<double>;

void Append(Samples* to, const Samples& from) { to->insert(to->end(), from.begin(), from.end()); }

// Measures groups of rows, one after the other.
class Suite {
 public:
  Suite(Runner& runner, const SuiteOptions& options, absl::FunctionRef<void(const Row&)> on_row)
      : runner_(runner), options_(options), on_row_(on_row) {}

  Status Run(const OpsPtr& ops) {
    ops_ = ops;
    using Group = Status (Suite::*)();
    const std::pair<const char*, Group> groups[] = {
        {"executor", &Suite::Executor},  {"feeds", &Suite::Feeds},
        {"null_step", &Suite::NullStep}, {"variable", &Suite::Variable},
        {"training", &Suite::Training},  {"large_graph", &Suite::LargeGraph},
        {"server", &Suite::Server},
    };
    for (const auto& [name, group] : groups) {
      if (absl::StrContains(name, options_.only)) MR_RETURN_IF_ERROR((this->*group)());
    }
    return absl::OkStatus();
  }

  std::vector<Row> rows;

 private:
  // What the rounds gave: ours, and of the peer's settings the one with the smallest median.
  struct Compared {
    std::vector<StepTimes> ours, peer;
    std::string setting;
  };

  void Add(Row row) {
    on_row_(row);
    rows.push_back(std::move(row));
  }

  static Samples Steps(const std::vector<StepTimes>& rounds) {
    Samples samples;
    for (const StepTimes& times : rounds) Append(&samples, times.steps);
    return samples;
  }
  static Samples Each(const std::vector<StepTimes>& rounds,
                      double (*seconds)(const StepTimes& times)) {
    Samples samples;
    for (const StepTimes& times : rounds) samples.push_back(seconds(times));
    return samples;
  }

  // Ours and each of the peer's `settings` in turn, for all rounds. `ours` and `peer` are the same
  // step; they may run on different servers.
  StatusOr<Compared> Compare(StepRun ours, StepRun peer, const std::vector<std::string>& settings,
                             bool onednn = false) {
    ours.seconds = peer.seconds = options_.seconds;
    Compared compared;
    std::vector<std::vector<StepTimes>> by_setting(settings.size());
    for (int round = 0; round < options_.rounds; ++round) {
      MR_ASSIGN_OR_RETURN(StepTimes times, runner_.Time(System::kMillrace, ours));
      compared.ours.push_back(std::move(times));
      if (!runner_.has_peer()) continue;
      for (size_t i = 0; i < settings.size(); ++i) {
        peer.setting = settings[i];
        MR_ASSIGN_OR_RETURN(times, runner_.Time(System::kTensorflow, peer, onednn));
        MR_RETURN_IF_ERROR(CheckEqual(compared.ours[0], times));
        by_setting[i].push_back(std::move(times));
      }
    }
    for (size_t i = 0; runner_.has_peer() && i < settings.size(); ++i) {
      if (compared.peer.empty() ||
          Summarize(Steps(by_setting[i])).median < Summarize(Steps(compared.peer)).median) {
        compared.peer = by_setting[i];
        compared.setting = settings[i];
      }
    }
    return compared;
  }
  StatusOr<Compared> Compare(const StepRun& run, const std::vector<std::string>& settings,
                             bool onednn = false) {
    return Compare(run, run, settings, onednn);
  }

  // A system that computes something else is no peer.
  static Status CheckEqual(const StepTimes& ours, const StepTimes& peer) {
    if (std::abs(ours.first_value - peer.first_value) <=
        1e-4 * std::max(1.0, std::abs(ours.first_value))) {
      return absl::OkStatus();
    }
    return Internal("the first step gave ", ours.first_value, ", but the peer's ",
                    peer.first_value);
  }

  void AddRow(std::string name, std::string unit, double per, double aim, const Compared& compared,
              const Samples& ours, const Samples& peer) {
    Row row;
    row.name = std::move(name);
    row.unit = std::move(unit);
    row.aim = aim;
    row.ours = Summarize(ours, per);
    if (!peer.empty()) {
      row.peer_name =
          compared.setting.empty() ? "TensorFlow" : StrCat("TensorFlow, ", compared.setting);
      row.peer = Summarize(peer, per);
    }
    Add(std::move(row));
  }
  void AddSteps(std::string name, std::string unit, double per, double aim,
                const Compared& compared) {
    AddRow(std::move(name), std::move(unit), per, aim, compared, Steps(compared.ours),
           Steps(compared.peer));
  }

  Status Executor() {
    constexpr int kChain = 1000;
    const std::vector<std::string> settings = {"", "caller_runs", "single_threaded"};
    MR_ASSIGN_OR_RETURN(BenchGraph chain, AddChain(ops_, kChain));
    chain.run.second_fetch.clear();
    MR_RETURN_IF_ERROR(runner_.Save("chain", &chain));
    MR_ASSIGN_OR_RETURN(Compared compared, Compare(chain.run, settings));
    AddSteps("node of a chain of 1,000 scalar adds, 1 thread", "ns", kChain * 1e-9, 0.5, compared);
    for (const auto& [width, depth] : {std::pair(16, 1024), std::pair(1024, 16)}) {
      const std::string name = StrCat("no-op graph ", width, "x", depth);
      MR_ASSIGN_OR_RETURN(BenchGraph graph, NoOpGraph(ops_, width, depth));
      MR_RETURN_IF_ERROR(runner_.Save(StrCat("noop-", width, "x", depth), &graph));
      MR_ASSIGN_OR_RETURN(compared, Compare(graph.run, settings));
      AddSteps(StrCat("node of a ", name, ", 1 thread"), "ns", graph.graph.num_ids() * 1e-9, 1.0,
               compared);
    }
    return absl::OkStatus();
  }

  Status Feeds() {
    for (const int count : {1, 100}) {
      MR_ASSIGN_OR_RETURN(BenchGraph graph, FeedAndFetch(ops_, count));
      MR_RETURN_IF_ERROR(runner_.Save(StrCat("feeds-", count), &graph));
      MR_ASSIGN_OR_RETURN(const Compared compared, Compare(graph.run, {"caller_runs"}));
      AddSteps(
          StrCat("in-process step, ", count, count == 1 ? " feed and fetch" : " feeds and fetches"),
          "µs", 1e-6, 0.7, compared);
    }
    return absl::OkStatus();
  }

  // Servers of both systems; the peer's only if it is measured.
  struct BothServers {
    std::unique_ptr<Servers> ours, peer;
  };
  StatusOr<BothServers> StartBoth(const std::vector<std::pair<std::string, int>>& jobs) {
    BothServers servers;
    MR_ASSIGN_OR_RETURN(servers.ours, runner_.Start(System::kMillrace, jobs));
    if (runner_.has_peer()) {
      MR_ASSIGN_OR_RETURN(servers.peer, runner_.Start(System::kTensorflow, jobs));
    }
    return servers;
  }
  static StepRun On(const Servers* servers, StepRun run) {
    if (servers == nullptr) return run;
    run.target = servers->target("worker", 0);
    run.cluster = servers->cluster();
    return run;
  }

  Status NullStep() {
    MR_ASSIGN_OR_RETURN(const BothServers servers, StartBoth({{"worker", 4}}));
    for (const int tasks : {1, 2, 4}) {
      MR_ASSIGN_OR_RETURN(BenchGraph graph, NoOpOnTasks(ops_, tasks));
      MR_RETURN_IF_ERROR(runner_.Save(StrCat("null-", tasks), &graph));
      MR_ASSIGN_OR_RETURN(
          const Compared compared,
          Compare(On(servers.ours.get(), graph.run), On(servers.peer.get(), graph.run), {""}));
      AddSteps(StrCat("null step over gRPC from another process, ", tasks,
                      tasks == 1 ? " task" : " tasks"),
               "µs", 1e-6, 0.6, compared);
    }
    return absl::OkStatus();
  }

  Status Variable() {
    constexpr int64_t kSmall = 1 << 10, kLarge = 25000000;
    MR_ASSIGN_OR_RETURN(const BothServers servers, StartBoth({{"ps", 1}, {"worker", 1}}));
    for (const int64_t floats : {kSmall, kLarge}) {
      MR_ASSIGN_OR_RETURN(BenchGraph graph, VariableToWorker(ops_, floats));
      MR_RETURN_IF_ERROR(runner_.Save(StrCat("variable-", floats), &graph));
      MR_ASSIGN_OR_RETURN(
          const Compared compared,
          Compare(On(servers.ours.get(), graph.run), On(servers.peer.get(), graph.run), {""}));
      if (floats == kSmall) {
        AddSteps("4 KB variable from ps to worker", "µs", 1e-6, 0.6, compared);
        continue;
      }
      AddSteps("100 MB variable from ps to worker", "ms", 1e-3, 1.0 / 3, compared);
      Samples tcp;
      for (int round = 0; round < options_.rounds; ++round) {
        MR_ASSIGN_OR_RETURN(const Samples times, TimeTcp(4 * floats, 10, runner_.environment()));
        Append(&tcp, times);
      }
      Row row = rows.back();
      row.peer_name = "plain TCP";
      row.peer = Summarize(tcp, 1e-3);
      row.aim = 1 / 0.6;
      Add(std::move(row));
    }
    return absl::OkStatus();
  }

  Status Training() {
    const std::pair<Model, const char*> models[] = {{Model::kMlp, "MLP 784-512-512-10"},
                                                    {Model::kLeNet5, "LeNet-5 (6, 16)"},
                                                    {Model::kLeNet, "LeNet (32, 64, 1024)"}};
    for (const auto& [model, name] : models) {
      MR_ASSIGN_OR_RETURN(BenchGraph graph, TrainingStep(ops_, model));
      MR_RETURN_IF_ERROR(runner_.Save(StrCat("training-", static_cast<int>(model)), &graph));
      for (const int threads : {1, 2}) {
        graph.run.threads = threads;
        MR_ASSIGN_OR_RETURN(const Compared compared,
                            Compare(graph.run, {"", "optimized"}, /*onednn=*/true));
        AddSteps(StrCat("training step, ", name, ", batch 64, ", threads,
                        threads == 1 ? " thread" : " threads"),
                 "ms", 1e-3, 1.1, compared);
      }
    }
    return absl::OkStatus();
  }

  Status LargeGraph() {
    MR_ASSIGN_OR_RETURN(BenchGraph graph, AddChain(ops_, 100000));
    MR_RETURN_IF_ERROR(runner_.Save("large", &graph));
    graph.run.warm_up = 0;
    graph.run.most_steps = 3;
    MR_ASSIGN_OR_RETURN(const Compared compared, Compare(graph.run, {"", "single_threaded"}));
    const auto first = [](const StepTimes& times) { return times.load + times.first; };
    const auto second = [](const StepTimes& times) { return times.second; };
    AddRow("100,000 nodes: load to the end of the first step", "s", 1, 0.3, compared,
           Each(compared.ours, first), Each(compared.peer, first));
    AddRow("100,000 nodes: first step of a second fetch", "s", 1, 0.3, compared,
           Each(compared.ours, second), Each(compared.peer, second));
    return absl::OkStatus();
  }

  // Seconds from the start of three servers to the end of a client's first step; their resident
  // memory in between goes to `megabytes`.
  StatusOr<double> Launch(System system, const StepRun& run, Samples* megabytes) {
    const Clock& clock = *runner_.environment().clock;
    const int64_t start = clock.NowNanos();
    MR_ASSIGN_OR_RETURN(const std::unique_ptr<Servers> servers,
                        runner_.Start(system, {{"ps", 1}, {"worker", 2}}));
    const int64_t ready = clock.NowNanos();
    for (const int pid : servers->pids()) {
      megabytes->push_back(static_cast<double>(ResidentBytes(pid)) * 1e-6);
    }
    const int64_t looked = clock.NowNanos() - ready;
    MR_RETURN_IF_ERROR(runner_.Time(system, On(servers.get(), run)).status());
    return static_cast<double>(clock.NowNanos() - start - looked) * 1e-9;
  }

  Status Server() {
    MR_ASSIGN_OR_RETURN(BenchGraph graph, NoOpOnTasks(ops_, 2));
    MR_RETURN_IF_ERROR(runner_.Save("launch", &graph));
    graph.run.warm_up = 0;
    graph.run.most_steps = 0;
    Samples ours, peer, our_memory, peer_memory;
    for (int round = 0; round < options_.rounds; ++round) {
      MR_ASSIGN_OR_RETURN(double seconds, Launch(System::kMillrace, graph.run, &our_memory));
      ours.push_back(seconds);
      if (!runner_.has_peer()) continue;
      MR_ASSIGN_OR_RETURN(seconds, Launch(System::kTensorflow, graph.run, &peer_memory));
      peer.push_back(seconds);
    }
    AddRow("memory of an idle server", "MB", 1, 0, {}, our_memory, peer_memory);
    AddRow("launch of three servers to a client's first step", "s", 1, 0.2, {}, ours, peer);
    return absl::OkStatus();
  }

  Runner& runner_;
  const SuiteOptions& options_;
  absl::FunctionRef<void(const Row&)> on_row_;
  OpsPtr ops_;
};

}  // namespace

StatusOr<std::vector<Row>> RunFirstSuite(Runner& runner, const SuiteOptions& options,
                                         absl::FunctionRef<void(const Row&)> on_row) {
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<Runtime> runtime, Runtime::Create());
  Suite suite(runner, options, on_row);
  MR_RETURN_IF_ERROR(suite.Run(runtime->ops()));
  if (suite.rows.empty()) {
    return InvalidArgument("no group of the suite is named like '", options.only, "'");
  }
  return std::move(suite.rows);
}

}  // namespace millrace::bench
