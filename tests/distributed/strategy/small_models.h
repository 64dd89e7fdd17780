#ifndef TESTS_DISTRIBUTED_STRATEGY_SMALL_MODELS_H_
#define TESTS_DISTRIBUTED_STRATEGY_SMALL_MODELS_H_

#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph_builder.h"
#include "distributed/strategy/data_parallel_ps.h"
#include "distributed/strategy/strategy_session.h"
#include "tests/testing/local_machine.h"

// Single-device training graphs of a few layers, and the means to run them split.
namespace millrace::testing {

enum class UpdateRule { kSgd, kAdam };

struct SmallModel {
  std::unique_ptr<GraphBuilder> builder;
  DType dtype = DType::kFloat;
  Shape example;           // of one input, without the batch
  std::string initialize;  // targets
  std::string train;
  std::string loss;  // the mean over the batch
  std::string logits;
  std::vector<std::string> variables;  // reads of the parameters, to fetch
};

// The feeds are "x" and "labels"; `dropout` multiplies by a drawn mask in between.
SmallModel MakeMlp(DType dtype, UpdateRule rule, bool dropout = false);
SmallModel MakeLeNet(DType dtype, UpdateRule rule);

// A batch of `rows` examples, the same for the same seed.
NamedFeeds BatchFor(const SmallModel& model, int64_t rows, uint64_t seed);

// "/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:1".
std::vector<std::string> ThreeTasks();
DataParallelPsOptions TwoWorkers();
// A session over `graph` that the strategy splits, in `machine`.
StatusOr<std::unique_ptr<Session>> OpenSplit(LocalMachine& machine, const Graph& graph,
                                             DataParallelPsOptions options);

}  // namespace millrace::testing

#endif  // TESTS_DISTRIBUTED_STRATEGY_SMALL_MODELS_H_
