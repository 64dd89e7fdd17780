#include "core/graph/graph_text.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "core/graph/algorithms.h"
#include "core/graph/attr_text.h"
#include "core/graph/node_name.h"
#include "core/graph/text_cursor.h"

namespace millrace {
namespace {

// Where the parser's nodes come from, for messages.
constexpr char kSource[] = "graph text";

// The attributes that the dtypes and the number of the inputs tell, so that they need not be said.
std::vector<std::string> InferredAttrs(const Graph& graph, const Node& node) {
  std::vector<std::string> candidates;
  for (const ArgDef& arg : node.op().inputs()) {
    for (const std::string* name : {&arg.type_attr, &arg.type_list_attr, &arg.number_attr}) {
      if (!name->empty()) candidates.push_back(*name);
    }
  }
  if (candidates.empty()) return candidates;
  std::vector<DType> dtypes;
  for (const Port& port : node.inputs()) {
    if (!graph.IsLive(port.node)) return {};
    dtypes.push_back(graph.dtype(port));
  }
  AttrMap inferred;
  if (!InferTypeAttrs(node.op(), dtypes, inferred).ok()) return {};
  const auto end =
      std::remove_if(candidates.begin(), candidates.end(), [&](const std::string& name) {
        const AttrValue* value = inferred.Find(name);
        const AttrValue* held = node.attrs().Find(name);
        return value == nullptr || held == nullptr || !(*value == *held);
      });
  candidates.erase(end, candidates.end());
  return candidates;
}

std::string AttrsToText(const Graph& graph, const Node& node) {
  const std::vector<std::string> inferred = InferredAttrs(graph, node);
  std::string text;
  for (const auto& [name, value] : node.attrs()) {
    const AttrDef* def = node.op().FindAttr(name);
    if (def != nullptr && def->default_value && *def->default_value == value) continue;
    if (std::find(inferred.begin(), inferred.end(), name) != inferred.end()) continue;
    absl::StrAppend(&text, text.empty() ? " {" : ", ", AttrNameToText(name), "=",
                    AttrToText(value, /*with_kind=*/def == nullptr));
  }
  return text.empty() ? text : text + "}";
}

std::string NodeToText(const Graph& graph, const Node& node, const std::vector<int>& position) {
  std::vector<std::string> inputs;
  for (const Port& port : node.inputs()) {
    inputs.push_back(graph.IsLive(port.node) ? graph.PortName(port) : "<removed>");
  }
  std::vector<NodeId> before;
  for (const NodeId id : node.control_inputs()) {
    if (graph.IsLive(id)) before.push_back(id);
  }
  // In the order of the lines, as ids are not part of the text.
  std::sort(before.begin(), before.end(),
            [&position](NodeId a, NodeId b) { return position[a] < position[b]; });
  for (const NodeId id : before) inputs.push_back(StrCat("^", graph.node(id)->name()));
  const std::string device =
      node.assigned_device().IsFull() ? node.assigned_device().ToString() : node.requested_device();
  return StrCat(node.name(), " = ", node.op().name(), "(", absl::StrJoin(inputs, ", "), ")",
                AttrsToText(graph, node), device.empty() ? "" : " @", device, "\n");
}

// Reads one line.
class LineParser {
 public:
  LineParser(absl::string_view text, int line, Graph& graph) : cursor_(text, line), graph_(graph) {}

  Status Run() {
    if (cursor_.AtEnd()) return absl::OkStatus();
    NodeSpec spec;
    spec.name = std::string(cursor_.TakeName());
    if (spec.name.empty()) return cursor_.Error("expected the name of a node");
    if (!cursor_.Take("=")) return cursor_.Error("expected '='");
    if (spec.name == "library" && cursor_.Sees('"')) return ParseLibrary();
    cursor_.AtEnd();
    const int column = cursor_.column();
    spec.op = std::string(cursor_.TakeName());
    if (spec.op.empty()) return cursor_.Error("expected the name of an op");
    MR_RETURN_IF_ERROR(ParseInputs(spec));
    MR_RETURN_IF_ERROR(ParseAttrs(spec));
    if (cursor_.Take("@")) spec.device = std::string(cursor_.TakeUntil(" \t\r#"));
    if (!cursor_.AtEnd()) return cursor_.Error("expected the end of the line");
    spec.location = {kSource, cursor_.line()};
    const StatusOr<NodeId> node = graph_.AddNode(std::move(spec));
    return node.ok() ? absl::OkStatus() : cursor_.ErrorAt(column, node.status().message());
  }

