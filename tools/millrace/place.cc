// millrace place: plans a saved graph for devices that need not exist, and says why.
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "core/base/file.h"
#include "core/graph/algorithms.h"
#include "core/graph/graph_def.h"
#include "core/runtime/planner.h"
#include "python_free_api/placement_view.h"
#include "python_free_api/runtime.h"
#include "tools/millrace/command.h"
#include "tools/millrace/devices.h"

namespace millrace {
namespace {

struct Options {
  std::string devices;
  std::string fetch;
  std::string target;
  std::string feed;
  std::string graph;
  std::string json;
  std::string view;
  bool soft_placement = false;
  bool clear_devices = false;
  bool optimize = false;
};

std::vector<std::string> SplitList(const std::string& text) {
  return absl::StrSplit(text, ',', absl::SkipWhitespace());
}

// What nothing consumes.
std::vector<std::string> Ends(const Graph& graph) {
  const FanOut fan_out = ComputeFanOut(graph);
  std::vector<std::string> ends;
  for (NodeId id = 0; id < graph.num_ids(); ++id) {
    if (graph.IsLive(id) && fan_out.data[id].empty() && fan_out.control[id].empty()) {
      ends.push_back(graph.node(id)->name());
    }
  }
  return ends;
}

// The step that the flags name. Placeholders that it needs are fed, named or not: there are no
// values here anyway.
StatusOr<StepSignature> SignatureOf(const Graph& graph, const Options& options) {
  StepSignature signature;
  signature.feeds = SplitList(options.feed);
  signature.fetches = SplitList(options.fetch);
  signature.targets = SplitList(options.target);
  if (signature.fetches.empty() && signature.targets.empty()) signature.targets = Ends(graph);
  std::set<Port> fed;
  for (const std::string& feed : signature.feeds) {
    MR_ASSIGN_OR_RETURN(const Port port, graph.FindPort(feed));
    fed.insert(port);
  }
  std::vector<NodeId> roots;
  for (const std::string& fetch : signature.fetches) {
    MR_ASSIGN_OR_RETURN(const Port port, graph.FindPort(fetch));
    roots.push_back(port.node);
  }
  for (const std::string& target : signature.targets) {
    const Node* node = graph.Find(target);
    // Prune says it better.
    if (node != nullptr) roots.push_back(node->id());
  }
  const std::vector<bool> needed = ReachableBackwards(graph, roots);
  for (NodeId id = 0; id < graph.num_ids(); ++id) {
    if (!needed[id] || !graph.IsLive(id)) continue;
    const Node& node = *graph.node(id);
    if (!node.op().Has(Trait::kPlaceholder) || fed.contains(Port{id, 0})) continue;
    signature.feeds.push_back(node.name());
  }
  return signature;
}

Status Place(const std::string& path, const Options& options) {
  if (options.devices.empty()) {
    return InvalidArgument("--devices is needed: where may nodes go? ('ps=1;worker=2')");
  }
  MR_ASSIGN_OR_RETURN(const std::vector<DeviceInfo> devices, ParseDevices(options.devices));
  MR_ASSIGN_OR_RETURN(std::unique_ptr<Runtime> runtime, Runtime::Create());
  FileSystem& files = *runtime->environment().files;
  MR_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(files, path));
  MR_ASSIGN_OR_RETURN(Graph graph, ParseGraph(bytes, path, runtime->ops()));
  if (options.clear_devices) {
    for (NodeId id = 0; id < graph.num_ids(); ++id) {
      if (graph.IsLive(id)) graph.SetRequestedDevice(id, "");
    }
  }
  MR_ASSIGN_OR_RETURN(const StepSignature signature, SignatureOf(graph, options));
  PlannerOptions planner;
  planner.placer.soft_placement = options.soft_placement;
  if (options.optimize) planner.transform = runtime->Transform();
  MR_ASSIGN_OR_RETURN(const PlannedStep step,
                      PlanStep(graph, signature, devices, runtime->kernels(), planner));
  std::fputs(step.report.ToText().c_str(), stdout);
  if (!options.graph.empty()) {
    GraphDef def;
    ExportGraphDef(step.placed, &def);
    MR_RETURN_IF_ERROR(WriteFile(files, options.graph, def.SerializeAsString()));
  }
  if (!options.json.empty()) {
    MR_RETURN_IF_ERROR(WriteFile(files, options.json, step.report.ToJson()));
  }
  if (options.view.empty()) return absl::OkStatus();
  return WriteFile(files, options.view,
                   PlacementView(step.placed, step.report, StrCat("Placement of ", path)));
}

}  // namespace

int PlaceCommand(const std::vector<std::string>& arguments) {
  constexpr char kName[] = "millrace place";
  Options options;
  Flags flags(kName,
              "Places a saved graph (GraphDef, binary or text) on devices without running it, and "
              "prints for\neach node its device and the reason, and for each link what a step "
              "sends over it.\n\n"
              "  millrace place graph.pb --devices 'ps=1;worker=2' --target train --view out.html");
  flags.Add("devices", &options.devices,
            "'ps=1;worker=2': tasks of each job, a CPU each; or device names "
            "('/job:ps/task:0,/job:worker/task:0/device:CUDA:0'); or a cluster spec");
  flags.Add("fetch", &options.fetch, "what the step fetches: 'loss,accuracy:0'");
  flags.Add("target", &options.target,
            "what it runs; without --fetch and --target: all that nothing consumes");
  flags.Add("feed", &options.feed, "what it feeds besides placeholders");
  flags.Add("soft_placement", &options.soft_placement,
            "where a requested device does not exist or has no kernel, take another");
  flags.Add("clear_devices", &options.clear_devices, "forget the devices that the graph requests");
  flags.Add("optimize", &options.optimize, "run the graph passes first, as a session does");
  flags.Add("graph", &options.graph, "write the placed graph (GraphDef) there");
  flags.Add("json", &options.json, "write the report as JSON there");
  flags.Add("view", &options.view, "write a page for the browser there");
  flags.AllowPositional(1, 1, "GRAPH.pb");
  return RunCommand(kName, arguments, flags, [&] { return Place(flags.positional()[0], options); });
}

}  // namespace millrace
