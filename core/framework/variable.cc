#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "core/framework/resource.h"

namespace millrace {
namespace {

constexpr size_t kUsual = 4;  // variables in one update: the weight and an optimizer's slots

}  // namespace

Status Variable::CheckReadable() const {
  if (torn_) {
    return FailedPrecondition("variable '", name_, "' was left half updated by step ",
                              torn_by_step_, ", which failed; restore it from a checkpoint");
  }
  if (!value_.valid()) {
    return FailedPrecondition("variable '", name_,
                              "' has no value; run its initialiser or restore it");
  }
  return absl::OkStatus();
}

Status Variable::CheckFits(const Tensor& value) const {
  if (value.dtype() == dtype_ && shape_.IsCompatibleWith(value.shape())) return absl::OkStatus();
  return InvalidArgument("variable '", name_, "' is ", Name(dtype_), shape_.ToString(),
                         ", and cannot hold ", Name(value.dtype()), value.shape().ToString());
}

StatusOr<Tensor> Variable::Read() const {
  MutexLock lock(mutex_);
  MR_RETURN_IF_ERROR(CheckReadable());
  return value_;
}

Status Variable::Assign(Tensor value) {
  MR_RETURN_IF_ERROR(CheckFits(value));
  MutexLock lock(mutex_);
  std::swap(value_, value);  // the old value is freed after the lock
  torn_ = false;
  return absl::OkStatus();
}

Status Variable::Update(Allocator& allocator, uint64_t step,
                        absl::FunctionRef<Status(Tensor& value)> update) {
  Variable* self = this;
  return UpdateTogether(absl::MakeConstSpan(&self, 1), allocator, step,
                        [&](absl::Span<Tensor* const> values) { return update(*values[0]); });
}

Status Variable::UpdateTogether(
    absl::Span<Variable* const> variables, Allocator& allocator, uint64_t step,
    absl::FunctionRef<Status(absl::Span<Tensor* const> values)> update) {
  absl::InlinedVector<Variable*, kUsual> ordered(variables.begin(), variables.end());
  std::sort(ordered.begin(), ordered.end());
  for (size_t i = 0; i < ordered.size(); ++i) {
    if (ordered[i] == nullptr) return InvalidArgument("a variable to be updated is null");
    if (i > 0 && ordered[i] == ordered[i - 1]) {
      return InvalidArgument("variable '", ordered[i]->name(), "' is to be updated twice at once");
    }
  }
  for (Variable* variable : ordered) variable->mutex_.Lock();
  const Status status = UpdateLocked(variables, allocator, step, update);
  for (Variable* variable : ordered) variable->mutex_.Unlock();
  return status;
}

Status Variable::UpdateLocked(absl::Span<Variable* const> variables, Allocator& allocator,
                              uint64_t step,
                              absl::FunctionRef<Status(absl::Span<Tensor* const>)> update) {
  // All that can fail comes first. A value that a reader still holds is changed in a copy, which
  // takes its place only once the update is done.
  for (Variable* variable : variables) MR_RETURN_IF_ERROR(variable->CheckReadable());
  absl::InlinedVector<Tensor, kUsual> copies(variables.size());
  absl::InlinedVector<Tensor*, kUsual> values(variables.size());
  for (size_t i = 0; i < variables.size(); ++i) {
    Tensor& value = variables[i]->value_;
    if (value.OwnsWholeBuffer()) {
      values[i] = &value;
      continue;
    }
    StatusOr<Tensor> copy = value.Copy(allocator);
    if (!copy.ok()) return Annotate(copy.status(), StrCat("variable '", variables[i]->name_, "'"));
    copies[i] = *std::move(copy);
    values[i] = &copies[i];
  }
  MR_RETURN_IF_ERROR(update(values));
  for (size_t i = 0; i < variables.size(); ++i) {
    // An update may put another tensor in the value's place, but none that does not fit.
    if (Status fits = variables[i]->CheckFits(*values[i]); !fits.ok()) {
      variables[i]->value_ = Tensor();
      return fits;
    }
    if (values[i] == &copies[i]) variables[i]->value_ = std::move(copies[i]);
    variables[i]->last_step_ = step;
  }
  return absl::OkStatus();
}

bool Variable::IsInitialized() const {
  MutexLock lock(mutex_);
  return value_.valid() && !torn_;
}

void Variable::MarkTorn(uint64_t step) {
  MutexLock lock(mutex_);
  torn_ = true;
  torn_by_step_ = step;
}

uint64_t Variable::last_step() const {
  MutexLock lock(mutex_);
  return last_step_;
}

std::string Variable::DebugString() const {
  MutexLock lock(mutex_);
  return StrCat("variable '", name_, "' ", Name(dtype_), shape_.ToString(),
                torn_             ? ", half updated"
                : !value_.valid() ? ", without a value"
                                  : "");
}

}  // namespace millrace
