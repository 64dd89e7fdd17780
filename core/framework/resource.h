#ifndef CORE_FRAMEWORK_RESOURCE_H_
#define CORE_FRAMEWORK_RESOURCE_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "core/base/mutex.h"
#include "core/framework/tensor.h"

namespace millrace {

// What lives on a device longer than a step, by container and name.
class Resource {
 public:
  virtual ~Resource() = default;
  virtual std::string DebugString() const = 0;
  // True after Reset of its container: holders look it up again.
  bool detached() const { return detached_.load(std::memory_order_acquire); }

 private:
  friend class ResourceStore;
  std::atomic<bool> detached_{false};
};

// The mutable tensor behind VarHandleOp. Reads are values: an update while a reader still holds
// the old value works on a copy. Thread-safe.
//
// Torn sets: a step that fails between the first and the last of its updates leaves some variables
// new and some old. The runtime then marks all that the step was to update (MarkTorn); reading or
// updating a torn variable is FailedPrecondition until it is assigned again (a restore).
class Variable final : public Resource {
 public:
  Variable(std::string name, DType dtype, PartialShape shape)
      : name_(std::move(name)), dtype_(dtype), shape_(shape) {}

  const std::string& name() const { return name_; }
  DType dtype() const { return dtype_; }
  const PartialShape& shape() const { return shape_; }

  // FailedPrecondition, naming the variable, while it has no value or is torn.
  StatusOr<Tensor> Read() const;
  // InvalidArgument if dtype or shape do not fit. Clears a torn mark. `value` is shared, not
  // copied: its other holders must not write to it any more.
  Status Assign(Tensor value);
  // `update` gets the value to change in place; it is copied from `allocator` first if a reader
  // still holds it. `step` is recorded as the last step applied if the update is OK. `update` runs
  // under the variable's lock and must not call the variable.
  Status Update(Allocator& allocator, uint64_t step,
                absl::FunctionRef<Status(Tensor& value)> update);
  bool IsInitialized() const;  // whether Read would succeed
  void MarkTorn(uint64_t step);
  uint64_t last_step() const;

  // Updates several variables together (Adam's three), locked in address order. All or none is
  // not promised: `update` must not fail after its first change.
  static Status UpdateTogether(absl::Span<Variable* const> variables, Allocator& allocator,
                               uint64_t step,
                               absl::FunctionRef<Status(absl::Span<Tensor* const> values)> update)
      ABSL_NO_THREAD_SAFETY_ANALYSIS;

  std::string DebugString() const override;

 private:
  Status CheckReadable() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status CheckFits(const Tensor& value) const;
  // UpdateTogether with all locks held.
  static Status UpdateLocked(absl::Span<Variable* const> variables, Allocator& allocator,
                             uint64_t step,
                             absl::FunctionRef<Status(absl::Span<Tensor* const> values)> update)
      ABSL_NO_THREAD_SAFETY_ANALYSIS;
  const std::string name_;
  const DType dtype_;
  const PartialShape shape_;
  mutable Mutex mutex_;
  Tensor value_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_step_ ABSL_GUARDED_BY(mutex_) = 0;
  bool torn_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t torn_by_step_ ABSL_GUARDED_BY(mutex_) = 0;
};

// The resources of one device. Outlives sessions; emptied by Reset. Thread-safe.
class ResourceStore {
 public:
  // The resource of that name, made by `make` if there is none; InvalidArgument if it is there but
  // not a T. `make` runs under the store's lock and must not call the store.
  template <typename T>
  StatusOr<std::shared_ptr<T>> LookupOrCreate(absl::string_view container, absl::string_view name,
                                              absl::FunctionRef<std::shared_ptr<T>()> make) {
    MR_ASSIGN_OR_RETURN(
        std::shared_ptr<Resource> found,
        LookupOrCreateAny(container, name, [&]() -> std::shared_ptr<Resource> { return make(); }));
    auto typed = std::dynamic_pointer_cast<T>(found);
    if (typed == nullptr) {
      return InvalidArgument("resource '", name, "' in container '", container,
                             "' is of another kind: ", found->DebugString());
    }
    return typed;
  }
  // LookupOrCreate for variables: InvalidArgument, with both, if dtype or shape conflict with what
  // is there.
  StatusOr<std::shared_ptr<Variable>> LookupOrCreateVariable(absl::string_view container,
                                                             absl::string_view name, DType dtype,
                                                             const PartialShape& shape);
  // Null if there is none.
  std::shared_ptr<Resource> Lookup(absl::string_view container, absl::string_view name) const;
  // Drops all resources and the random counters of the named containers; of all containers if the
  // list is empty.
  void Reset(absl::Span<const std::string> containers);
  // "container/name" of all, sorted.
  std::vector<std::string> List() const;

  // The step counter of a container's random streams: a step reads it when it starts, and advances
  // it when it commits, so that a retried step draws the same numbers.
  uint64_t random_counter(absl::string_view container) const;
  void set_random_counter(absl::string_view container, uint64_t value);

 private:
  StatusOr<std::shared_ptr<Resource>> LookupOrCreateAny(
      absl::string_view container, absl::string_view name,
      absl::FunctionRef<std::shared_ptr<Resource>()> make);
  mutable Mutex mutex_;
  using Key = std::pair<std::string, std::string>;
  std::map<Key, std::shared_ptr<Resource>> resources_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, uint64_t> random_counters_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace millrace

#endif  // CORE_FRAMEWORK_RESOURCE_H_
