#ifndef CORE_GRAPH_GRAPH_H_
#define CORE_GRAPH_GRAPH_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "core/base/source_location.h"
#include "core/base/status.h"
#include "core/framework/device.h"
#include "core/framework/op_def.h"

// The in-memory program: a directed acyclic graph of typed, shaped operations. Protobuf stays at
// the border (graph_def.h). No threads and no devices here.
namespace millrace {

using NodeId = int32_t;  // dense index; stable while the graph lives

// One output of one node.
struct Port {
  NodeId node = -1;
  int index = 0;
  friend bool operator==(const Port& a, const Port& b) {
    return a.node == b.node && a.index == b.index;
  }
  friend bool operator<(const Port& a, const Port& b) {
    return a.node != b.node ? a.node < b.node : a.index < b.index;
  }
  template <typename H>
  friend H AbslHashValue(H h, const Port& p) {
    return H::combine(std::move(h), p.node, p.index);
  }
};

// What a new node is made from.
struct NodeSpec {
  std::string name;  // unique; may hold '/' for scopes
  std::string op;
  AttrMap attrs;  // type and number attributes may be left to inference from the inputs
  std::vector<Port> inputs;
  std::vector<NodeId> control_inputs;
  std::string device;  // requested, full or partial; "" for anywhere
  SourceLocation location;
};

// One operation. Changed through Graph only.
class Node {
 public:
  NodeId id() const { return id_; }
  const std::string& name() const { return name_; }
  const OpDef& op() const { return *op_; }
  const AttrMap& attrs() const { return attrs_; }
  const NodeSignature& signature() const { return signature_; }
  const std::vector<Port>& inputs() const { return inputs_; }
  const std::vector<NodeId>& control_inputs() const { return control_inputs_; }  // ascending
  int num_outputs() const { return static_cast<int>(signature_.outputs.size()); }
  DType output_dtype(int i) const { return signature_.outputs[i]; }
  // As far as known. For a kResource output: the shape of the variable behind it.
  const PartialShape& output_shape(int i) const { return output_shapes_[i]; }
  const std::string& requested_device() const { return requested_device_; }
  // Full once placed, else empty.
  const DeviceName& assigned_device() const { return assigned_device_; }
  const SourceLocation& location() const { return location_; }

 private:
  friend class Graph;
  NodeId id_ = -1;
  std::string name_;
  const OpDef* op_ = nullptr;
  AttrMap attrs_;
  NodeSignature signature_;
  std::vector<Port> inputs_;
  std::vector<NodeId> control_inputs_;
  std::vector<PartialShape> output_shapes_;
  std::string requested_device_;
  DeviceName assigned_device_;
  SourceLocation location_;
};

// Invariants (checked by Verify, verify.h): names are unique; every input names an existing port of
// the dtype that the op wants; control inputs exist and are no duplicates; there is no cycle;
// attributes resolve against the op; output shapes are what the shape functions say or better.
// Copyable (deep). Thread-compatible.
class Graph {
 public:
  explicit Graph(std::shared_ptr<const OpRegistry> ops);
  Graph(const Graph& other);
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;

  const OpRegistry& ops() const { return *ops_; }
  const std::shared_ptr<const OpRegistry>& shared_ops() const { return ops_; }

  // Checks the op, attributes, input dtypes and shapes; the node's inputs must exist. Errors name
  // the node and what is wrong, and nothing is added.
  StatusOr<NodeId> AddNode(NodeSpec spec);
  // A node like `node` (of any graph over the same ops) with other name and inputs. Shapes, devices
  // and attributes are kept and nothing is checked: for rewrites that copy what was checked before.
  // REQUIRES: `name` is free, the inputs exist and have the dtypes of those they stand for.
  NodeId AddCopy(const Node& node, std::string name, std::vector<Port> inputs,
                 std::vector<NodeId> control_inputs);
  // REQUIRES: nothing refers to it any more. Its id is not used again.
  void RemoveNode(NodeId id);
  // Takes back the nodes with ids from `num_ids` on, as if they had never been added.
  // REQUIRES: no older node refers to them.
  void Rollback(NodeId num_ids);

