#ifndef PYTHON_FREE_API_RUNTIME_H_
#define PYTHON_FREE_API_RUNTIME_H_

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/base/scheduler.h"
#include "core/framework/kernel.h"
#include "core/framework/op_def.h"
#include "core/graph/graph_builder.h"
#include "core/runtime/session.h"
#include "distributed/strategy/strategy.h"

namespace millrace {

struct RuntimeOptions {
  int cpu_devices = 1;       // in this process; they share one pool of threads
  int threads = 0;           // of that pool; 0: one a core
  int64_t memory_limit = 0;  // bytes a device; 0: none
  std::string job = "localhost";
  int task = 0;
  // A program's own ops and kernels.
  std::function<void(OpRegistry&)> register_ops;
  std::function<void(KernelRegistry&)> register_kernels;
};

struct SessionOptions {
  // "": in this process; "grpc://host:port": the master there.
  std::string target;
  // For a master that was started without a cluster spec: any form of ClusterSpec.
  std::string cluster;
  bool soft_placement = false;
  // Passes to leave out ("constant_folding", ...), and a look at the graph around each.
  std::set<std::string> disabled_passes;
  std::function<void(const std::string& pass, const Graph& before, const Graph& after)> dump_pass;
  // Spreads each step over devices; null: one device, or what the graph requests.
  std::shared_ptr<const Strategy> strategy;
  // Sees each program of the strategy before anything of it runs.
  std::function<void(const StepSignature& logical, const Program& program)> on_program;
  absl::Duration connect_timeout = absl::Seconds(10);
};

// What a process that builds and runs graphs has one of: the ops, the kernels, the threads, the
// local devices with their variables. Outlives the sessions that it opens. Thread-safe.
//
//   auto runtime = Runtime::Create({});
//   GraphBuilder b((*runtime)->ops());
//   ...
//   auto session = (*runtime)->OpenSession(b);
class Runtime {
 public:
  // InvalidArgument for a number of the options that is out of range; the errors of the program's
  // own ops and kernels.
  static StatusOr<std::unique_ptr<Runtime>> Create(RuntimeOptions options = {});
  ~Runtime();

  const std::shared_ptr<const OpRegistry>& ops() const;
  const KernelRegistry& kernels() const;
  const Environment& environment() const;
  std::vector<Device*> devices() const;

  // Checks the builder's status first.
  StatusOr<std::unique_ptr<Session>> OpenSession(const GraphBuilder& builder,
                                                 SessionOptions options = {});
  StatusOr<std::unique_ptr<Session>> OpenSession(const Graph& graph, SessionOptions options = {});

  // The graph transform that sessions use: graph_opt's default pipeline.
  GraphTransform Transform(const SessionOptions& options = {}) const;

 private:
  class Impl;
  explicit Runtime(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace millrace

#endif  // PYTHON_FREE_API_RUNTIME_H_
