#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "core/framework/attr_proto.h"
#include "core/graph/cycle.h"
#include "core/graph/graph_def.h"
#include "core/graph/node_name.h"

namespace millrace {
namespace {

// More unknown ops than these are counted only.
constexpr size_t kMostUnknownOps = 20;

std::string Describe(const NodeDef& def) { return StrCat(def.op(), " '", def.name(), "'"); }

// The name of the node that an input names, and whether it is a control input.
struct InputName {
  bool control;
  PortName port;
};
InputName ParseInput(absl::string_view text) {
  const bool control = absl::ConsumePrefix(&text, "^");
  return {control, control ? PortName{text, 0} : SplitPortName(text)};
}

// What an attribute that is not there would mean.
bool SaysNothing(const AttrValue& value) {
  if (const auto* flag = value.get<bool>()) return !*flag;
  if (const auto* number = value.get<int64_t>()) return *number == 0;
  if (const auto* number = value.get<float>()) return *number == 0;
  if (const auto* text = value.get<std::string>()) return text->empty();
  return value.get<std::monostate>() != nullptr || value.ToString() == "[]";
}

// Reference dtypes are those of the variables of old, of which graphs are still about.
Status WithHint(const Status& status) {
  if (!absl::StrContains(status.message(), "_REF is not supported")) return status;
  return Status(status.code(),
                StrCat(status.message(), ": rebuild the graph with resource variables"));
}

class Importer {
 public:
  Importer(const GraphDef& def, Graph& graph, ProtoBudget budget)
      : def_(def), graph_(graph), budget_(budget) {}

  Status Run() {
    MR_RETURN_IF_ERROR(CheckVersion());
    MR_RETURN_IF_ERROR(CheckOps());
    MR_RETURN_IF_ERROR(IndexNames());
    MR_RETURN_IF_ERROR(CheckInputs());
    MR_ASSIGN_OR_RETURN(const std::vector<int> order, Order());
    std::string library = graph_.library();
    if (def_.has_library()) MR_RETURN_IF_ERROR(MergeLibrary(&library));
    const NodeId before = graph_.num_ids();
    for (const int i : order) {
      const Status status = AddNode(def_.node(i));
      if (status.ok()) continue;
      graph_.Rollback(before);
      return status;
    }
    graph_.set_library(std::move(library));
    return absl::OkStatus();
  }

 private:
  Status CheckVersion() const {
    const VersionDef& versions = def_.versions();
    const auto& bad = versions.bad_consumers();
    if (versions.min_consumer() <= kGraphVersion &&
        std::find(bad.begin(), bad.end(), kGraphVersion) == bad.end()) {
      return absl::OkStatus();
    }
    return InvalidArgument("the graph, of version ", versions.producer(),
                           ", wants to be read by version ", versions.min_consumer(),
                           " or later, and this build follows version ", kGraphVersion,
                           ": use a newer Millrace, or write the graph by an older program");
  }

  // All unknown ops at once: whoever brings a graph wants to know what all is missing.
  Status CheckOps() const {
    std::map<std::string, int> unknown;
    for (const NodeDef& node : def_.node()) {
      if (graph_.ops().Find(node.op()) == nullptr) ++unknown[node.op()];
    }
    if (unknown.empty()) return absl::OkStatus();
    std::string text;
    size_t listed = 0;
    for (const auto& [op, count] : unknown) {
      if (++listed > kMostUnknownOps) break;
      absl::StrAppend(&text, listed == 1 ? "" : ", ", op, " (", count,
                      count == 1 ? " node" : " nodes", ", as '", FirstOf(op), "')");
    }
    if (unknown.size() > kMostUnknownOps) {
      absl::StrAppend(&text, " and ", unknown.size() - kMostUnknownOps, " more");
    }
    return InvalidArgument("the graph has ops that this build does not know: ", text);
  }

  const std::string& FirstOf(absl::string_view op) const {
    return std::find_if(def_.node().begin(), def_.node().end(),
                        [op](const NodeDef& node) { return node.op() == op; })
        ->name();
  }

  Status IndexNames() {
    index_.reserve(def_.node_size());
    for (int i = 0; i < def_.node_size(); ++i) {
      const NodeDef& node = def_.node(i);
      if (!index_.try_emplace(node.name(), i).second || graph_.Find(node.name()) != nullptr) {
        return InvalidArgument(Describe(node), ": another node has that name");
      }
    }
    return absl::OkStatus();
  }

  Status CheckInputs() const {
    for (const NodeDef& node : def_.node()) {
      for (int i = 0; i < node.input_size(); ++i) {
        const absl::string_view name = ParseInput(node.input(i)).port.node;
        if (index_.contains(name) || graph_.Find(name) != nullptr) continue;
        NearestName nearest(name);
        for (const NodeDef& other : def_.node()) nearest.Consider(other.name());
        return InvalidArgument(Describe(node), ": input ", i, " (", node.input(i),
                               ") does not exist", nearest.Suggestion());
      }
    }
    return absl::OkStatus();
  }

