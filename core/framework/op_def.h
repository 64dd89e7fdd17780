#ifndef CORE_FRAMEWORK_OP_DEF_H_
#define CORE_FRAMEWORK_OP_DEF_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/framework/attr.h"
#include "core/framework/shape_context.h"
#include "core/framework/sharding.h"

namespace millrace {

class GradientContext;  // core/graph/gradients.h

// Facts about an op that passes, placer and executor ask for, instead of its name.
enum class Trait : uint32_t {
  kStateful = 1 << 0,         // not folded, merged, or run other than once a step
  kElementwise = 1 << 1,      // output element i depends on input elements i only (after broadcast)
  kCommutative = 1 << 2,      // in its first two inputs
  kInPlace = 1 << 3,          // output 0 may take the buffer of an input of its size
  kCheap = 1 << 4,            // to recompute
  kOptimizerUpdate = 1 << 5,  // updates variables from gradients
  kAllocatesOutputs =
      1 << 6,                // the kernel makes or passes on its outputs; none is allocated for it
  kReadsVariable = 1 << 7,   // input 0 is a resource that is read
  kWritesVariable = 1 << 8,  // input 0 is a resource that is changed
  kConstant = 1 << 9,        // its value is the attribute 'value'
  kPlaceholder = 1 << 10,    // must be fed
  kSend = 1 << 11,
  kRecv = 1 << 12,
  kIdentity = 1 << 13,        // output 0 is input 0
  kVariable = 1 << 14,        // makes the handle of a variable
  kNoGradientStop = 1 << 15,  // gradient does not flow, by purpose (StopGradient)
};

// Estimated work of one run, for placement and simulation.
struct OpCost {
  double flops = 0;
  double bytes = 0;  // read and written
};

// An input or output as declared: "x: T", "sizes: int32", "values: N * T", "inputs: Tlist".
struct ArgDef {
  std::string name;
  DType dtype = DType::kInvalid;  // fixed dtype, or
  std::string type_attr;          // the attribute that names it, or
  std::string type_list_attr;     // the list(type) attribute
  std::string number_attr;        // how many, for "N * T"
  bool host_memory = false;       // always in host memory: shapes, axes, paddings
};

// An attribute as declared: "T: {float, double}", "axis: int = 0", "strides: list(int) >= 4".
struct AttrDef {
  std::string name;
  std::string kind;  // "type", "int", "list(int)", "string", "shape", ...
  std::optional<AttrValue> default_value;
  std::vector<DType> allowed_types;  // of a type, if limited
  std::vector<std::string> allowed_strings;
  std::optional<int64_t> minimum;  // of an int, or of a list's length
};

using ShapeFn = std::function<Status(ShapeContext&)>;
using GradientFn = std::function<Status(GradientContext&)>;
using ShardingFn = std::function<Status(ShardingContext&)>;
using CostFn = std::function<OpCost(const ShapeContext&)>;
// The value of output `output` where the shapes of the inputs alone determine it (Shape, Size,
// Rank); an invalid tensor while they do not yet.
using ValueFromShapesFn = std::function<StatusOr<Tensor>(const ShapeContext&, int output)>;

// All that the system knows of an op. Signature grammar: that of the public op set.
//
//   registry.Add(OpDef("BiasAdd")
//                    .Input("value: T").Input("bias: T").Output("output: T")
//                    .Attr("T: {float, double}")
//                    .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
//                    .Shape(BiasAddShape).Gradient(BiasAddGradient).Sharding(BatchSharding));
class OpDef {
 public:
  explicit OpDef(std::string name) : name_(std::move(name)) {}

  OpDef& Input(absl::string_view spec);
  OpDef& HostInput(absl::string_view spec);  // in host memory on every device
  OpDef& Output(absl::string_view spec);
  OpDef& HostOutput(absl::string_view spec);
  OpDef& Attr(absl::string_view spec);
  OpDef& Shape(ShapeFn fn);
  OpDef& Gradient(GradientFn fn);
  OpDef& NotDifferentiable(absl::string_view reason);
  OpDef& Sharding(ShardingFn fn);
  OpDef& Cost(CostFn fn);
  OpDef& ValueFromShapes(ValueFromShapesFn fn) {
    value_from_shapes_ = std::move(fn);
    return *this;
  }
  OpDef& Traits(std::initializer_list<Trait> traits);
  // One sentence for generated documentation.
  OpDef& Doc(absl::string_view text);

  const std::string& name() const { return name_; }
  const std::vector<ArgDef>& inputs() const { return inputs_; }
  const std::vector<ArgDef>& outputs() const { return outputs_; }
  const std::vector<AttrDef>& attrs() const { return attrs_; }
  const AttrDef* FindAttr(absl::string_view name) const;
  const ShapeFn& shape_fn() const { return shape_fn_; }
  const GradientFn& gradient_fn() const { return gradient_fn_; }  // null if not differentiable
  const std::string& not_differentiable() const { return not_differentiable_; }
  const ShardingFn& sharding_fn() const { return sharding_fn_; }  // null: replicated only
  const CostFn& cost_fn() const { return cost_fn_; }              // null: bytes of in- and outputs
  const ValueFromShapesFn& value_from_shapes() const { return value_from_shapes_; }  // or null
  bool Has(Trait trait) const { return (traits_ & static_cast<uint32_t>(trait)) != 0; }
  const std::string& doc() const { return doc_; }
  // What is wrong with the specs, if anything; OpRegistry::Add checks it.
  const Status& status() const { return status_; }

 private:
  OpDef& AddArg(absl::string_view spec, bool host_memory, std::vector<ArgDef>& args);
  void Link();
  std::string name_;
  std::vector<ArgDef> inputs_;
  std::vector<ArgDef> outputs_;
  std::vector<AttrDef> attrs_;
  ShapeFn shape_fn_;
  GradientFn gradient_fn_;
  ShardingFn sharding_fn_;
  CostFn cost_fn_;
  ValueFromShapesFn value_from_shapes_;
  uint32_t traits_ = 0;
  std::string not_differentiable_;
  std::string doc_;
  Status status_;
};

// The dtypes and host flags of a node's ports, from its op and attributes.
struct NodeSignature {
  std::vector<DType> inputs;
  std::vector<DType> outputs;
  std::vector<bool> host_inputs;
  std::vector<bool> host_outputs;
};

// Fills in defaults, checks each declared attribute (kind, allowed values, minimum) and that there
// is no unknown one (annotations, which start with '_', pass), then gives the signature.
StatusOr<NodeSignature> ResolveSignature(const OpDef& op, AttrMap& attrs);

// Sets type and number attributes that the dtypes of the inputs determine ("T", "N") and checks
// that they agree; attributes already set must agree too.
Status InferTypeAttrs(const OpDef& op, absl::Span<const DType> inputs, AttrMap& attrs);

// The ops of a program. Filled once by ordinary functions, then only read (thread-safe).
class OpRegistry {
 public:
  // Errors (a malformed spec, a name twice, neither gradient nor reason, no shape function) are
  // kept for status(), the first of them; such an op is not added.
  void Add(OpDef op);
  // Null if there is none.
  const OpDef* Find(absl::string_view name) const;
  const Status& status() const { return status_; }
  std::vector<const OpDef*> All() const;  // by name

 private:
  absl::flat_hash_map<std::string, std::unique_ptr<const OpDef>> ops_;
  Status status_;
};

}  // namespace millrace

#endif  // CORE_FRAMEWORK_OP_DEF_H_
