#ifndef CORE_GRAPH_GRADIENTS_H_
#define CORE_GRAPH_GRADIENTS_H_

#include <vector>

#include "core/graph/graph_builder.h"

namespace millrace {

// What an op's gradient function sees: the forward node, and the gradients of the result with
// respect to its outputs. It says the gradients with respect to its inputs, written with the
// functions of ops/*.h.
//
//   Status TanhGradient(GradientContext& c) {   // dx = dy (1 - y^2)
//     c.set_dx(0, Mul(c.dy(0), Sub(c.One(c.output(0)), Square(c.output(0)))));
//     return absl::OkStatus();
//   }
class GradientContext {
 public:
  GradientContext(GraphBuilder* builder, NodeId node, std::vector<Value> dy,
                  std::vector<bool> needed);
  GraphBuilder& builder() const { return *builder_; }
  const Node& node() const { return *builder_->graph().node(node_); }
  const AttrMap& attrs() const { return node().attrs(); }
  int num_inputs() const { return static_cast<int>(node().inputs().size()); }
  Value input(int i) const { return Value(builder_, node().inputs()[i]); }
  Value output(int i) const { return Value(builder_, Port{node_, i}); }
  // Whether any gradient reaches output i; dy(i) is ZerosLike(output) if not.
  bool has_dy(int i) const { return dy_[i].ok(); }
  Value dy(int i);
  // Whether the gradient of input i is asked for; setting one that is not does no harm.
  bool needs_dx(int i) const { return needed_[i]; }
  void set_dx(int i, Value dx) { dx_[i] = dx; }
  const std::vector<Value>& dx() const { return dx_; }

 private:
  GraphBuilder* builder_;
  NodeId node_;
  std::vector<Value> dy_;
  std::vector<bool> needed_;
  std::vector<Value> dx_;
};

// Adds nodes that compute the gradients of sum_i <dy_i, y_i> with respect to `xs`; `dys` may be
// empty (ones). Nodes go to the scope "gradients", each beside (requested device) its forward node.
// An x on which no y depends is InvalidArgument and named; so is a path through an op that is not
// differentiable (with its reason). Integers stop gradients. (Symbolic reverse mode: pending
// counts, AddN where paths meet.) Iterative: depth is not limited by the stack.
StatusOr<std::vector<Value>> Gradients(absl::Span<const Value> ys, absl::Span<const Value> xs,
                                       absl::Span<const Value> dys = {},
                                       SourceLocation where = SourceLocation::Current());

}  // namespace millrace

#endif  // CORE_GRAPH_GRADIENTS_H_
