#ifndef TOOLS_BENCH_SYSTEM_H_
#define TOOLS_BENCH_SYSTEM_H_

#include <memory>
#include <string>
#include <vector>

#include "core/base/scheduler.h"
#include "core/base/status.h"
#include "tools/bench/step_run.h"

namespace millrace::bench {

// A graph that one system has loaded.
class LoadedGraph {
 public:
  virtual ~LoadedGraph() = default;
  // A step signature; the index is for Run.
  virtual StatusOr<int> Prepare(const std::vector<FeedSpec>& feeds,
                                const std::vector<std::string>& fetches,
                                const std::vector<std::string>& targets) = 0;
  // Runs it and waits. `value`: the first element of the first fetch, if it is a float.
  virtual Status Run(int step, double* value) = 0;
};

// Times `run` on the graph that `load` gives.
StatusOr<StepTimes> TimeSteps(const StepRun& run, const Clock& clock,
                              absl::FunctionRef<StatusOr<std::unique_ptr<LoadedGraph>>()> load);

}  // namespace millrace::bench

#endif  // TOOLS_BENCH_SYSTEM_H_
