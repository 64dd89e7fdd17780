#include "core/runtime/placer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_join.h"
#include "core/graph/algorithms.h"
#include "core/runtime/byte_text.h"
#include "core/runtime/placement_groups.h"

namespace millrace {
namespace {

constexpr int kListedDevices = 16;  // in messages

// What constraints leave of the devices for one group, and why.
struct Candidates {
  std::vector<int> devices;  // ascending
  std::vector<std::string> reasons;
  std::vector<std::string> excluded;  // "<device>: no kernel for ArgMax with T=double"
};

std::string Joined(const std::vector<std::string>& parts) { return absl::StrJoin(parts, "; "); }

// "ArgMax with T=double, output_type=int64"
std::string OpWithTypes(const Node& node) {
  std::vector<std::string> types;
  for (const AttrDef& attr : node.op().attrs()) {
    if (attr.kind != "type") continue;
    const AttrValue* value = node.attrs().Find(attr.name);
    const DType* dtype = value == nullptr ? nullptr : value->get<DType>();
    if (dtype != nullptr) types.push_back(StrCat(attr.name, "=", Name(*dtype)));
  }
  const std::string list = absl::StrJoin(types, ", ");
  return StrCat(node.op().name(), list.empty() ? "" : " with ", list);
}

class Placer {
 public:
  Placer(Graph& graph, absl::Span<const DeviceInfo> devices, const KernelRegistry& kernels,
         const PlacementPolicy& policy, const PlacerOptions& options)
      : graph_(graph), devices_(devices), kernels_(kernels), policy_(policy), options_(options) {
    for (const DeviceInfo& device : devices) {
      const std::string& type = *device.name.type;
      const auto found = std::find(types_.begin(), types_.end(), type);
      type_of_device_.push_back(static_cast<int>(found - types_.begin()));
      if (found == types_.end()) types_.push_back(type);
    }
  }

  StatusOr<std::vector<PlacementDecision>> Run() {
    MR_ASSIGN_OR_RETURN(order_, TopologicalOrder(graph_));
    MR_ASSIGN_OR_RETURN(groups_, FindPlacementGroups(graph_, order_, options_.soft_placement));
    PlacementProblem problem;
    problem.graph = &graph_;
    problem.devices.assign(devices_.begin(), devices_.end());
    problem.group_of_node = groups_.group_of_node;
    std::vector<Candidates> candidates;
    bool is_free = false;
    for (const PlacementGroup& group : groups_.groups) {
      MR_ASSIGN_OR_RETURN(Candidates left, FindCandidates(group));
      is_free = is_free || left.devices.size() > 1;
      problem.groups.push_back({group.nodes, left.devices});
      candidates.push_back(std::move(left));
    }
    std::vector<PlacementChoice> choices;
    if (is_free) {
      MR_ASSIGN_OR_RETURN(choices, policy_.Choose(problem));
      MR_RETURN_IF_ERROR(CheckChoices(problem, choices));
    }
    return Assign(candidates, choices);
  }

 private:
  const std::string& TypeOf(int device) const { return types_[type_of_device_[device]]; }
  std::string DeviceText(int device) const { return devices_[device].name.ToString(); }
  std::string DeviceList() const {
    std::vector<std::string> names;
    for (int i = 0; i < static_cast<int>(devices_.size()) && i < kListedDevices; ++i) {
      names.push_back(DeviceText(i));
    }
    if (devices_.size() > kListedDevices) {
      names.push_back(StrCat("and ", devices_.size() - kListedDevices, " more"));
    }
    return absl::StrJoin(names, ", ");
  }

  // A placeholder is fed, not run.
  Status CheckKernel(const Node& node, const std::string& type) const {
    if (node.op().Has(Trait::kPlaceholder)) return absl::OkStatus();
    return kernels_.Check(node.op().name(), type, node.attrs());
  }

  // By device type: the node of the group that has no kernel there, or null.
  std::vector<const Node*> NodesWithoutKernel(const PlacementGroup& group) const {
    std::vector<const Node*> result(types_.size(), nullptr);
    for (NodeId id : group.nodes) {
      const Node& node = *graph_.node(id);
      for (size_t t = 0; t < types_.size(); ++t) {
        if (result[t] == nullptr && !CheckKernel(node, types_[t]).ok()) result[t] = &node;
      }
    }
    return result;
  }

