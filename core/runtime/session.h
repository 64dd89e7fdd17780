#ifndef CORE_RUNTIME_SESSION_H_
#define CORE_RUNTIME_SESSION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/runtime/planner.h"
#include "core/runtime/step_stats.h"

namespace millrace {

struct RunOptions {
  // The step is cancelled, with DeadlineExceeded, after this long; none by default.
  absl::Duration timeout = absl::InfiniteDuration();
  bool trace = false;  // collect RunResult::events
  // Cancelling it ends the step everywhere. May be null.
  Cancellation* cancellation = nullptr;
};

struct RunResult {
  std::vector<Tensor> fetches;      // in the signature's order
  std::vector<KernelEvent> events;  // if traced; of all tasks
  uint64_t step_id = 0;
};

// A step signature, compiled: what Run needs no names for. Valid while its session lives.
class PreparedStep {
 public:
  virtual ~PreparedStep() = default;
  virtual const StepSignature& signature() const = 0;
  // The placed graph, the reasons, and the bytes of each link (with what was counted so far).
  virtual StatusOr<PlacementReport> Report() = 0;
  virtual const Graph& placed_graph() const = 0;
};

// Runs steps of one growing graph, in this process (NewLocalSession) or on a cluster
// (distributed/remote_session.h): one program serves both. Thread-safe; several steps may run at
// once. Variables outlive the session: they belong to the devices.
class Session {
 public:
  using Done = absl::AnyInvocable<void(StatusOr<RunResult>)>;
  virtual ~Session() = default;

  // Adds the nodes of `graph` that the session does not have; those that it has must be equal.
  virtual Status Extend(const Graph& graph) = 0;
  // Plans and registers a signature; the same signature gives the same object.
  virtual StatusOr<std::shared_ptr<PreparedStep>> Prepare(const StepSignature& signature) = 0;
  // `feeds` in the signature's order. InvalidArgument, naming the feed, for a wrong dtype or shape.
  virtual void RunAsync(PreparedStep& step, std::vector<Tensor> feeds, const RunOptions& options,
                        Done done) = 0;
  // Blocks.
  virtual StatusOr<RunResult> Run(PreparedStep& step, std::vector<Tensor> feeds,
                                  const RunOptions& options = {}) = 0;
  // Devices that steps can use.
  virtual StatusOr<std::vector<DeviceInfo>> ListDevices() = 0;
  // Drops the variables of the named containers ("" is the default one; none: all containers).
  virtual Status Reset(std::vector<std::string> containers) = 0;
  // Cancels running steps and frees plans. Idempotent.
  virtual Status Close() = 0;
};

struct LocalSessionOptions {
  std::vector<Device*> devices;  // outlive the session and the steps that it started
  const KernelRegistry* kernels = nullptr;
  Environment environment;
  PlannerOptions planner;
};

StatusOr<std::unique_ptr<Session>> NewLocalSession(const Graph& graph, LocalSessionOptions options);

}  // namespace millrace

#endif  // CORE_RUNTIME_SESSION_H_
