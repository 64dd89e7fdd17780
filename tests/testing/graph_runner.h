#ifndef TESTS_TESTING_GRAPH_RUNNER_H_
#define TESTS_TESTING_GRAPH_RUNNER_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/framework/kernel.h"
#include "core/graph/graph.h"
#include "core/runtime/session.h"

namespace millrace::testing {

// Every kernel of this build, registered once.
const KernelRegistry& AllKernels();

// CPU devices with all kernels, on which graphs run in this process. Variables live as long as it
// does. Not thread-safe.
class GraphRunner {
 public:
  explicit GraphRunner(int devices = 1);

  StatusOr<std::unique_ptr<Session>> NewSession(const Graph& graph);

  using Feeds = std::vector<std::pair<std::string, Tensor>>;
  // One step of `session`.
  static StatusOr<std::vector<Tensor>> Run(Session& session, const Feeds& feeds,
                                           std::vector<std::string> fetches,
                                           std::vector<std::string> targets = {});
  // One step of a session of its own.
  StatusOr<std::vector<Tensor>> Run(const Graph& graph, const Feeds& feeds,
                                    std::vector<std::string> fetches,
                                    std::vector<std::string> targets = {});

 private:
  HostEnvironment host_;
  std::vector<std::unique_ptr<Device>> devices_;
};

}  // namespace millrace::testing

#endif  // TESTS_TESTING_GRAPH_RUNNER_H_
