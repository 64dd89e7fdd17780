#ifndef CORE_RUNTIME_EXECUTION_PLAN_H_
#define CORE_RUNTIME_EXECUTION_PLAN_H_

#include <memory>
#include <vector>

#include "core/framework/kernel.h"
#include "core/runtime/partitioner.h"

namespace millrace {

// A partition compiled once into flat arrays: kernels, input and output slots, initial pending
// counts, successor spans; with a bounded memo of what depends on shapes. Immutable but for the
// memo; shared by concurrent steps. Thread-safe.
//
// The memo is one small table a node, keyed by the node's own input shapes and host input values:
// shapes of tensors that come from other devices are no function of this plan's feeds, and a node
// whose inputs keep their shapes is not prepared again when a feed elsewhere changes.
class ExecutionPlan {
 public:
  // Makes the kernels; Unimplemented or the kernel's error, naming node, op and device. (Move the
  // partition in to save a copy of its graph.)
  static StatusOr<std::unique_ptr<ExecutionPlan>> Create(Partition partition, Device& device,
                                                         const KernelRegistry& kernels);
  virtual ~ExecutionPlan() = default;

  virtual const DeviceName& device_name() const = 0;
  virtual int num_nodes() const = 0;
  // Positions in the step's signature, in the order of Executor's feeds and fetches.
  virtual absl::Span<const int> feed_indices() const = 0;
  virtual absl::Span<const int> fetch_indices() const = 0;
  // Dtype and static shape that feed i of this plan must fit.
  virtual DType feed_dtype(int i) const = 0;
  virtual const PartialShape& feed_shape(int i) const = 0;
  // Names of the variables that the plan's updates change.
  virtual absl::Span<const std::string> updated_variables() const = 0;
  // How many nodes change variables.
  virtual int num_updates() const = 0;
  // Marks those variables torn: see UpdateProgress (executor.h).
  virtual void MarkTorn(uint64_t step) const = 0;
  // Whether a node draws random numbers: such a step advances the random counter when it commits.
  virtual bool draws_random() const = 0;
  // The memory that a step takes in one piece for the outputs of which size and life are known
  // before it runs. What else it needs is allocated as it is made.
  virtual int64_t planned_bytes() const = 0;
  // Kernels prepared so far (memo misses), for tests and inspection.
  virtual int64_t prepared_count() const = 0;

 private:
  friend class CompiledPlan;  // the only implementation: the executor works on its arrays
  ExecutionPlan() = default;
};

}  // namespace millrace

#endif  // CORE_RUNTIME_EXECUTION_PLAN_H_
