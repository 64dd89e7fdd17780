#include "core/graph/gradients.h"

#include <utility>

#include "absl/container/flat_hash_map.h"

namespace millrace {

GradientContext::GradientContext(GraphBuilder* builder, NodeId node, std::vector<Value> dy,
                                 std::vector<bool> needed)
    : builder_(builder), node_(node), dy_(std::move(dy)), needed_(std::move(needed)) {
  dx_.resize(needed_.size());
}

Value GradientContext::dy(int i) {
  if (!dy_[i].ok()) {
    dy_[i] = builder_->AddOne("ZerosLike", {output(i)}, {}, node().location());
  }
  return dy_[i];
}

namespace {

// "MatMul 'y'"
std::string Describe(const Node& node) { return StrCat(node.op().name(), " '", node.name(), "'"); }

// Gradients go back from `ys` to `xs` over floating-point values, through the nodes on a path
// between them.
class Differentiator {
 public:
  Differentiator(absl::Span<const Value> ys, absl::Span<const Value> xs,
                 absl::Span<const Value> dys, SourceLocation where)
      : builder_(*ys[0].builder()),
        graph_(builder_.graph()),
        ys_(ys),
        xs_(xs),
        dys_(dys),
        where_(where) {}

  StatusOr<std::vector<Value>> Run() {
    MR_RETURN_IF_ERROR(Order());
    FindPaths();
    MR_RETURN_IF_ERROR(CheckReachable());
    const GraphBuilder::Scope scope = builder_.NameScope("gradients");
    MR_RETURN_IF_ERROR(Seed());
    for (size_t i = order_.size(); i-- > 0;) {
      if (on_path_[order_[i]]) MR_RETURN_IF_ERROR(Visit(order_[i]));
    }
    std::vector<Value> result;
    for (const Value& x : xs_) {
      const GraphBuilder::Scope device = builder_.DeviceOf(x.operation());
      Value dx = Sum(x.port());
      // Every gradient function on the way may have said that its gradient is zero.
      if (!dx.ok()) dx = builder_.AddOne("ZerosLike", {x}, {}, where_);
      result.push_back(dx);
    }
    MR_RETURN_IF_ERROR(builder_.status());
    return result;
  }

 private:
  // Whether a gradient can go from the outputs of a node to its inputs at all.
  static bool IsBarrier(const Node& node) {
    return node.op().Has(Trait::kReadsVariable) || node.op().Has(Trait::kNoGradientStop);
  }

  // Lists what `ys` are computed from, inputs before users: a depth-first search with a stack of
  // its own.
  Status Order() {
    enum State : uint8_t { kNew, kOpen, kDone };
    std::vector<State> state(graph_.num_ids(), kNew);
    std::vector<std::pair<NodeId, size_t>> stack;  // a node and its next input
    for (const Value& y : ys_) {
      if (state[y.port().node] == kNew) stack.push_back({y.port().node, 0});
      while (!stack.empty()) {
        auto& [id, next] = stack.back();
        const Node& node = *graph_.node(id);
        state[id] = kOpen;
        if (IsBarrier(node) || next == node.inputs().size()) {
          state[id] = kDone;
          order_.push_back(id);
          stack.pop_back();
          continue;
        }
        const Port input = node.inputs()[next++];
        if (!IsFloating(graph_.dtype(input)) || state[input.node] == kDone) continue;
        if (state[input.node] == kOpen) {
          return InvalidArgument("the graph has a cycle through '", graph_.node(input.node)->name(),
                                 "'");
        }
        stack.push_back({input.node, 0});
      }
    }
    return absl::OkStatus();
  }

  // Marks the nodes through which an x reaches a y, and the inputs by which it does so.
  void FindPaths() {
    on_path_.assign(graph_.num_ids(), false);
    for (const Value& x : xs_) is_x_.try_emplace(x.port(), false);
    for (const Value& y : ys_) NoteUse(y.port());
    for (const NodeId id : order_) {
      const Node& node = *graph_.node(id);
      if (IsBarrier(node)) continue;
      for (const Port& input : node.inputs()) {
        if (!IsFloating(graph_.dtype(input))) continue;
        if (NoteUse(input) || on_path_[input.node]) on_path_[id] = true;
      }
    }
  }

