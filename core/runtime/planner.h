#ifndef CORE_RUNTIME_PLANNER_H_
#define CORE_RUNTIME_PLANNER_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/runtime/partitioner.h"
#include "core/runtime/placer.h"

namespace millrace {

// A rewrite of a pruned graph that keeps its feeds, fetches and targets: graph_opt's pass pipeline,
// handed in by whoever wires the program, since core knows no passes.
using GraphTransform = std::function<Status(PrunedGraph& pruned)>;

struct PlannerOptions {
  GraphTransform transform;                 // may be null
  const PlacementPolicy* policy = nullptr;  // null: round_robin
  PlacerOptions placer;
};

// What the planner decided for one step, and why: the placement report.
struct PlacementReport {
  std::string policy;
  std::vector<DeviceInfo> devices;
  std::vector<std::string> absent_tasks;  // of the cluster, without an inventory
  std::vector<PlacementDecision> decisions;
  struct Link {  // one direction between two devices
    std::string source;
    std::string destination;
    bool crosses_tasks = false;
    int tensors = 0;
    int64_t predicted_bytes = 0;         // a step, payload
    int64_t measured_steps = 0;          // 0: not measured
    int64_t measured_payload_bytes = 0;  // over those steps, as the transport counted
    int64_t measured_wire_bytes = 0;     // with frame headers
    struct Tensor {
      ChannelId channel;
      std::string name;
      std::string dtype;
      std::string shape;
      int64_t bytes;
    };
    std::vector<Tensor> carried;
  };
  std::vector<Link> links;

  std::string ToText() const;  // for people: devices, nodes with reasons, links
  std::string ToJson() const;  // for tools; equal reports give equal text
};
// The report from ToJson's text; InvalidArgument says where the text is no such report.
StatusOr<PlacementReport> PlacementReportFromJson(absl::string_view text);

// One step signature, planned: pruned, transformed, placed, cut.
struct PlannedStep {
  StepSignature signature;
  Graph placed;  // whole, before the cut: for dumps and the viewer
  PartitionedProgram program;
  PlacementReport report;
};

// Plans one step of `graph` on `devices`. Pure: the same input gives the same output. Variables are
// placed as if the step held the whole graph, so that all steps of it (initialise, train, evaluate)
// find them on the same devices; when the graph grows between plans, hand what PinsOf gave for the
// earlier ones to placer.pinned.
StatusOr<PlannedStep> PlanStep(const Graph& graph, const StepSignature& signature,
                               absl::Span<const DeviceInfo> devices, const KernelRegistry& kernels,
                               const PlannerOptions& options);

// Where a placed graph has its variables, as PlacerOptions::pinned wants it.
std::map<std::string, PlacementDecision> PinsOf(const Graph& placed,
                                                absl::Span<const PlacementDecision> decisions);

}  // namespace millrace

#endif  // CORE_RUNTIME_PLANNER_H_
