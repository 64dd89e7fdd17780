#include "tools/bench/system.h"

#include <sched.h>

namespace millrace::bench {
namespace {

// A system of one thread may have helpers: the caller, a library's own pool. On one core they count
// as one.
void StayOnThisCore() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(sched_getcpu(), &cores);
  sched_setaffinity(0, sizeof(cores), &cores);
}

}  // namespace

StatusOr<StepTimes> TimeSteps(const StepRun& run, const Clock& clock,
                              absl::FunctionRef<StatusOr<std::unique_ptr<LoadedGraph>>()> load) {
  if (run.threads == 1 && run.target.empty()) StayOnThisCore();
  StepTimes times;
  const auto seconds_since = [&](int64_t from) {
    return static_cast<double>(clock.NowNanos() - from) * 1e-9;
  };
  double value = 0;
  int64_t start = clock.NowNanos();
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<LoadedGraph> graph, load());
  times.load = seconds_since(start);
  if (!run.init.empty()) {
    MR_ASSIGN_OR_RETURN(const int init, graph->Prepare({}, {}, run.init));
    MR_RETURN_IF_ERROR(graph->Run(init, &value));
  }
  start = clock.NowNanos();
  MR_ASSIGN_OR_RETURN(const int step, graph->Prepare(run.feeds, run.fetches, run.targets));
  MR_RETURN_IF_ERROR(graph->Run(step, &times.first_value));
  times.first = seconds_since(start);
  times.last_value = times.first_value;
  times.step_count = 1;
  if (!run.second_fetch.empty()) {
    start = clock.NowNanos();
    MR_ASSIGN_OR_RETURN(const int second, graph->Prepare(run.feeds, {run.second_fetch}, {}));
    MR_RETURN_IF_ERROR(graph->Run(second, &value));
    times.second = seconds_since(start);
  }
  for (int64_t i = 0; i < run.warm_up; ++i) {
    MR_RETURN_IF_ERROR(graph->Run(step, &times.last_value));
    ++times.step_count;
  }
  const int64_t begin = clock.NowNanos();
  while (static_cast<int64_t>(times.steps.size()) < run.most_steps &&
         seconds_since(begin) < run.seconds) {
    start = clock.NowNanos();
    MR_RETURN_IF_ERROR(graph->Run(step, &times.last_value));
    times.steps.push_back(seconds_since(start));
    ++times.step_count;
  }
  return times;
}

}  // namespace millrace::bench