  // Whether `port` is an x, which is so known to be used.
  bool NoteUse(Port port) {
    const auto x = is_x_.find(port);
    if (x == is_x_.end()) return false;
    x->second = true;
    return true;
  }

  Status CheckReachable() const {
    for (size_t i = 0; i < xs_.size(); ++i) {
      if (is_x_.at(xs_[i].port())) continue;
      return InvalidArgument("no gradient with respect to '", graph_.PortName(xs_[i].port()),
                             "' (x ", i, "): no y depends on it by floating-point values");
    }
    return absl::OkStatus();
  }

  Status Seed() {
    for (size_t i = 0; i < ys_.size(); ++i) {
      Value dy = i < dys_.size() ? dys_[i] : Value();
      if (dy.builder() == nullptr) {
        const GraphBuilder::Scope device = builder_.DeviceOf(ys_[i].operation());
        dy = builder_.AddOne("OnesLike", {ys_[i]}, {}, where_);
      }
      MR_RETURN_IF_ERROR(builder_.status());
      contributions_[ys_[i].port()].push_back(dy);
    }
    return absl::OkStatus();
  }

  // The gradient that has come together at `port`; not ok if none has. Later calls give the same.
  Value Sum(Port port) {
    const auto found = contributions_.find(port);
    if (found == contributions_.end()) return Value();
    std::vector<Value>& values = found->second;
    if (values.size() > 1) values = {builder_.AddOne("AddN", values, {}, where_)};
    return values[0];
  }

  // Passes the gradients of a node's outputs on to its inputs. All users have been visited.
  Status Visit(NodeId id) {
    const std::string name = graph_.node(id)->name();
    const int num_outputs = graph_.node(id)->num_outputs();
    const GraphBuilder::Scope scope = builder_.NameScope(StrCat(name, "_grad"));
    const GraphBuilder::Scope device = builder_.DeviceOf(Operation(&builder_, id));
    std::vector<Value> dy(num_outputs);
    bool any = false;
    for (int i = 0; i < num_outputs; ++i) {
      dy[i] = Sum(Port{id, i});
      any |= dy[i].ok();
    }
    MR_RETURN_IF_ERROR(builder_.status());
    if (!any) return absl::OkStatus();
    const Node& node = *graph_.node(id);
    if (!node.op().gradient_fn()) return NotDifferentiable(node);
    std::vector<bool> needed;
    needed.reserve(node.inputs().size());
    for (const Port& input : node.inputs()) {
      needed.push_back(IsFloating(graph_.dtype(input)) &&
                       (is_x_.contains(input) || on_path_[input.node]));
    }
    GradientContext context(&builder_, id, std::move(dy), needed);
    const Status status = node.op().gradient_fn()(context);
    if (!status.ok()) return Annotate(status, StrCat("gradient of ", Describe(*graph_.node(id))));
    MR_RETURN_IF_ERROR(builder_.status());
    for (size_t i = 0; i < needed.size(); ++i) {
      if (needed[i] && context.dx()[i].ok()) {
        MR_RETURN_IF_ERROR(Contribute(*graph_.node(id), i, context.dx()[i]));
      }
    }
    return absl::OkStatus();
  }

  Status Contribute(const Node& node, size_t input, const Value& dx) {
    const Port port = node.inputs()[input];
    if (dx.builder() != &builder_ || dx.dtype() != graph_.dtype(port) ||
        !dx.shape().IsCompatibleWith(graph_.shape(port))) {
      return Internal("gradient of ", Describe(node), ": that of input ", input, " is ",
                      Name(dx.dtype()), " ", dx.shape().ToString(), ", but the input is ",
                      Name(graph_.dtype(port)), " ", graph_.shape(port).ToString());
    }
    contributions_[port].push_back(dx);
    return absl::OkStatus();
  }