  // One past the largest id; ids of removed nodes give null.
  NodeId num_ids() const { return static_cast<NodeId>(nodes_.size()); }
  int num_nodes() const { return live_; }
  const Node* node(NodeId id) const { return nodes_[id].get(); }
  bool IsLive(NodeId id) const { return id >= 0 && id < num_ids() && nodes_[id] != nullptr; }
  // Null if there is none.
  const Node* Find(absl::string_view name) const;
  // "x", "x:1"; NotFound names it (and the nearest name there is, or the outputs that there are).
  StatusOr<Port> FindPort(absl::string_view name) const;
  // "x" for output 0, "x:1" else.
  std::string PortName(Port port) const;
  DType dtype(Port port) const { return nodes_[port.node]->output_dtype(port.index); }
  const PartialShape& shape(Port port) const { return nodes_[port.node]->output_shape(port.index); }
  // A name that is free: `base`, else `base_1`, ... It is taken once a node has it.
  std::string UniqueName(absl::string_view base);

  // Changes. Dtypes must fit (checked: InvalidArgument). Shapes are not inferred anew: see
  // InferShapes.
  Status ReplaceInput(NodeId node, int input, Port port);
  // No effect if it is there already. REQUIRES: both exist.
  void AddControlInput(NodeId node, NodeId before);
  void RemoveControlInput(NodeId node, NodeId before);
  // All consumers of `from` read `to` instead, but for the node of `to` itself: so that what was
  // put behind `from` can take its place. O(graph).
  Status ReplaceUses(Port from, Port to);
  // Sets an attribute that does not change the signature (annotations, values, shapes).
  void SetAttr(NodeId node, absl::string_view name, AttrValue value);
  void SetRequestedDevice(NodeId node, std::string device);
  void SetAssignedDevice(NodeId node, DeviceName device);
  void SetOutputShape(Port port, PartialShape shape);

  // Runs the node's shape function on what is known of its inputs and refines its output shapes.
  // InvalidArgument if they contradict.
  Status InferShapes(NodeId node);

  // Definitions of functions, serialised as the public FunctionDefLibrary; kept and passed on.
  const std::string& library() const { return library_; }
  void set_library(std::string bytes) { library_ = std::move(bytes); }

  // Value of a port that is a constant (Trait::kConstant), through identities (a thousand at most,
  // so that a look-up costs little in any graph); null if it is not.
  const Tensor* ConstantValue(Port port) const;

 private:
  Status InitNode(NodeSpec spec, Node& node) const;
  NodeId Insert(std::unique_ptr<Node> node);

  std::shared_ptr<const OpRegistry> ops_;
  std::vector<std::unique_ptr<Node>> nodes_;
  absl::flat_hash_map<std::string, NodeId> by_name_;
  absl::flat_hash_map<std::string, int> next_suffix_;
  int live_ = 0;
  std::string library_;
};

// The annotation that holds colocations, as in public graphs: a list of "loc:@name".
inline constexpr char kColocationAttr[] = "_class";

// The annotation, a string, by which a rewrite says why it requested a node's device; placement
// reports show it.
inline constexpr char kRequestReasonAttr[] = "_millrace_request_reason";

// The annotation (list(string)) that names those control inputs which order, but are no reason to
// run: in a step that needs them for something else they run first, and Prune leaves them out of
// any other, and puts what orders those in their place. A read that was added after an update has
// the update here: else no step could read a variable without running its initialiser again. An
// update has the reads and the update before it: else none could initialise what was read.
inline constexpr char kOrderOnlyAttr[] = "_millrace_order_only";

}  // namespace millrace

#endif  // CORE_GRAPH_GRAPH_H_
