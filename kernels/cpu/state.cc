#include "core/base/mutex.h"
#include "core/framework/resource.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/register.h"
#include "kernels/cpu/variable_input.h"

namespace millrace {
namespace {

class NoOpKernel final : public Kernel {
 public:
  bool IsExpensive() const override { return false; }
  Status Compute(KernelContext&) const override { return absl::OkStatus(); }
};

// VarHandleOp: looks its variable up once, and again after a Reset has dropped it.
class VarHandleKernel final : public Kernel {
 public:
  static StatusOr<std::unique_ptr<Kernel>> Create(const KernelConstruction& c) {
    std::string name = c.attrs.GetOr<std::string>("shared_name", "");
    if (name.empty()) name = c.node_name;
    MR_ASSIGN_OR_RETURN(const DType dtype, c.attrs.Get<DType>("dtype"));
    std::unique_ptr<VarHandleKernel> kernel(
        new VarHandleKernel(&c.device, c.attrs.GetOr<std::string>("container", ""), std::move(name),
                            dtype, c.attrs.GetOr<PartialShape>("shape", PartialShape())));
    MR_RETURN_IF_ERROR(kernel->Handle().status());
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  bool IsExpensive() const override { return false; }
  Status Compute(KernelContext& context) const override {
    MR_ASSIGN_OR_RETURN(Tensor handle, Handle());
    context.set_output(0, std::move(handle));
    return absl::OkStatus();
  }

 private:
  VarHandleKernel(Device* device, std::string container, std::string name, DType dtype,
                  PartialShape shape)
      : device_(device),
        container_(std::move(container)),
        name_(std::move(name)),
        dtype_(dtype),
        shape_(shape) {}

  StatusOr<Tensor> Handle() const {
    MutexLock lock(mutex_);
    if (!handle_.valid() || handle_.resource()->detached()) {
      MR_ASSIGN_OR_RETURN(
          std::shared_ptr<Variable> variable,
          device_->resources().LookupOrCreateVariable(container_, name_, dtype_, shape_));
      handle_ = Tensor::OfResource(std::move(variable));
    }
    return handle_;
  }

  Device* const device_;
  const std::string container_;
  const std::string name_;
  const DType dtype_;
  const PartialShape shape_;
  mutable Mutex mutex_;
  mutable Tensor handle_ ABSL_GUARDED_BY(mutex_);
};

class ReadVariableKernel final : public Kernel {
 public:
  explicit ReadVariableKernel(const KernelConstruction& c)
      : dtype_(c.attrs.GetOr("dtype", DType::kInvalid)) {}
  bool IsExpensive() const override { return false; }
  Status Compute(KernelContext& context) const override {
    MR_ASSIGN_OR_RETURN(Tensor value, ReadVariableInput(context, 0, dtype_));
    context.set_output(0, std::move(value));
    return absl::OkStatus();
  }

 private:
  const DType dtype_;
};

class AssignVariableKernel final : public Kernel {
 public:
  bool IsExpensive() const override { return false; }
  Status Compute(KernelContext& context) const override {
    MR_ASSIGN_OR_RETURN(Variable * variable, VariableInput(context, 0));
    return variable->Assign(context.input(1));
  }
};

class VarIsInitializedKernel final : public Kernel {
 public:
  bool IsExpensive() const override { return false; }
  Status Compute(KernelContext& context) const override {
    MR_ASSIGN_OR_RETURN(Variable * variable, VariableInput(context, 0));
    *context.output(0).mutable_data<bool>() = variable->IsInitialized();
    return absl::OkStatus();
  }
};

// variable = variable op value, of equal shapes.
template <typename F, typename T>
class AssignUpdateKernel final : public Kernel {
 public:
  Status Compute(KernelContext& context) const override {
    MR_ASSIGN_OR_RETURN(Variable * variable, VariableInput(context, 0));
    const Tensor& value = context.input(1);
    return variable->Update(
        context.device().allocator(), context.step().step_id, [&](Tensor& current) -> Status {
          if (current.shape() != value.shape() || current.dtype() != value.dtype()) {
            return InvalidArgument("variable '", variable->name(), "' is ", Name(current.dtype()),
                                   current.shape().ToString(), ", but the value to add is ",
                                   Name(value.dtype()), value.shape().ToString());
          }
          T* to = current.mutable_data<T>();
          const T* x = value.data<T>();
          ParallelRange(context, value.num_elements(), kElementsPerTask,
                        [&](int64_t begin, int64_t end) {
                          BinaryRow<F>(to + begin, 1, x + begin, 1, to + begin, end - begin);
                        });
          return absl::OkStatus();
        });
  }
};

template <template <typename> class F, typename... Ts>
void AddAssign(KernelRegistry& registry, absl::string_view op) {
  (registry.Add(KernelDef{std::string(op), "CPU", {{"dtype", {DTypeOf<Ts>::value}}}},
                MakeKernel<AssignUpdateKernel<F<Ts>, Ts>>),
   ...);
}

}  // namespace

void RegisterStateKernels(KernelRegistry& registry) {
  registry.Add("NoOp", "CPU", MakeKernel<NoOpKernel>);
  registry.Add("VarHandleOp", "CPU", VarHandleKernel::Create);
  registry.Add("ReadVariableOp", "CPU", MakeKernel<ReadVariableKernel>);
  registry.Add("AssignVariableOp", "CPU", MakeKernel<AssignVariableKernel>);
  registry.Add("VarIsInitializedOp", "CPU", MakeKernel<VarIsInitializedKernel>);
  AddAssign<functor::Add, float, double, int32_t, int64_t>(registry, "AssignAddVariableOp");
  AddAssign<functor::Sub, float, double, int32_t, int64_t>(registry, "AssignSubVariableOp");
}

}  // namespace millrace
