#ifndef TOOLS_BENCH_TENSORFLOW_CONFIG_H_
#define TOOLS_BENCH_TENSORFLOW_CONFIG_H_

#include <string>

#include "core/base/status.h"

// TensorFlow's settings as serialised messages, written by hand: this program shares no protobuf
// with TensorFlow's library.
namespace millrace::bench {

// The settings that a StepRun may name:
//   ""                 optimiser off, its own threads
//   "caller_runs"      optimiser off, kernels run on the caller's thread
//   "single_threaded"  optimiser off, its executor for one thread
//   "optimized"        optimiser on
// InvalidArgument for others. A tensorflow.ConfigProto, and a tensorflow.RunOptions.
StatusOr<std::string> ConfigProtoFor(const std::string& setting, int threads);
std::string RunOptionsFor(const std::string& setting);

// A tensorflow.ServerDef: task `task` of `job` of the cluster 'ps=host:port;worker=host:port'.
StatusOr<std::string> ServerDefFor(const std::string& cluster, const std::string& job, int task,
                                   const std::string& config);

}  // namespace millrace::bench

#endif  // TOOLS_BENCH_TENSORFLOW_CONFIG_H_