  // Calls `visit` with each node of the GraphDef that node `i` of it reads.
  template <typename Visit>
  void ForEachInput(int i, Visit visit) const {
    for (const std::string& input : def_.node(i).input()) {
      const auto found = index_.find(ParseInput(input).port.node);
      if (found != index_.end()) visit(found->second);
    }
  }

  // Inputs before users, else as they come.
  StatusOr<std::vector<int>> Order() const {
    const int n = def_.node_size();
    std::vector<int32_t> pending(n, 0);
    std::vector<std::vector<int>> users(n);
    for (int i = 0; i < n; ++i) {
      ForEachInput(i, [&](int input) {
        ++pending[i];
        users[input].push_back(i);
      });
    }
    std::priority_queue<int, std::vector<int>, std::greater<int>> ready;
    for (int i = 0; i < n; ++i) {
      if (pending[i] == 0) ready.push(i);
    }
    std::vector<int> order;
    order.reserve(n);
    while (!ready.empty()) {
      const int i = ready.top();
      ready.pop();
      order.push_back(i);
      for (const int user : users[i]) {
        if (--pending[user] == 0) ready.push(user);
      }
    }
    if (static_cast<int>(order.size()) == n) return order;
    const auto inputs = [this](int32_t i, absl::FunctionRef<void(int32_t)> visit) {
      ForEachInput(i, visit);
    };
    const auto name = [this](int32_t i) { return def_.node(i).name(); };
    return InvalidArgument("the graph has a cycle: ", DescribeCycle(pending, inputs, name));
  }

  Status AddNode(const NodeDef& def) {
    NodeSpec spec;
    spec.name = def.name();
    spec.op = def.op();
    spec.device = def.device();
    for (const std::string& text : def.input()) {
      const InputName input = ParseInput(text);
      const Node* node = graph_.Find(input.port.node);
      // Malformed names get here: they are refused when their own node is added.
      if (node == nullptr) return InvalidArgument(Describe(def), ": no input '", text, "'");
      if (input.control) {
        spec.control_inputs.push_back(node->id());
      } else if (input.port.index >= node->num_outputs()) {
        return InvalidArgument(Describe(def), ": input '", text,
                               "' does not exist: ", node->op().name(), " '", node->name(),
                               "' has ", node->num_outputs(), " outputs");
      } else {
        spec.inputs.push_back(Port{node->id(), input.port.index});
      }
    }
    StatusOr<AttrMap> attrs = AttrsFromProto(def.attr(), budget_);
    if (!attrs.ok()) return Annotate(WithHint(attrs.status()), Describe(def));
    spec.attrs = Adapt(*std::move(attrs), *graph_.ops().Find(def.op()));
    return graph_.AddNode(std::move(spec)).status();
  }

  // Makes allowances for what other writers do.
  static AttrMap Adapt(AttrMap attrs, const OpDef& op) {
    // What shapes are is for our shape functions to say: memory is laid out by it.
    attrs.Erase(kOutputShapesAttr);
    std::vector<std::string> dropped;
    for (const auto& [name, value] : attrs) {
      if (absl::StartsWith(name, "_") || op.FindAttr(name) != nullptr) continue;
      // Newer writers always write out the defaults of attributes that were added since.
      if (SaysNothing(value)) dropped.push_back(name);
    }
    for (const std::string& name : dropped) attrs.Erase(name);
    for (const AttrDef& def : op.attrs()) {
      // A list without elements does not say of what it is one; inference needs to know.
      const AttrValue* value = attrs.Find(def.name);
      if (def.kind != "list(type)" || value == nullptr) continue;
      const auto* ints = value->get<std::vector<int64_t>>();
      if (ints != nullptr && ints->empty()) attrs.Set(def.name, std::vector<DType>());
    }
    return attrs;
  }

  // Adds the functions that are not there by name.
  Status MergeLibrary(std::string* bytes) const {
    FunctionDefLibrary library;
    if (!library.ParseFromString(*bytes)) {
      return DataLoss("the graph's function library is malformed");
    }
    absl::flat_hash_set<std::string> known;
    for (const FunctionDef& function : library.function())
      known.insert(function.signature().name());
    for (const FunctionDef& function : def_.library().function()) {
      if (known.insert(function.signature().name()).second) *library.add_function() = function;
    }
    known.clear();
    for (const GradientDef& gradient : library.gradient()) known.insert(gradient.function_name());
    for (const GradientDef& gradient : def_.library().gradient()) {
      if (known.insert(gradient.function_name()).second) *library.add_gradient() = gradient;
    }
    if (!library.SerializeToString(bytes)) return Internal("cannot serialise the function library");
    return absl::OkStatus();
  }

  const GraphDef& def_;
  Graph& graph_;
  ProtoBudget budget_;
  absl::flat_hash_map<absl::string_view, int> index_;  // by name
};

}  // namespace

Status ImportGraphDef(const GraphDef& def, Graph& graph, ProtoBudget budget) {
  return Importer(def, graph, budget).Run();
}

}  // namespace millrace