  Status NoKernelAnywhere(const std::vector<const Node*>& without) const {
    const bool one = std::all_of(without.begin(), without.end(),
                                 [&](const Node* node) { return node == without[0]; });
    if (one) {
      return InvalidArgument("node '", without[0]->name(),
                             "': ", CheckKernel(*without[0], types_[0]).message(),
                             "; devices: ", DeviceList());
    }
    // Several that have no type in common.
    std::vector<std::string> parts;
    for (size_t t = 0; t < types_.size(); ++t) {
      parts.push_back(
          StrCat("'", without[t]->name(), "': ", CheckKernel(*without[t], types_[t]).message()));
    }
    return InvalidArgument("nodes that must share a device have kernels for no common one: ",
                           Joined(parts), "; devices: ", DeviceList());
  }

  std::vector<int> Matching(const DeviceName& pattern,
                            const std::vector<const Node*>& without) const {
    std::vector<int> result;
    for (int i = 0; i < static_cast<int>(devices_.size()); ++i) {
      if (devices_[i].name.Matches(pattern) && without[type_of_device_[i]] == nullptr) {
        result.push_back(i);
      }
    }
    return result;
  }

  // No device fits the group's request: which one it is, and whether it exists or lacks a kernel.
  Status Unsatisfied(const PlacementGroup& group, const std::vector<const Node*>& without) const {
    const std::string request = group.request.ToString();
    const Node& requester = *graph_.node(group.requester);
    for (int i = 0; i < static_cast<int>(devices_.size()); ++i) {
      if (!devices_[i].name.Matches(group.request)) continue;
      const Node& node = *without[type_of_device_[i]];
      std::string where = &node == &requester
                              ? StrCat("node '", node.name(), "' requests '", request, "'")
                              : StrCat("node '", requester.name(), "' requests '", request,
                                       "', and '", node.name(), "' must be with it");
      return InvalidArgument(where, ", but ", CheckKernel(node, TypeOf(i)).message(),
                             "; soft placement would choose another device");
    }
    return InvalidArgument("node '", requester.name(), "' (", requester.op().name(), ") requests '",
                           request, "', which does not exist; devices: ", DeviceList());
  }

  // Who asked for the device, and why if that was said.
  static std::string RequestReason(const Node& node, const DeviceName& request) {
    const std::string why = node.attrs().GetOr(kRequestReasonAttr, std::string());
    return why.empty() ? StrCat("requested '", request.ToString(), "' by the program")
                       : StrCat("requested '", request.ToString(), "': ", why);
  }

  // Drops parts of the request, the least important first, until something fits.
  std::vector<int> FallBack(const PlacementGroup& group, const std::vector<const Node*>& without,
                            Candidates& result) const {
    DeviceName pattern = group.request;
    std::vector<int> devices;
    for (int step = 0; step < 4 && devices.empty(); ++step) {
      if (step == 0) pattern.index.reset();
      if (step == 1) pattern.type.reset();
      if (step == 2) pattern.task.reset();
      if (step == 3) pattern.job.reset();
      devices = Matching(pattern, without);
    }
    const bool exists =
        std::any_of(devices_.begin(), devices_.end(),
                    [&](const DeviceInfo& device) { return device.name.Matches(group.request); });
    std::string why = "which does not exist";
    if (exists) {
      for (const Node* node : without) {
        if (node != nullptr) why = StrCat("where there is no kernel for ", OpWithTypes(*node));
      }
    }
    result.reasons.push_back(StrCat(RequestReason(*graph_.node(group.requester), group.request),
                                    ", ", why, "; soft placement fell back"));
    return devices;
  }

  // Keeps the candidates for which `keep` holds, if any; true if that excluded some.
  template <typename Keep>
  bool Restrict(Candidates& candidates, Keep keep) const {
    std::vector<int> kept;
    for (int device : candidates.devices) {
      if (keep(device)) kept.push_back(device);
    }
    if (kept.empty() || kept.size() == candidates.devices.size()) return false;
    candidates.devices = std::move(kept);
    return true;
  }

