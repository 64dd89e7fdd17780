#include "python_free_api/placement_view.h"

#include <map>

#include "absl/strings/str_replace.h"
#include "core/graph/algorithms.h"
#include "nlohmann/json.hpp"
#include "python_free_api/view_sources.h"

namespace millrace {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxAttributeText = 200;

std::string DeviceOf(const Node& node) {
  return node.assigned_device().IsFull() ? node.assigned_device().ToString()
                                         : node.requested_device();
}

// What placement.js draws: {"devices": [{name, nodes}], "policy", "links": [{source, destination,
// tensors, predicted, measured, carried: [{name, bytes}]}], "nodes": [{name, op, device, outputs,
// reason, alternatives, attributes, inputs: [{node, port, control}]}] in topological order}.
Json DataOf(const Graph& graph, const PlacementReport& report) {
  Json data;
  data["policy"] = report.policy;
  std::map<std::string, int> nodes_on;
  std::map<std::string, const PlacementDecision*> decisions;
  for (const PlacementDecision& d : report.decisions) decisions[d.node] = &d;

  std::vector<NodeId> order;
  if (StatusOr<std::vector<NodeId>> sorted = TopologicalOrder(graph); sorted.ok()) {
    order = *std::move(sorted);
  } else {
    // A graph that no session would run; shown all the same.
    for (NodeId id = 0; id < graph.num_ids(); ++id) {
      if (graph.IsLive(id)) order.push_back(id);
    }
  }
  std::vector<int> index_of(graph.num_ids(), -1);
  for (size_t i = 0; i < order.size(); ++i) index_of[order[i]] = static_cast<int>(i);
  data["nodes"] = Json::array();
  for (NodeId id : order) {
    const Node& node = *graph.node(id);
    Json entry;
    entry["name"] = node.name();
    entry["op"] = node.op().name();
    entry["device"] = DeviceOf(node);
    ++nodes_on[DeviceOf(node)];
    auto decision = decisions.find(node.name());
    entry["reason"] = decision == decisions.end() ? "" : decision->second->reason;
    entry["alternatives"] = Json::array();
    if (decision != decisions.end()) entry["alternatives"] = decision->second->alternatives;
    entry["outputs"] = Json::array();
    for (int i = 0; i < node.num_outputs(); ++i) {
      entry["outputs"].push_back(
          StrCat(Name(node.output_dtype(i)), node.output_shape(i).ToString()));
    }
    entry["attributes"] = Json::array();
    for (const auto& [name, value] : node.attrs()) {
      if (name == kRequestReasonAttr) continue;  // part of the reason
      std::string text = value.ToString();
      if (text.size() > kMaxAttributeText) text = StrCat(text.substr(0, kMaxAttributeText), "...");
      entry["attributes"].push_back({name, text});
    }
    entry["inputs"] = Json::array();
    for (Port input : node.inputs()) {
      entry["inputs"].push_back(
          {{"node", index_of[input.node]}, {"port", graph.PortName(input)}, {"control", false}});
    }
    for (NodeId before : node.control_inputs()) {
      entry["inputs"].push_back({{"node", index_of[before]},
                                 {"port", StrCat("^", graph.node(before)->name())},
                                 {"control", true}});
    }
    data["nodes"].push_back(std::move(entry));
  }
  data["devices"] = Json::array();
  for (const auto& [device, count] : nodes_on) {
    data["devices"].push_back({{"name", device}, {"nodes", count}});
  }
  data["links"] = Json::array();
  for (const PlacementReport::Link& link : report.links) {
    Json entry;
    entry["source"] = link.source;
    entry["destination"] = link.destination;
    entry["tensors"] = link.tensors;
    entry["predicted"] = link.predicted_bytes;
    entry["measured"] = nullptr;
    if (link.measured_steps > 0) {
      entry["measured"] = link.measured_payload_bytes / link.measured_steps;
    }
    entry["carried"] = Json::array();
    for (const auto& tensor : link.carried) {
      entry["carried"].push_back({{"name", tensor.name}, {"bytes", tensor.bytes}});
    }
    data["links"].push_back(std::move(entry));
  }
  return data;
}

}  // namespace

std::string PlacementView(const Graph& placed, const PlacementReport& report,
                          absl::string_view title) {
  std::string data = DataOf(placed, report).dump(-1, ' ', false, Json::error_handler_t::replace);
  // A name may hold "</script>".
  data = absl::StrReplaceAll(data, {{"<", "\\u003c"}});
  const std::string shown =
      absl::StrReplaceAll(title, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}});
  return StrCat("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>", shown,
                "</title>\n<style>\n", kPlacementCss,
                "</style></head><body>\n"
                "<div id=\"stage\"><svg id=\"graph\"><g id=\"world\"></g></svg>\n"
                "<div id=\"bar\"><input id=\"search\" placeholder=\"find a node\">"
                "<button id=\"open\">open all</button><button id=\"close\">close all</button>"
                "<button id=\"fit\">fit</button></div></div>\n"
                "<div id=\"side\"><h1>",
                shown,
                "</h1><div id=\"summary\" class=\"dim\"></div>\n"
                "<h2>Devices</h2><div id=\"devices\"></div>\n"
                "<h2>Links, bytes a step</h2><table id=\"links\"><tr><th>from &rarr; to</th>"
                "<th>tensors</th><th>predicted</th><th>counted</th></tr></table>\n"
                "<div id=\"details\"><p class=\"dim\">Click a scope to open or close it, a node to "
                "see why it "
                "is where it is.</p></div></div>\n<script>\nconst DATA = ",
                data, ";\n", kPlacementJs, "</script></body></html>\n");
}

}  // namespace millrace
