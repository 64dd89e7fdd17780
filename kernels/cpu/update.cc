#include <cmath>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/register.h"
#include "kernels/cpu/variable_input.h"
#include "kernels/cpu/vector_update.h"

// The optimizers' updates of variables in place. All is checked before anything is changed.
namespace millrace {
namespace {

// Updates move a few bytes an element and are bound by memory.
constexpr int64_t kGrain = kElementsPerTask;

template <typename T>
StatusOr<T> Scalar(const KernelContext& context, int i, absl::string_view what) {
  const Tensor& t = context.input(i);
  if (t.dtype() != DTypeOf<T>::value || t.num_elements() != 1) {
    return InvalidArgument(what, " (input ", i, ") must be one ", Name(DTypeOf<T>::value),
                           ", but is ", Name(t.dtype()), t.shape().ToString());
  }
  return *t.data<T>();
}

Status CheckGradient(const Variable& variable, const Tensor& value, const Tensor& gradient) {
  if (value.shape() == gradient.shape() && value.dtype() == gradient.dtype()) {
    return absl::OkStatus();
  }
  return InvalidArgument("variable '", variable.name(), "' is ", Name(value.dtype()),
                         value.shape().ToString(), ", but its gradient is ", Name(gradient.dtype()),
                         gradient.shape().ToString());
}

template <typename T>
class GradientDescentKernel final : public Kernel {
 public:
  Status Compute(KernelContext& context) const override {
    MR_ASSIGN_OR_RETURN(Variable * variable, VariableInput(context, 0));
    MR_ASSIGN_OR_RETURN(const T rate, Scalar<T>(context, 1, "the rate"));
    const Tensor& gradient = context.input(2);
    return variable->Update(
        context.device().allocator(), context.step().step_id, [&](Tensor& value) -> Status {
          MR_RETURN_IF_ERROR(CheckGradient(*variable, value, gradient));
          const T* g = gradient.data<T>();
          T* w = value.mutable_data<T>();
          ParallelRange(context, value.num_elements(), kGrain, [&](int64_t begin, int64_t end) {
            vector::AddScaled(-rate, g + begin, w + begin, end - begin);
          });
          return absl::OkStatus();
        });
  }
};

// The variables behind the first N inputs; all different.
template <int N>
StatusOr<std::array<Variable*, N>> VariableInputs(const KernelContext& context) {
  std::array<Variable*, N> variables;
  for (int i = 0; i < N; ++i) {
    MR_ASSIGN_OR_RETURN(variables[i], VariableInput(context, i));
    for (int k = 0; k < i; ++k) {
      if (variables[k] == variables[i]) {
        return InvalidArgument("inputs ", k, " and ", i, " are the same variable '",
                               variables[i]->name(), "'");
      }
    }
  }
  return variables;
}

template <int N>
Status CheckGradients(const std::array<Variable*, N>& variables, absl::Span<Tensor* const> values,
                      const Tensor& gradient) {
  for (int i = 0; i < N; ++i) {
    MR_RETURN_IF_ERROR(CheckGradient(*variables[i], *values[i], gradient));
  }
  return absl::OkStatus();
}

template <typename T>
class MomentumKernel final : public Kernel {
 public:
  explicit MomentumKernel(bool nesterov) : nesterov_(nesterov) {}

  Status Compute(KernelContext& context) const override {
    MR_ASSIGN_OR_RETURN(const auto variables, VariableInputs<2>(context));
    MR_ASSIGN_OR_RETURN(const T rate, Scalar<T>(context, 2, "the rate"));
    const Tensor& gradient = context.input(3);
    MR_ASSIGN_OR_RETURN(const T momentum, Scalar<T>(context, 4, "the momentum"));
    const vector::MomentumRates<T> rates{rate, momentum, nesterov_};
    return Variable::UpdateTogether(
        variables, context.device().allocator(), context.step().step_id,
        [&](absl::Span<Tensor* const> values) -> Status {
          MR_RETURN_IF_ERROR(CheckGradients<2>(variables, values, gradient));
          T* w = values[0]->mutable_data<T>();
          T* m = values[1]->mutable_data<T>();
          const T* g = gradient.data<T>();
          ParallelRange(context, gradient.num_elements(), kGrain, [&](int64_t begin, int64_t end) {
            vector::Momentum(rates, g + begin, m + begin, w + begin, end - begin);
          });
          return absl::OkStatus();
        });
  }

