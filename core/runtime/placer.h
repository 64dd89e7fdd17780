#ifndef CORE_RUNTIME_PLACER_H_
#define CORE_RUNTIME_PLACER_H_

#include <map>
#include <string>
#include <vector>

#include "core/framework/kernel.h"
#include "core/graph/graph.h"
#include "core/graph/placement_policy.h"

namespace millrace {

// Why one node is where it is.
struct PlacementDecision {
  std::string node;
  std::string op;
  std::string device;
  // "requested '/job:ps' by the program", "colocated with variable 'conv1/w' through its handle",
  // "only /.../CPU:0 has a kernel for ArgMax with T=double", "round_robin: ..."
  std::string reason;
  std::vector<std::string> alternatives;  // what it beat, with the figures compared
};

struct PlacerOptions {
  // Fall back to a device that has a kernel where a requested one has none or does not exist; the
  // decision says so.
  bool soft_placement = false;
  // For parts of the device that a request leaves open, and nodes that the policy does not choose.
  DeviceName default_device;
  // Variables that earlier plans placed, by node name: they stay where they are, whatever else a
  // step holds. A request in the graph is stronger.
  std::map<std::string, PlacementDecision> pinned;
};

// Assigns a full device to every node: constraints first (requested devices, colocation, resource
// edges, kernels and dtypes), then `policy` over what is free. A conflict names the nodes, the
// devices and the missing kernel. Decisions come in topological order.
StatusOr<std::vector<PlacementDecision>> Place(Graph& graph, absl::Span<const DeviceInfo> devices,
                                               const KernelRegistry& kernels,
                                               const PlacementPolicy& policy,
                                               const PlacerOptions& options);

// Variables (and what must be with them) go round the candidates in turn, by bytes; other nodes go
// beside the inputs that bring most bytes. The comparison is the reason.
class RoundRobinPolicy final : public PlacementPolicy {
 public:
  std::string name() const override { return "round_robin"; }
  StatusOr<std::vector<PlacementChoice>> Choose(const PlacementProblem& problem) const override;
};

}  // namespace millrace

#endif  // CORE_RUNTIME_PLACER_H_
