#ifndef CORE_FRAMEWORK_SHAPE_CONTEXT_H_
#define CORE_FRAMEWORK_SHAPE_CONTEXT_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/framework/attr.h"

namespace millrace {

// What a shape function sees: shapes of the inputs, and values of those that live in host memory
// (shapes, axes, paddings) when they are known. The same function runs at build time with partial
// shapes and at run time with full ones. Errors say what is wrong with which input; the caller adds
// the node.
class ShapeContext {
 public:
  ShapeContext(const AttrMap& attrs, absl::Span<const PartialShape> inputs,
               absl::Span<const Tensor* const> host_values, absl::Span<const DType> input_dtypes,
               int num_outputs)
      : attrs_(attrs),
        inputs_(inputs),
        host_values_(host_values),
        input_dtypes_(input_dtypes),
        outputs_(num_outputs) {}

  const AttrMap& attrs() const { return attrs_; }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  // For a kResource input: the shape of the variable behind it.
  const PartialShape& input(int i) const { return inputs_[i]; }
  DType input_dtype(int i) const { return input_dtypes_[i]; }
  // Null if not known (yet).
  const Tensor* host_value(int i) const {
    return i < static_cast<int>(host_values_.size()) ? host_values_[i] : nullptr;
  }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  // Unknown rank until set. For a kResource output: the shape of the variable behind it.
  void set_output(int i, PartialShape shape) { outputs_[i] = shape; }
  const PartialShape& output(int i) const { return outputs_[i]; }
  absl::Span<const PartialShape> outputs() const { return outputs_; }

  // Input i has rank `rank` (an unknown rank passes, as `rank` unknown extents).
  StatusOr<PartialShape> WithRank(int i, int rank) const;
  // The int32/int64 vector (or scalar) held by host input i; nullopt-like: NotFound if not known.
  StatusOr<std::vector<int64_t>> HostInts(int i) const;
  // The shape held by host input i as int32/int64 values; an unknown value gives a shape of unknown
  // extents (with the rank, if the input's own shape tells it).
  StatusOr<PartialShape> ShapeFromHostInput(int i) const;

 private:
  const AttrMap& attrs_;
  absl::Span<const PartialShape> inputs_;
  absl::Span<const Tensor* const> host_values_;
  absl::Span<const DType> input_dtypes_;
  std::vector<PartialShape> outputs_;
};

// Common shape functions.
Status ShapeOfInput0(ShapeContext& c);   // every output like input 0
Status ScalarShape(ShapeContext& c);     // every output a scalar
Status BroadcastShape(ShapeContext& c);  // output 0: inputs 0 and 1 broadcast
Status UnknownShape(ShapeContext& c);    // nothing can be said
Status NoOutputs(ShapeContext& c);

}  // namespace millrace

#endif  // CORE_FRAMEWORK_SHAPE_CONTEXT_H_
