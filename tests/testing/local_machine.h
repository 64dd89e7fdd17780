#ifndef TESTS_TESTING_LOCAL_MACHINE_H_
#define TESTS_TESTING_LOCAL_MACHINE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/graph/graph.h"
#include "core/runtime/session.h"
#include "graph_opt/pass.h"

namespace millrace::testing {

// CPU devices of several tasks in one process, with all ops and kernels: what stands in for a
// cluster where only graphs are to be tested. Variables live as long as it does.
class LocalMachine {
 public:
  // One device a task: "/job:ps/task:0".
  explicit LocalMachine(const std::vector<std::string>& tasks = {"/job:localhost/task:0"});

  const Environment& environment() const { return host_.environment(); }
  std::vector<Device*> devices() const;

  // A session that plans steps with `transform`; null: as they are.
  StatusOr<std::unique_ptr<Session>> Open(const Graph& graph, GraphTransform transform = nullptr);
  // Computes on the first device.
  Evaluator evaluator();
  // graph_opt's default pipeline.
  GraphTransform Passes(PipelineOptions options = {});

 private:
  HostEnvironment host_;
  std::vector<std::unique_ptr<Device>> devices_;
};

// By name, in any order; a step of `session`.
using NamedFeeds = std::vector<std::pair<std::string, Tensor>>;
StatusOr<std::vector<Tensor>> RunStep(Session& session, const NamedFeeds& feeds,
                                      std::vector<std::string> fetches,
                                      std::vector<std::string> targets = {});

}  // namespace millrace::testing

#endif  // TESTS_TESTING_LOCAL_MACHINE_H_
