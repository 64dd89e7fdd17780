#include "core/graph/graph_def.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/framework/attr_proto.h"
#include "core/graph/algorithms.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/stubs/logging.h"
#include "google/protobuf/text_format.h"

namespace millrace {
namespace {

// Deeper messages are refused: protobuf's parsers are recursive. Its binary one has this limit by
// itself.
constexpr int kMaxDepth = 100;

void ExportAttrs(const Node& node, NodeDef* def) {
  if (!AttrsToProto(node.attrs(), def->mutable_attr()).ok()) {
    // Something has no wire form (the handle of a resource): all else still goes out.
    def->mutable_attr()->clear();
    for (const auto& [name, value] : node.attrs()) {
      AttrValueProto proto;
      if (AttrToProto(value, &proto).ok()) (*def->mutable_attr())[name] = std::move(proto);
    }
  }
  if (node.num_outputs() == 0) return;
  AttrValueProto::ListValue* shapes = (*def->mutable_attr())[kOutputShapesAttr].mutable_list();
  for (int i = 0; i < node.num_outputs(); ++i) {
    // A handle is a scalar to readers; here it stands for its variable's shape.
    const bool handle = node.output_dtype(i) == DType::kResource;
    ShapeToProto(handle ? PartialShape(Shape()) : node.output_shape(i), shapes->add_shape());
  }
}

// Keeps the first error; protobuf would print them.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (text_.empty()) text_ = StrCat("line ", line + 1, ", column ", column + 1, ": ", message);
  }
  void AddWarning(int, int, const std::string&) override {}
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// The binary form always has control characters: the tag of a node's op is one.
bool LooksLikeText(absl::string_view bytes) {
  return std::none_of(bytes.begin(), bytes.end(), [](unsigned char c) {
    return (c < ' ' && c != '\n' && c != '\r' && c != '\t') || c == 0x7f;
  });
}

Status ParseText(absl::string_view bytes, GraphDef* def) {
  google::protobuf::TextFormat::Parser parser;
  FirstError error;
  parser.RecordErrorsTo(&error);
  parser.SetRecursionLimit(kMaxDepth);
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
  if (!parser.Parse(&stream, def)) return DataLoss(error.text());
  // Escapes in a string can spell what is no UTF-8, which could not be written out again.
  std::string wire;
  if (def->SerializeToString(&wire) && def->ParseFromString(wire)) return absl::OkStatus();
  return DataLoss("a string in it is not UTF-8");
}

Status ParseBinary(absl::string_view bytes, GraphDef* def) {
  if (def->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return absl::OkStatus();
  return DataLoss("its ", bytes.size(), " bytes are no protobuf message of that type, or cut off");
}

}  // namespace

void ExportGraphDef(const Graph& graph, GraphDef* def) {
  def->Clear();
  def->mutable_versions()->set_producer(kGraphVersion);
  if (!graph.library().empty()) {
    // Bytes that came from outside: what does not parse is left out.
    if (!def->mutable_library()->ParseFromString(graph.library())) def->clear_library();
  }
  StatusOr<std::vector<NodeId>> order = TopologicalOrder(graph);
  if (!order.ok()) {
    order = std::vector<NodeId>();
    for (NodeId id = 0; id < graph.num_ids(); ++id) {
      if (graph.IsLive(id)) order->push_back(id);
    }
  }
  def->mutable_node()->Reserve(static_cast<int>(order->size()));
  for (const NodeId id : *order) {
    const Node& node = *graph.node(id);
    NodeDef* out = def->add_node();
    out->set_name(node.name());
    out->set_op(node.op().name());
    for (const Port& port : node.inputs()) {
      if (graph.IsLive(port.node)) out->add_input(graph.PortName(port));
    }
    for (const NodeId before : node.control_inputs()) {
      if (graph.IsLive(before)) out->add_input(StrCat("^", graph.node(before)->name()));
    }
    out->set_device(node.assigned_device().IsFull() ? node.assigned_device().ToString()
                                                    : node.requested_device());
    ExportAttrs(node, out);
  }
}

StatusOr<Graph> ParseGraph(absl::string_view bytes, absl::string_view place,
                           std::shared_ptr<const OpRegistry> ops, ProtoBudget budget) {
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max())) {
    return DataLoss(place, " is not a graph: ", bytes.size(),
                    " bytes are more than the 2 GB that a message can have");
  }
  GraphDef def;
  // Of strings that are not UTF-8, too, protobuf would print.
  const google::protobuf::LogSilencer silencer;
  const bool text = LooksLikeText(bytes);
  const Status parsed = text ? ParseText(bytes, &def) : ParseBinary(bytes, &def);
  if (!parsed.ok()) {
    return DataLoss(place, " is not a graph (", text ? "text" : "binary",
                    " GraphDef): ", parsed.message());
  }
  Graph graph(std::move(ops));
  const Status imported = ImportGraphDef(def, graph, budget);
  if (!imported.ok()) return Annotate(imported, place);
  return graph;
}

}  // namespace millrace
