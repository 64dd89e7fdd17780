#include "distributed/strategy/variable_layout.h"

#include <utility>
#include <vector>

#include "absl/strings/str_join.h"

namespace millrace {
namespace {

// The variable behind a handle: through identities, whose first input it is. Null if it is not in
// the graph.
const Node* VariableOf(const Graph& graph, Port handle) {
  const Node* node = graph.node(handle.node);
  while (!node->op().Has(Trait::kVariable)) {
    if (node->inputs().empty() || graph.dtype(node->inputs()[0]) != DType::kResource) {
      return nullptr;
    }
    node = graph.node(node->inputs()[0].node);
  }
  return node;
}

// Makes variables that one op uses, as an optimizer's slots, ask in `variables` to be together.
void KeepTogether(const Graph& graph, Graph& variables) {
  for (NodeId id = 0; id < graph.num_ids(); ++id) {
    if (!graph.IsLive(id)) continue;
    const Node* first = nullptr;
    for (Port input : graph.node(id)->inputs()) {
      if (graph.dtype(input) != DType::kResource) continue;
      const Node* variable = VariableOf(graph, input);
      if (variable == nullptr) continue;
      if (first == nullptr) first = variable;
      const Node* copy = variables.Find(variable->name());
      if (variable == first || copy == nullptr) continue;
      auto classes = copy->attrs().GetOr<std::vector<std::string>>(kColocationAttr, {});
      classes.push_back(StrCat("loc:@", first->name()));
      variables.SetAttr(copy->id(), kColocationAttr, std::move(classes));
    }
  }
}

// Whether the request names one of the devices alone, or none.
bool LeavesNoChoice(const Node& variable, const std::vector<DeviceInfo>& devices) {
  const StatusOr<DeviceName> request = DeviceName::Parse(variable.requested_device());
  if (!request.ok()) return true;  // for the placer to report
  int matching = 0;
  for (const DeviceInfo& device : devices) matching += device.name.Matches(*request);
  return matching <= 1;
}

}  // namespace

Status VariableLayout::Extend(const Graph& graph, const Strategy& strategy,
                              const SessionOpener& open_session) {
  StepSignature all;
  bool has_new = false;
  for (NodeId id = 0; id < graph.num_ids(); ++id) {
    if (!graph.IsLive(id) || !graph.node(id)->op().Has(Trait::kVariable)) continue;
    all.targets.push_back(graph.node(id)->name());
    has_new = has_new || places_.count(all.targets.back()) == 0;
  }
  if (!has_new) return absl::OkStatus();
  MR_ASSIGN_OR_RETURN(PrunedGraph variables, Prune(graph, all));
  KeepTogether(graph, variables.graph);
  MR_ASSIGN_OR_RETURN(Program program, strategy.Rewrite(variables, all));
  Apply(program.graph);
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, open_session(program.graph));
  MR_ASSIGN_OR_RETURN(const std::vector<DeviceInfo> devices, session->ListDevices());
  bool is_open = false;
  for (NodeId id = 0; id < program.graph.num_ids(); ++id) {
    if (!program.graph.IsLive(id)) continue;
    const Node& node = *program.graph.node(id);
    if (!node.op().Has(Trait::kVariable)) continue;
    places_.try_emplace(node.name());
    is_open = is_open || !LeavesNoChoice(node, devices);
  }
  if (!is_open) return absl::OkStatus();
  MR_ASSIGN_OR_RETURN(const std::shared_ptr<PreparedStep> step,
                      session->Prepare(program.loops[0].signature));
  MR_ASSIGN_OR_RETURN(const PlacementReport report, step->Report());
  for (const PlacementDecision& decision : report.decisions) {
    const auto place = places_.find(decision.node);
    if (place == places_.end() || !place->second.device.empty()) continue;
    place->second.device = decision.device;
    place->second.reason = decision.reason;
    if (!decision.alternatives.empty()) {
      absl::StrAppend(&place->second.reason, " (", absl::StrJoin(decision.alternatives, "; "), ")");
    }
  }
  return session->Close();
}

void VariableLayout::Apply(Graph& program) const {
  for (NodeId id = 0; id < program.num_ids(); ++id) {
    if (!program.IsLive(id) || !program.node(id)->op().Has(Trait::kVariable)) continue;
    const auto place = places_.find(program.node(id)->name());
    if (place == places_.end() || place->second.device.empty()) continue;
    program.SetRequestedDevice(id, place->second.device);
    program.SetAttr(id, kRequestReasonAttr, place->second.reason);
  }
}

}  // namespace millrace
