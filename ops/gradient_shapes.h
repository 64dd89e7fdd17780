#ifndef OPS_GRADIENT_SHAPES_H_
#define OPS_GRADIENT_SHAPES_H_

#include <optional>
#include <vector>

#include "core/graph/gradients.h"

// Gradients must have the shape of what they belong to. These functions settle what the static
// shapes tell when the graph is built, and leave the rest to Shape ops in the step.
namespace millrace {

// x's shape as a vector: a constant if it is known, else a Shape op.
Value ShapeValue(Value x);
// `g`, which has as many elements as x, in x's shape.
Value ReshapeLike(Value g, Value x);

// The axes of the broadcast of x with y along which x is repeated; nothing if the shapes do not
// tell.
std::optional<std::vector<int64_t>> BroadcastAxes(const PartialShape& x, const PartialShape& y);

// `g`, which has the shape of x broadcast with `other`, summed to the shape of x. `other` may be
// the result of the broadcast.
Value SumToShapeOf(Value g, Value x, Value other);

// `g` summed over `axes` (ascending) of a broadcast; the first `added` of them go, the others stay
// with extent 1.
Value SumOverBroadcast(Value g, const std::vector<int64_t>& axes, int64_t added);

// The gradients of a binary op with broadcasting: sets dx(i) to `g` summed to input i's shape.
class BroadcastGradients {
 public:
  explicit BroadcastGradients(GradientContext& c) : c_(c) {}
  bool needs(int i) const { return c_.needs_dx(i); }
  void Set(int i, Value g);

 private:
  GradientContext& c_;
  std::vector<Value> axes_;  // of both, from BroadcastGradientArgs, once it is needed
};

// Sets nothing, which means zero: the gradient of a function that is constant almost everywhere, or
// through which none is to flow.
Status ZeroGradient(GradientContext& c);

}  // namespace millrace

#endif  // OPS_GRADIENT_SHAPES_H_
