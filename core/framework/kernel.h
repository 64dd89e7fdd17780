#ifndef CORE_FRAMEWORK_KERNEL_H_
#define CORE_FRAMEWORK_KERNEL_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "core/framework/attr.h"
#include "core/framework/device.h"
#include "core/framework/exchange.h"
#include "core/framework/op_def.h"

namespace millrace {

// What a kernel is made from. Valid during the factory's call only, but for `device`.
struct KernelConstruction {
  const std::string& node_name;
  const OpDef& op;
  const AttrMap& attrs;
  const NodeSignature& signature;
  Device& device;
};

// What depends on the shapes of a node's inputs only: sizes, strides, oneDNN primitives. Made by
// Kernel::Prepare once for each set of input shapes and kept by the plan; immutable and shared by
// concurrent steps.
class PreparedShapes {
 public:
  virtual ~PreparedShapes() = default;
};

struct PrepareContext {
  absl::Span<const Shape> inputs;   // of kAllocatesOutputs ops, too
  absl::Span<const Shape> outputs;  // empty for kAllocatesOutputs ops
  // Values of host inputs; null for the others. What Prepare makes may depend on them: they are
  // part of the memo's key.
  absl::Span<const Tensor* const> host_values;
};

// What one step gives to all kernels of one device.
struct StepContext {
  uint64_t step_id = 0;
  uint64_t random_counter = 0;
  Device* device = nullptr;
  Rendezvous* rendezvous = nullptr;
  CollectiveGroup* collectives = nullptr;
  SubgraphRunner* functions = nullptr;
  Cancellation* cancellation = nullptr;
};

// One run of one kernel. Inputs are read only unless taken. Outputs are allocated by the executor
// from the inferred shapes, except for ops with Trait::kAllocatesOutputs.
class KernelContext {
 public:
  KernelContext(const StepContext& step, absl::Span<Tensor* const> inputs,
                absl::Span<Tensor> outputs, const PreparedShapes* prepared)
      : step_(step), inputs_(inputs), outputs_(outputs), prepared_(prepared) {}

  const StepContext& step() const { return step_; }
  Device& device() const { return *step_.device; }
  Scheduler& pool() const { return step_.device->pool(); }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  const Tensor& input(int i) const { return *inputs_[i]; }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  Tensor& output(int i) { return outputs_[i]; }
  void set_output(int i, Tensor value) { outputs_[i] = std::move(value); }
  // Memory for output i, of an op with kAllocatesOutputs.
  Status AllocateOutput(int i, DType dtype, const Shape& shape);
  // Scratch memory of the device, for this run.
  StatusOr<Tensor> AllocateScratch(DType dtype, const Shape& shape) const;
  // What Prepare made. REQUIRES: T is that type.
  template <typename T>
  const T& prepared() const {
    return static_cast<const T&>(*prepared_);
  }

 private:
  const StepContext& step_;
  absl::Span<Tensor* const> inputs_;
  absl::Span<Tensor> outputs_;
  const PreparedShapes* prepared_;
};

// The code of one node on one device. Made once a plan; runs in many steps at once, so Compute and
// Prepare are const: what changes is in the context.
class Kernel {
 public:
  virtual ~Kernel() = default;
  // Whether it is worth a task of its own on the pool; cheap ones run on the thread that made them
  // ready.
  virtual bool IsExpensive() const { return true; }
  // Null (the default): nothing depends on shapes.
  virtual StatusOr<std::unique_ptr<PreparedShapes>> Prepare(const PrepareContext&) const {
    return std::unique_ptr<PreparedShapes>();
  }
  // Errors say what is wrong; the executor adds node, op, device and shapes.
  virtual Status Compute(KernelContext& context) const = 0;
  // Non-null if it completes later, without holding a thread.
  virtual const class AsyncKernel* async() const { return nullptr; }
};

// A kernel that waits for something: Recv, collectives, If, While.
class AsyncKernel : public Kernel {
 public:
  using Done = absl::AnyInvocable<void(Status)>;
  // `done` runs once, perhaps in this call. The context stays valid until then.
  virtual void ComputeAsync(KernelContext& context, Done done) const = 0;
  Status Compute(KernelContext&) const final { return Internal("an asynchronous kernel"); }
  const AsyncKernel* async() const final { return this; }
};

using KernelFactory = std::function<StatusOr<std::unique_ptr<Kernel>>(const KernelConstruction&)>;

// For which nodes a kernel is: op, device type, and allowed dtypes of type attributes.
struct KernelDef {
  std::string op;
  std::string device_type;  // "CPU", "CUDA"
  struct TypeConstraint {
    std::string attr;
    std::vector<DType> allowed;
  };
  std::vector<TypeConstraint> types;  // attributes not named are free
};

// The kernels of a program. Filled once by ordinary functions, then only read (thread-safe).
class KernelRegistry {
 public:
  // Errors (a second kernel for the same node, no factory) are kept for status().
  void Add(KernelDef def, KernelFactory factory);
  // A kernel for any dtype: Add("NoOp", "CPU", ...).
  void Add(absl::string_view op, absl::string_view device_type, KernelFactory factory) {
    Add(KernelDef{std::string(op), std::string(device_type), {}}, std::move(factory));
  }
  // Whether there is a kernel; else NotFound that lists the dtypes and devices there are.
  Status Check(absl::string_view op, absl::string_view device_type, const AttrMap& attrs) const;
  StatusOr<std::unique_ptr<Kernel>> Create(const KernelConstruction& construction) const;
  std::vector<const KernelDef*> All() const;        // by op, then device type
  const Status& status() const { return status_; }  // first error of Add

 private:
  struct Entry {
    KernelDef def;
    KernelFactory factory;
  };
  StatusOr<const Entry*> Find(absl::string_view op, absl::string_view device_type,
                              const AttrMap& attrs) const;
  absl::flat_hash_map<std::string, std::vector<std::unique_ptr<Entry>>> kernels_;  // by op
  Status status_;
};

// Adds `op` for `device_type` with one template instantiation a dtype T of attribute "T":
//   AddTyped<ReluKernel, float, double>(registry, "Relu", "CPU");
template <template <typename> class K, typename... Ts>
void AddTyped(KernelRegistry& registry, absl::string_view op, absl::string_view device_type,
              absl::string_view attr = "T") {
  (registry.Add(
       KernelDef{
           std::string(op), std::string(device_type), {{std::string(attr), {DTypeOf<Ts>::value}}}},
       [](const KernelConstruction& c) -> StatusOr<std::unique_ptr<Kernel>> {
         if constexpr (requires { K<Ts>::Create(c); }) {
           return K<Ts>::Create(c);
         } else {
           return std::unique_ptr<Kernel>(std::make_unique<K<Ts>>());
         }
       }),
   ...);
}

}  // namespace millrace

#endif  // CORE_FRAMEWORK_KERNEL_H_