  StatusOr<Candidates> FindCandidates(const PlacementGroup& group) const {
    Candidates result;
    const std::vector<const Node*> without = NodesWithoutKernel(group);
    if (std::find(without.begin(), without.end(), nullptr) == without.end()) {
      return NoKernelAnywhere(without);
    }
    result.devices = Matching(group.request, without);
    if (result.devices.empty()) {
      if (!options_.soft_placement) return Unsatisfied(group, without);
      result.devices = FallBack(group, without, result);
    } else if (group.requester >= 0) {
      result.reasons.push_back(RequestReason(*graph_.node(group.requester), group.request));
    }
    if (!group.dropped.empty()) result.reasons.push_back(group.dropped);
    NoteMissingKernels(group, without, result);
    MR_RETURN_IF_ERROR(CheckMemory(group, result));
    if (result.devices.size() > 1) ApplyPins(group, result);
    if (result.devices.size() > 1) ApplyDefaults(group, result);
    return result;
  }

  void NoteMissingKernels(const PlacementGroup& group, const std::vector<const Node*>& without,
                          Candidates& result) const {
    const Node* missing = nullptr;
    for (int i = 0; i < static_cast<int>(devices_.size()); ++i) {
      const Node* node = without[type_of_device_[i]];
      if (node == nullptr || !devices_[i].name.Matches(group.request)) continue;
      missing = node;
      result.excluded.push_back(StrCat(DeviceText(i), ": no kernel for ", OpWithTypes(*node)));
    }
    if (missing == nullptr) return;
    const int first = result.devices.front();
    const std::string who = result.devices.size() == 1 ? StrCat(DeviceText(first), " has")
                                                       : StrCat(TypeOf(first), " devices have");
    result.reasons.push_back(
        StrCat("only ", who, " a kernel for ", OpWithTypes(*missing),
               group.nodes.size() == 1 ? "" : StrCat(" ('", missing->name(), "')")));
  }

  Status CheckMemory(const PlacementGroup& group, Candidates& result) const {
    int64_t bytes = 0;
    const Node* variable = nullptr;
    for (NodeId id : group.nodes) {
      const Node& node = *graph_.node(id);
      if (!node.op().Has(Trait::kVariable) || node.num_outputs() == 0) continue;
      bytes = std::max(bytes, LeastBytes(node.attrs().GetOr<DType>("dtype", DType::kInvalid),
                                         node.output_shape(0)));
      variable = &node;
    }
    if (variable == nullptr) return absl::OkStatus();
    std::vector<int> fitting;
    for (int device : result.devices) {
      const int64_t limit = devices_[device].memory_limit;
      if (limit <= 0 || bytes <= limit) {
        fitting.push_back(device);
      } else {
        result.excluded.push_back(StrCat(DeviceText(device), ": ", BytesText(limit),
                                         " of memory for a variable of ", BytesText(bytes)));
      }
    }
    if (fitting.empty()) {
      return ResourceExhausted(
          "variable '", variable->name(), "' takes ", BytesText(bytes),
          ", more than any device it may be on has: ", Joined(result.excluded));
    }
    if (fitting.size() < result.devices.size()) {
      result.reasons.push_back(StrCat("has the memory for ", BytesText(bytes)));
      result.devices = std::move(fitting);
    }
    return absl::OkStatus();
  }

  void ApplyPins(const PlacementGroup& group, Candidates& result) const {
    if (options_.pinned.empty()) return;
    for (NodeId id : group.nodes) {
      const auto pin = options_.pinned.find(graph_.node(id)->name());
      if (pin == options_.pinned.end()) continue;
      const auto pinned = [&](int device) { return DeviceText(device) == pin->second.device; };
      if (!Restrict(result, pinned)) continue;
      result.reasons = {pin->second.reason};
      result.excluded = pin->second.alternatives;
      return;
    }
  }

  void ApplyDefaults(const PlacementGroup& group, Candidates& result) const {
    // A default for another job or task says nothing about this group.
    const DeviceName& fallback = options_.default_device;
    if (!(fallback == DeviceName()) && group.request.Combine(fallback).ok() &&
        Restrict(result, [&](int i) { return devices_[i].name.Matches(fallback); })) {
      result.reasons.push_back(StrCat("default device '", fallback.ToString(), "'"));
    }
    const bool fed = std::any_of(group.nodes.begin(), group.nodes.end(), [&](NodeId id) {
      return graph_.node(id)->op().Has(Trait::kPlaceholder);
    });
    if (fed && Restrict(result, [&](int i) { return TypeOf(i) == "CPU"; })) {
      result.reasons.push_back("feeds arrive in host memory");
    }
  }