 private:
  const bool nesterov_;
};

template <typename T>
class KerasMomentumKernel final : public Kernel {
 public:
  explicit KerasMomentumKernel(bool nesterov) : nesterov_(nesterov) {}

  Status Compute(KernelContext& context) const override {
    MR_ASSIGN_OR_RETURN(const auto variables, VariableInputs<2>(context));
    MR_ASSIGN_OR_RETURN(const T rate, Scalar<T>(context, 2, "the rate"));
    const Tensor& gradient = context.input(3);
    MR_ASSIGN_OR_RETURN(const T momentum, Scalar<T>(context, 4, "the momentum"));
    const vector::MomentumRates<T> rates{rate, momentum, nesterov_};
    return Variable::UpdateTogether(
        variables, context.device().allocator(), context.step().step_id,
        [&](absl::Span<Tensor* const> values) -> Status {
          MR_RETURN_IF_ERROR(CheckGradients<2>(variables, values, gradient));
          T* w = values[0]->mutable_data<T>();
          T* m = values[1]->mutable_data<T>();
          const T* g = gradient.data<T>();
          ParallelRange(context, gradient.num_elements(), kGrain, [&](int64_t begin, int64_t end) {
            vector::KerasMomentum(rates, g + begin, m + begin, w + begin, end - begin);
          });
          return absl::OkStatus();
        });
  }

 private:
  const bool nesterov_;
};

template <typename T>
class AdagradKernel final : public Kernel {
 public:
  explicit AdagradKernel(const KernelConstruction& c)
      : update_slots_(c.attrs.GetOr("update_slots", true)) {}

  Status Compute(KernelContext& context) const override {
    MR_ASSIGN_OR_RETURN(const auto variables, VariableInputs<2>(context));
    MR_ASSIGN_OR_RETURN(const T rate, Scalar<T>(context, 2, "the rate"));
    const Tensor& gradient = context.input(3);
    return Variable::UpdateTogether(
        variables, context.device().allocator(), context.step().step_id,
        [&](absl::Span<Tensor* const> values) -> Status {
          MR_RETURN_IF_ERROR(CheckGradients<2>(variables, values, gradient));
          T* w = values[0]->mutable_data<T>();
          T* sum = values[1]->mutable_data<T>();
          const T* g = gradient.data<T>();
          ParallelRange(context, gradient.num_elements(), kGrain, [&](int64_t begin, int64_t end) {
            vector::Adagrad(rate, update_slots_, g + begin, sum + begin, w + begin, end - begin);
          });
          return absl::OkStatus();
        });
  }

 private:
  const bool update_slots_;
};

template <typename T>
class RmsPropKernel final : public Kernel {
 public:
  Status Compute(KernelContext& context) const override {
    MR_ASSIGN_OR_RETURN(const auto variables, VariableInputs<3>(context));
    vector::RmsPropRates<T> rates;
    MR_ASSIGN_OR_RETURN(rates.rate, Scalar<T>(context, 3, "the rate"));
    MR_ASSIGN_OR_RETURN(rates.decay, Scalar<T>(context, 4, "rho"));
    MR_ASSIGN_OR_RETURN(rates.momentum, Scalar<T>(context, 5, "the momentum"));
    MR_ASSIGN_OR_RETURN(rates.epsilon, Scalar<T>(context, 6, "epsilon"));
    const Tensor& gradient = context.input(7);
    return Variable::UpdateTogether(
        variables, context.device().allocator(), context.step().step_id,
        [&](absl::Span<Tensor* const> values) -> Status {
          MR_RETURN_IF_ERROR(CheckGradients<3>(variables, values, gradient));
          T* w = values[0]->mutable_data<T>();
          T* square = values[1]->mutable_data<T>();
          T* m = values[2]->mutable_data<T>();
          const T* g = gradient.data<T>();
          ParallelRange(context, gradient.num_elements(), kGrain, [&](int64_t begin, int64_t end) {
            vector::RmsProp(rates, g + begin, square + begin, m + begin, w + begin, end - begin);
          });
          return absl::OkStatus();
        });
  }
};

template <typename T>
class AdamKernel final : public Kernel {
 public:
  explicit AdamKernel(bool nesterov) : nesterov_(nesterov) {}

