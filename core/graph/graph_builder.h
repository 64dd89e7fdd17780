#ifndef CORE_GRAPH_GRAPH_BUILDER_H_
#define CORE_GRAPH_GRAPH_BUILDER_H_

#include <memory>
#include <string>
#include <vector>

#include "core/base/source_location.h"
#include "core/graph/graph.h"

namespace millrace {

class GraphBuilder;

// An operation in a builder's graph, as a target or a control dependency. Poisoned after an error.
class Operation {
 public:
  Operation() = default;
  Operation(GraphBuilder* builder, NodeId node) : builder_(builder), node_(node) {}
  bool ok() const { return node_ >= 0; }
  GraphBuilder* builder() const { return builder_; }
  NodeId node() const { return node_; }
  const std::string& name() const;  // "" if poisoned

 private:
  GraphBuilder* builder_ = nullptr;
  NodeId node_ = -1;
};

// One output of an operation: what model code computes with. A poisoned value (after an error)
// still knows its builder, so that model code can go on and is checked once at its end.
class Value {
 public:
  Value() = default;
  Value(GraphBuilder* builder, Port port) : builder_(builder), port_(port) {}
  bool ok() const { return port_.node >= 0; }
  GraphBuilder* builder() const { return builder_; }
  Port port() const { return port_; }
  Operation operation() const { return Operation(builder_, port_.node); }
  DType dtype() const;         // kInvalid if poisoned
  PartialShape shape() const;  // unknown if poisoned
  std::string name() const;    // "x:0"; "" if poisoned

 private:
  GraphBuilder* builder_ = nullptr;
  Port port_;
};

// Builds a graph as an expression. Keeps the first error (with op, name scope and the user's source
// line) and returns poisoned values from then on. Not thread-safe; not movable, as values point to
// it.
//
//   GraphBuilder b(ops);
//   Value x = Placeholder(b, DType::kFloat, {PartialShape::kUnknown, 784});
//   { auto scope = b.NameScope("dense"); y = BiasAdd(MatMul(x, w), bias); }
//   if (!b.status().ok()) ...
class GraphBuilder {
 public:
  explicit GraphBuilder(std::shared_ptr<const OpRegistry> ops);
  GraphBuilder(const GraphBuilder&) = delete;
  GraphBuilder& operator=(const GraphBuilder&) = delete;

  // Ends what it began (a name scope, a device, ...) when destroyed.
  class [[nodiscard]] Scope {
   public:
    Scope(Scope&& other) noexcept;
    ~Scope();

   private:
    friend class GraphBuilder;
    Scope(GraphBuilder* builder, int kind) : builder_(builder), kind_(kind) {}
    GraphBuilder* builder_;
    int kind_;
  };
  // Names of nodes begin with "name/"; made unique ("name_1/") if the scope was used before.
  Scope NameScope(absl::string_view name);
  // Requested device of new nodes; parts left open come from the enclosing device scope.
  Scope DeviceScope(absl::string_view device);
  // New nodes are placed where `operation` is. Device and colocation scopes around this one do not
  // count in it.
  Scope ColocateWith(Operation operation);
  // As ColocateWith, but new nodes only request the device that `operation` requests, if any.
  Scope DeviceOf(Operation operation);
  // New nodes run after all of `operations`.
  Scope ControlDependencies(std::vector<Operation> operations);
  // New nodes run after nothing but their inputs, whatever scopes are around: for steps of their
  // own, such as an initialiser's.
  Scope NoControlDependencies();
  // New nodes are made as if no scope were around this one.
  Scope RootScope();

  // Adds a node named `name` (or after its op) in the current scopes. The general form: ops/*.h has
  // a documented function for each op.
  Operation Add(absl::string_view op, absl::Span<const Value> inputs, AttrMap attrs,
                SourceLocation where, absl::string_view name = "");
  // As Add; the node's outputs (poisoned ones if it failed: `outputs` many).
  std::vector<Value> AddMany(absl::string_view op, absl::Span<const Value> inputs, AttrMap attrs,
                             int outputs, SourceLocation where, absl::string_view name = "");
  Value AddOne(absl::string_view op, absl::Span<const Value> inputs, AttrMap attrs,
               SourceLocation where, absl::string_view name = "");

  // Variables: reads and updates of one variable run in the order in which they were added, as far
  // as a step runs them; none is a reason to run another (kOrderOnlyAttr). Reads between two
  // updates share one node, if no control dependencies tell them apart, and run in any order. A
  // read is placed where its variable is.
  Value ReadVariable(Value handle, DType dtype, SourceLocation where);
  // Any other op that reads the variable behind its first input: ordered and placed as
  // ReadVariable.
  Value AddRead(absl::string_view op, absl::Span<const Value> inputs, AttrMap attrs,
                SourceLocation where);
  // To be called for each op that changes the variable behind `handle`.
  void NoteUpdate(Value handle, Operation update);

  // Records `error` (with the scope and `where`) unless there is one already.
  void Fail(const Status& error, SourceLocation where);
  const Status& status() const { return status_; }

  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }
  std::string CurrentScope() const;  // "conv1/", "" at the top

 private:
  friend class Scope;
  void EndScope(int kind);
  // Adds a node of that full name, made unique; poisoned after an error.
  Operation AddNamed(absl::string_view full_name, absl::string_view op,
                     absl::Span<const Value> inputs, AttrMap attrs, SourceLocation where);
  bool CollectInputs(absl::string_view op, absl::Span<const Value> inputs, SourceLocation where,
                     std::vector<Port>* ports);
  struct VariableUses {
    Port read;  // the shared read, node -1 if none since the last update
    std::vector<NodeId> reads_since_update;
    NodeId last_update = -1;
  };
  Graph graph_;
  Status status_;
  std::vector<std::string> name_scopes_;        // "conv1/"
  std::vector<std::string> device_scopes_;      // merged with those around
  std::vector<std::string> colocation_scopes_;  // node names, "" for none
  std::vector<std::vector<NodeId>> control_scopes_;
  std::vector<std::vector<std::vector<NodeId>>> set_aside_;  // control scopes that do not count now
  absl::flat_hash_map<NodeId, VariableUses> variables_;      // by the handle's node
  absl::flat_hash_map<std::string, int> used_scopes_;
};

}  // namespace millrace

#endif  // CORE_GRAPH_GRAPH_BUILDER_H_
