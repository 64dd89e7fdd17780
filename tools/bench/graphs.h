#ifndef TOOLS_BENCH_GRAPHS_H_
#define TOOLS_BENCH_GRAPHS_H_

#include <memory>
#include <string>
#include <vector>

#include "core/framework/op_def.h"
#include "core/graph/graph.h"
#include "tools/bench/step_run.h"

// The graphs of the benchmarks, made of ops of the public set only, so that every system that reads
// a GraphDef can run them.
namespace millrace::bench {

// A graph and the step of it that is timed.
struct BenchGraph {
  Graph graph;
  StepRun run;  // without the graph's path
};
using OpsPtr = std::shared_ptr<const OpRegistry>;

// x + 1 + 1 + ... of scalars, `nodes` additions. The second fetch is the value half-way.
StatusOr<BenchGraph> AddChain(const OpsPtr& ops, int nodes);
// TensorFlow's executor benchmark: layers of at most `width` NoOps, each layer's nodes consumed and
// made at random, `depth` times.
StatusOr<BenchGraph> NoOpGraph(const OpsPtr& ops, int width, int depth);
// `count` scalars fed, each through an Identity to a fetch.
StatusOr<BenchGraph> FeedAndFetch(const OpsPtr& ops, int count);
// A NoOp on each of the first `tasks` workers.
StatusOr<BenchGraph> NoOpOnTasks(const OpsPtr& ops, int tasks);
// A variable of that many floats on the parameter server, read and brought to the worker.
StatusOr<BenchGraph> VariableToWorker(const OpsPtr& ops, int64_t floats);

// A step of training by SGD at 0.01 with batch 64, from initial values of a fixed pattern.
enum class Model {
  kMlp,     // 784-512-512-10
  kLeNet5,  // convolutions 5x5 of 6 (same) and 16 (valid), each with 2x2 max-pooling, 120, 84, 10
  kLeNet,   // convolutions 5x5 of 32 and 64 (same), each with 2x2 max-pooling, 1024, 10
};
StatusOr<BenchGraph> TrainingStep(const OpsPtr& ops, Model model);

}  // namespace millrace::bench

#endif  // TOOLS_BENCH_GRAPHS_H_