  Status Compute(KernelContext& context) const override {
    MR_ASSIGN_OR_RETURN(const auto variables, VariableInputs<3>(context));
    MR_ASSIGN_OR_RETURN(const T beta1_power, Scalar<T>(context, 3, "beta1_power"));
    MR_ASSIGN_OR_RETURN(const T beta2_power, Scalar<T>(context, 4, "beta2_power"));
    MR_ASSIGN_OR_RETURN(const T rate, Scalar<T>(context, 5, "the rate"));
    MR_ASSIGN_OR_RETURN(const T beta1, Scalar<T>(context, 6, "beta1"));
    MR_ASSIGN_OR_RETURN(const T beta2, Scalar<T>(context, 7, "beta2"));
    MR_ASSIGN_OR_RETURN(const T epsilon, Scalar<T>(context, 8, "epsilon"));
    const Tensor& gradient = context.input(9);
    const vector::AdamRates<T> rates{
        static_cast<T>(rate * std::sqrt(T(1) - beta2_power) / (T(1) - beta1_power)), beta1, beta2,
        epsilon, nesterov_};
    return Variable::UpdateTogether(
        variables, context.device().allocator(), context.step().step_id,
        [&](absl::Span<Tensor* const> values) -> Status {
          MR_RETURN_IF_ERROR(CheckGradients<3>(variables, values, gradient));
          T* w = values[0]->mutable_data<T>();
          T* m = values[1]->mutable_data<T>();
          T* v = values[2]->mutable_data<T>();
          const T* g = gradient.data<T>();
          ParallelRange(context, gradient.num_elements(), kGrain, [&](int64_t begin, int64_t end) {
            vector::Adam(rates, g + begin, m + begin, v + begin, w + begin, end - begin);
          });
          return absl::OkStatus();
        });
  }

 private:
  const bool nesterov_;
};

template <template <typename> class K, typename... Ts>
void AddNesterov(KernelRegistry& registry, absl::string_view op) {
  (registry.Add(KernelDef{std::string(op), "CPU", {{"T", {DTypeOf<Ts>::value}}}},
                [](const KernelConstruction& c) -> StatusOr<std::unique_ptr<Kernel>> {
                  return std::unique_ptr<Kernel>(
                      std::make_unique<K<Ts>>(c.attrs.GetOr("use_nesterov", false)));
                }),
   ...);
}

}  // namespace

void RegisterUpdateKernels(KernelRegistry& registry) {
  AddTyped<GradientDescentKernel, float, double>(registry, "ResourceApplyGradientDescent", "CPU");
  AddNesterov<MomentumKernel, float, double>(registry, "ResourceApplyMomentum");
  AddNesterov<KerasMomentumKernel, float, double>(registry, "ResourceApplyKerasMomentum");
  registry.Add(KernelDef{"ResourceApplyAdagrad", "CPU", {{"T", {DType::kFloat}}}},
               MakeKernel<AdagradKernel<float>>);
  registry.Add(KernelDef{"ResourceApplyAdagrad", "CPU", {{"T", {DType::kDouble}}}},
               MakeKernel<AdagradKernel<double>>);
  AddTyped<RmsPropKernel, float, double>(registry, "ResourceApplyRMSProp", "CPU");
  AddNesterov<AdamKernel, float, double>(registry, "ResourceApplyAdam");
}

}  // namespace millrace