  static Status NotDifferentiable(const Node& node) {
    const std::string& reason = node.op().not_differentiable();
    return InvalidArgument("no gradient flows through ", Describe(node),
                           ", which is between the xs and the ys: ",
                           reason.empty() ? "its op has no gradient" : reason);
  }

  GraphBuilder& builder_;
  const Graph& graph_;
  const absl::Span<const Value> ys_;
  const absl::Span<const Value> xs_;
  const absl::Span<const Value> dys_;
  const SourceLocation where_;
  std::vector<NodeId> order_;             // forward nodes, inputs before users
  std::vector<bool> on_path_;             // by id, of the forward nodes
  absl::flat_hash_map<Port, bool> is_x_;  // to whether a y depends on it
  absl::flat_hash_map<Port, std::vector<Value>> contributions_;
};

Status CheckValues(absl::string_view what, absl::Span<const Value> values, GraphBuilder* builder) {
  for (size_t i = 0; i < values.size(); ++i) {
    const Value& value = values[i];
    if (value.builder() != builder || !value.ok()) {
      return InvalidArgument(what, " ", i, " is not a value of the builder of y 0");
    }
    if (!IsFloating(value.dtype())) {
      return InvalidArgument(
          what, " ", i, " (", value.name(), ") is ", Name(value.dtype()),
          ", but only floating-point values have gradients",
          value.dtype() == DType::kResource ? "; read the variable and take the value" : "");
    }
  }
  return absl::OkStatus();
}

Status CheckSeeds(absl::Span<const Value> ys, absl::Span<const Value> dys) {
  if (!dys.empty() && dys.size() != ys.size()) {
    return InvalidArgument("there are ", dys.size(), " dys for ", ys.size(), " ys");
  }
  for (size_t i = 0; i < dys.size(); ++i) {
    if (dys[i].builder() == nullptr) continue;
    MR_RETURN_IF_ERROR(CheckValues("dy", dys.subspan(i, 1), ys[i].builder()));
    if (dys[i].dtype() != ys[i].dtype() || !dys[i].shape().IsCompatibleWith(ys[i].shape())) {
      return InvalidArgument("dy ", i, " is ", Name(dys[i].dtype()), " ", dys[i].shape().ToString(),
                             ", but y ", i, " (", ys[i].name(), ") is ", Name(ys[i].dtype()), " ",
                             ys[i].shape().ToString());
    }
  }
  return absl::OkStatus();
}

StatusOr<std::vector<Value>> Differentiate(absl::Span<const Value> ys, absl::Span<const Value> xs,
                                           absl::Span<const Value> dys, SourceLocation where) {
  if (ys.empty()) return InvalidArgument("there is no y to differentiate");
  GraphBuilder* builder = ys[0].builder();
  if (builder == nullptr) return InvalidArgument("y 0 is an empty Value");
  MR_RETURN_IF_ERROR(CheckValues("y", ys, builder));
  MR_RETURN_IF_ERROR(CheckValues("x", xs, builder));
  MR_RETURN_IF_ERROR(CheckSeeds(ys, dys));
  return Differentiator(ys, xs, dys, where).Run();
}

}  // namespace

StatusOr<std::vector<Value>> Gradients(absl::Span<const Value> ys, absl::Span<const Value> xs,
                                       absl::Span<const Value> dys, SourceLocation where) {
  GraphBuilder* builder = ys.empty() ? nullptr : ys[0].builder();
  // The error that the builder has kept says where things went wrong first.
  if (builder != nullptr) MR_RETURN_IF_ERROR(builder->status());
  StatusOr<std::vector<Value>> result = Differentiate(ys, xs, dys, where);
  if (result.ok() || (builder != nullptr && !builder->status().ok())) return result;
  if (where.line == 0) return result;
  return Status(result.status().code(),
                StrCat(result.status().message(), " (at ", where.file, ":", where.line, ")"));
}

}  // namespace millrace