  Status CheckChoices(const PlacementProblem& problem,
                      const std::vector<PlacementChoice>& choices) const {
    if (choices.size() != problem.groups.size()) {
      return Internal("placement policy '", policy_.name(), "' made ", choices.size(),
                      " choices for ", problem.groups.size(), " groups");
    }
    for (size_t g = 0; g < choices.size(); ++g) {
      const std::vector<int>& candidates = problem.groups[g].candidates;
      if (!std::binary_search(candidates.begin(), candidates.end(), choices[g].device)) {
        return Internal("placement policy '", policy_.name(), "' chose device ", choices[g].device,
                        " for '", graph_.node(problem.groups[g].nodes[0])->name(),
                        "', which is not among its candidates");
      }
    }
    return absl::OkStatus();
  }

  // The node whose reason is the group's; the others follow it.
  NodeId LeaderOf(const PlacementGroup& group) const {
    if (group.requester >= 0) return group.requester;
    for (NodeId id : group.nodes) {
      if (graph_.node(id)->op().Has(Trait::kVariable)) return id;
    }
    return group.nodes[0];
  }

  std::string FollowerReason(const Node& node, const Node& leader, int device) const {
    const StatusOr<DeviceName> request = RequestOf(node);
    if (request.ok() && !(*request == DeviceName()) && devices_[device].name.Matches(*request)) {
      return RequestReason(node, *request);
    }
    if (devices_.size() == 1) return "the only device";
    const std::string& link = groups_.link_of_node[node.id()];
    return link.empty() ? StrCat("colocated with '", leader.name(), "'") : link;
  }

  std::vector<PlacementDecision> Assign(std::vector<Candidates>& candidates,
                                        const std::vector<PlacementChoice>& choices) {
    std::vector<int> chosen(candidates.size());
    std::vector<PlacementDecision> leading(candidates.size());
    for (size_t g = 0; g < candidates.size(); ++g) {
      Candidates& left = candidates[g];
      chosen[g] = left.devices[0];
      PlacementDecision& decision = leading[g];
      decision.alternatives = std::move(left.excluded);
      if (left.devices.size() > 1) {
        const PlacementChoice& choice = choices[g];
        chosen[g] = choice.device;
        left.reasons.push_back(StrCat(policy_.name(), ": ", choice.reason));
        decision.alternatives.insert(decision.alternatives.end(), choice.alternatives.begin(),
                                     choice.alternatives.end());
      } else if (left.reasons.empty()) {
        left.reasons.push_back("the only device");
      }
      decision.reason = Joined(left.reasons);
    }
    std::vector<PlacementDecision> decisions;
    decisions.reserve(order_.size());
    for (NodeId id : order_) {
      const Node& node = *graph_.node(id);
      const int g = groups_.group_of_node[id];
      const NodeId leader = LeaderOf(groups_.groups[g]);
      PlacementDecision decision;
      if (id == leader) {
        decision = std::move(leading[g]);
      } else {
        decision.reason = FollowerReason(node, *graph_.node(leader), chosen[g]);
      }
      decision.node = node.name();
      decision.op = node.op().name();
      decision.device = DeviceText(chosen[g]);
      decisions.push_back(std::move(decision));
    }
    // Last: until here requests are read from the graph.
    for (NodeId id : order_) {
      graph_.SetAssignedDevice(id, devices_[chosen[groups_.group_of_node[id]]].name);
    }
    return decisions;
  }

  Graph& graph_;
  const absl::Span<const DeviceInfo> devices_;
  const KernelRegistry& kernels_;
  const PlacementPolicy& policy_;
  const PlacerOptions& options_;
  std::vector<std::string> types_;   // of the devices, each once
  std::vector<int> type_of_device_;  // index into types_
  std::vector<NodeId> order_;
  PlacementGroups groups_;
};

}  // namespace

StatusOr<std::vector<PlacementDecision>> Place(Graph& graph, absl::Span<const DeviceInfo> devices,
                                               const KernelRegistry& kernels,
                                               const PlacementPolicy& policy,
                                               const PlacerOptions& options) {
  if (devices.empty()) return InvalidArgument("there is no device to place nodes on");
  for (const DeviceInfo& device : devices) {
    if (!device.name.IsFull()) {
      return InvalidArgument("device '", device.name.ToString(), "' has no full name");
    }
  }
  return Placer(graph, devices, kernels, policy, options).Run();
}

}  // namespace millrace