 private:
  Status ParseLibrary() {
    MR_ASSIGN_OR_RETURN(std::string bytes, cursor_.TakeQuoted());
    graph_.set_library(std::move(bytes));
    if (!cursor_.AtEnd()) return cursor_.Error("expected the end of the line");
    return absl::OkStatus();
  }

  Status ParseInputs(NodeSpec& spec) {
    if (!cursor_.Take("(")) return cursor_.Error("expected '('");
    if (cursor_.Take(")")) return absl::OkStatus();
    do {
      MR_RETURN_IF_ERROR(ParseInput(spec));
    } while (cursor_.Take(","));
    return cursor_.Take(")") ? absl::OkStatus() : cursor_.Error("expected ',' or ')'");
  }

  Status ParseInput(NodeSpec& spec) {
    const bool control = cursor_.Take("^");
    cursor_.AtEnd();
    const int column = cursor_.column();
    const absl::string_view text = cursor_.TakeUntil(" \t\r,()[]{}#");
    if (text.empty()) return cursor_.Error("expected an input");
    if (control) {
      const Node* before = graph_.Find(text);
      if (before == nullptr) {
        return cursor_.ErrorAt(column, StrCat("there is no node '", text, "' above"));
      }
      spec.control_inputs.push_back(before->id());
      return absl::OkStatus();
    }
    if (graph_.Find(SplitPortName(text).node) == nullptr) {
      return cursor_.ErrorAt(column, StrCat("there is no node '", text, "' above"));
    }
    const StatusOr<Port> port = graph_.FindPort(text);
    if (!port.ok()) return cursor_.ErrorAt(column, port.status().message());
    spec.inputs.push_back(*port);
    return absl::OkStatus();
  }

  Status ParseAttrs(NodeSpec& spec) {
    if (!cursor_.Take("{") || cursor_.Take("}")) return absl::OkStatus();
    const OpDef* op = graph_.ops().Find(spec.op);
    do {
      cursor_.AtEnd();
      const int column = cursor_.column();
      MR_ASSIGN_OR_RETURN(const std::string name, AttrNameFromText(cursor_));
      if (!cursor_.Take("=")) return cursor_.Error("expected '='");
      const AttrDef* def = op == nullptr ? nullptr : op->FindAttr(name);
      MR_ASSIGN_OR_RETURN(AttrValue value, AttrFromText(cursor_, def == nullptr ? "" : def->kind));
      if (spec.attrs.Has(name)) {
        return cursor_.ErrorAt(column, StrCat("attribute '", name, "' is there twice"));
      }
      spec.attrs.Set(name, std::move(value));
    } while (cursor_.Take(","));
    return cursor_.Take("}") ? absl::OkStatus() : cursor_.Error("expected ',' or '}'");
  }

  TextCursor cursor_;
  Graph& graph_;
};

}  // namespace

std::string GraphToText(const Graph& graph) {
  std::string text;
  if (!graph.library().empty()) {
    absl::StrAppend(&text, "library = \"", absl::CHexEscape(graph.library()), "\"\n");
  }
  StatusOr<std::vector<NodeId>> order = TopologicalOrder(graph);
  if (!order.ok()) {
    // Whoever debugs a broken graph wants to see it all the same.
    absl::StrAppend(&text, "# ", order.status().message(), "\n");
    order = std::vector<NodeId>();
    for (NodeId id = 0; id < graph.num_ids(); ++id) {
      if (graph.IsLive(id)) order->push_back(id);
    }
  }
  std::vector<int> position(graph.num_ids(), 0);
  for (size_t i = 0; i < order->size(); ++i) position[(*order)[i]] = static_cast<int>(i);
  for (const NodeId id : *order) text += NodeToText(graph, *graph.node(id), position);
  return text;
}

StatusOr<Graph> GraphFromText(absl::string_view text, std::shared_ptr<const OpRegistry> ops) {
  Graph graph(std::move(ops));
  for (int line = 1; !text.empty(); ++line) {
    const size_t end = std::min(text.find('\n'), text.size());
    MR_RETURN_IF_ERROR(LineParser(text.substr(0, end), line, graph).Run());
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return graph;
}

}  // namespace millrace
