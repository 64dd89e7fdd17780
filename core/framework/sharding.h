#ifndef CORE_FRAMEWORK_SHARDING_H_
#define CORE_FRAMEWORK_SHARDING_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/framework/attr.h"

namespace millrace {

// How one logical tensor lies along one axis of a device mesh (as in GSPMD and OneFlow's SBP).
struct Sharding {
  enum Kind { kReplicated, kSplit, kPartialSum };
  Kind kind = kReplicated;
  int dim = 0;  // of kSplit

  static Sharding Replicated() { return {}; }
  static Sharding Split(int dim) { return {kSplit, dim}; }
  static Sharding PartialSum() { return {kPartialSum, 0}; }
  std::string ToString() const;  // "B", "S(0)", "P"
  friend bool operator==(const Sharding& a, const Sharding& b) {
    return a.kind == b.kind && (a.kind != kSplit || a.dim == b.dim);
  }
  friend bool operator!=(const Sharding& a, const Sharding& b) { return !(a == b); }
};

// What an op's sharding rule sees and says. Shapes are always the logical, global ones.
class ShardingContext {
 public:
  ShardingContext(const AttrMap& attrs, absl::Span<const Sharding> inputs,
                  absl::Span<const PartialShape> input_shapes,
                  absl::Span<const Tensor* const> host_values,
                  absl::Span<const PartialShape> output_shapes)
      : attrs_(attrs),
        input_shapes_(input_shapes),
        host_values_(host_values),
        output_shapes_(output_shapes),
        inputs_(inputs.begin(), inputs.end()),
        outputs_(output_shapes.size()),
        mean_over_parts_(output_shapes.size(), false) {}

  const AttrMap& attrs() const { return attrs_; }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  // As it is available; after Require, as the op will get it.
  const Sharding& input(int i) const { return inputs_[i]; }
  const PartialShape& input_shape(int i) const { return input_shapes_[i]; }
  const PartialShape& output_shape(int i) const { return output_shapes_[i]; }
  const Tensor* host_value(int i) const { return host_values_[i]; }

  // The op needs input i in this form: the rewrite inserts the cheapest conversion.
  void Require(int i, Sharding sharding) { inputs_[i] = sharding; }
  void set_output(int i, Sharding sharding) { outputs_[i] = sharding; }
  const Sharding& output(int i) const { return outputs_[i]; }

  // Element `element` of the host operand i is a global extent that is split: each part gets its
  // own extent in its place (Reshape, BroadcastTo, Fill: ops with shape operands).
  void LocalizeHostElement(int i, int64_t element) { localized_.push_back({i, element}); }
  // Output i is a mean over the split dimension: each part's value is weighted by its share of
  // that dimension, which makes the outputs partial sums.
  void set_mean_over_parts(int i) { mean_over_parts_[i] = true; }

  struct HostElement {
    int input;
    int64_t element;
  };
  absl::Span<const HostElement> localized() const { return localized_; }
  bool mean_over_parts(int i) const { return mean_over_parts_[i]; }

 private:
  const AttrMap& attrs_;
  absl::Span<const PartialShape> input_shapes_;
  absl::Span<const Tensor* const> host_values_;
  absl::Span<const PartialShape> output_shapes_;
  std::vector<Sharding> inputs_;
  std::vector<Sharding> outputs_;
  std::vector<bool> mean_over_parts_;
  std::vector<HostElement> localized_;
};

// The rule of an op that has none of its own: all inputs and outputs replicated.
Status ReplicatedSharding(ShardingContext& c);

}  // namespace millrace

#endif  // CORE_FRAMEWORK_SHARDING_H_
