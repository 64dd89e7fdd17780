#include "core/runtime/planner.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/graph/verify.h"

namespace millrace {
namespace {

// Where the whole graph's variables go, for a step that holds some of them. A graph that cannot be
// placed as a whole (some node not in this step has no kernel) pins nothing new.
std::map<std::string, PlacementDecision> WholeGraphPins(const Graph& graph,
                                                        absl::Span<const DeviceInfo> devices,
                                                        const KernelRegistry& kernels,
                                                        const PlacementPolicy& policy,
                                                        const PlacerOptions& options) {
  std::map<std::string, PlacementDecision> pins = options.pinned;
  if (devices.size() < 2) return pins;
  Graph whole = graph;
  const StatusOr<std::vector<PlacementDecision>> decisions =
      Place(whole, devices, kernels, policy, options);
  if (decisions.ok()) pins.merge(PinsOf(whole, *decisions));
  return pins;
}

// The device of `like`'s task that has host memory, if it is another one.
const DeviceInfo* HostDevice(absl::Span<const DeviceInfo> devices, const DeviceName& like) {
  if (like.type == "CPU") return nullptr;
  for (const DeviceInfo& device : devices) {
    if (device.name.type == "CPU" && device.name.job == like.job && device.name.task == like.task) {
      return &device;
    }
  }
  return nullptr;
}

// Clients read fetches: what an accelerator makes goes to the host memory of its task.
Status BringFetchesHome(PrunedGraph& pruned, absl::Span<const DeviceInfo> devices,
                        std::vector<PlacementDecision>& decisions) {
  Graph& graph = pruned.graph;
  std::map<Port, Port> brought;
  for (Port& fetch : pruned.fetches) {
    const Node& node = *graph.node(fetch.node);
    if (node.signature().host_outputs[fetch.index]) continue;
    const DeviceInfo* host = HostDevice(devices, node.assigned_device());
    if (host == nullptr || graph.ops().Find("Identity") == nullptr) continue;
    const auto [found, added] = brought.try_emplace(fetch, Port{});
    if (added) {
      NodeSpec spec;
      spec.name = graph.UniqueName(StrCat(node.name(), "/_fetch_", fetch.index));
      spec.op = "Identity";
      spec.inputs = {fetch};
      const std::string fetched = graph.PortName(fetch);
      MR_ASSIGN_OR_RETURN(const NodeId id, graph.AddNode(std::move(spec)));
      graph.SetAssignedDevice(id, host->name);
      found->second = Port{id, 0};
      decisions.push_back({graph.node(id)->name(),
                           "Identity",
                           host->name.ToString(),
                           StrCat("the client fetches '", fetched, "' from host memory"),
                           {}});
    }
    fetch = found->second;
  }
  return absl::OkStatus();
}

std::vector<PlacementReport::Link> LinksOf(const std::vector<Channel>& channels) {
  std::map<std::pair<std::string, std::string>, PlacementReport::Link> links;
  for (const Channel& channel : channels) {
    const std::pair key(channel.source.ToString(), channel.destination.ToString());
    PlacementReport::Link& link = links[key];
    link.source = key.first;
    link.destination = key.second;
    link.crosses_tasks = channel.source.TaskString() != channel.destination.TaskString();
    ++link.tensors;
    const int64_t bytes = channel.PredictedBytes();
    link.predicted_bytes += std::max<int64_t>(bytes, 0);
    link.carried.push_back({channel.id, channel.tensor, std::string(Name(channel.dtype)),
                            channel.shape.ToString(), bytes});
  }
  std::vector<PlacementReport::Link> result;
  for (auto& [key, link] : links) result.push_back(std::move(link));
  return result;
}

}  // namespace

std::map<std::string, PlacementDecision> PinsOf(const Graph& placed,
                                                absl::Span<const PlacementDecision> decisions) {
  std::map<std::string, PlacementDecision> pins;
  for (const PlacementDecision& decision : decisions) {
    const Node* node = placed.Find(decision.node);
    if (node != nullptr && node->op().Has(Trait::kVariable)) pins.emplace(decision.node, decision);
  }
  return pins;
}

StatusOr<PlannedStep> PlanStep(const Graph& graph, const StepSignature& signature,
                               absl::Span<const DeviceInfo> devices, const KernelRegistry& kernels,
                               const PlannerOptions& options) {
  const RoundRobinPolicy round_robin;
  const PlacementPolicy& policy = options.policy == nullptr ? round_robin : *options.policy;
  PlacerOptions placer = options.placer;
  placer.pinned = WholeGraphPins(graph, devices, kernels, policy, placer);

  MR_ASSIGN_OR_RETURN(PrunedGraph pruned, Prune(graph, signature));
  if (options.transform) {
    MR_RETURN_IF_ERROR(options.transform(pruned));
    const Status status = Verify(pruned.graph);
    if (!status.ok()) return Annotate(status, "after the graph's transform");
  }
  MR_ASSIGN_OR_RETURN(std::vector<PlacementDecision> decisions,
                      Place(pruned.graph, devices, kernels, policy, placer));
  MR_RETURN_IF_ERROR(BringFetchesHome(pruned, devices, decisions));
  MR_ASSIGN_OR_RETURN(PartitionedProgram program, PartitionGraph(pruned));

  PlannedStep step{signature, std::move(pruned.graph), std::move(program), {}};
  step.report.policy = policy.name();
  step.report.devices.assign(devices.begin(), devices.end());
  step.report.decisions = std::move(decisions);
  step.report.links = LinksOf(step.program.channels);
  return step;
}

}  // namespace millrace
