#ifndef TOOLS_BENCH_SUITE_H_
#define TOOLS_BENCH_SUITE_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "tools/bench/report.h"
#include "tools/bench/runner.h"

namespace millrace::bench {

struct SuiteOptions {
  int rounds = 3;      // of each system in turn
  double seconds = 1;  // of measured steps in each round
  std::string only;    // rows whose group's name contains this
};

// The first suite: what a node, a step, a byte and a training step cost beside TensorFlow. `on_row`
// sees each row once it is measured. Groups: executor, feeds, null_step, variable, training,
// large_graph, server.
StatusOr<std::vector<Row>> RunFirstSuite(Runner& runner, const SuiteOptions& options,
                                         absl::FunctionRef<void(const Row&)> on_row);

}  // namespace millrace::bench

#endif  // TOOLS_BENCH_SUITE_H_
