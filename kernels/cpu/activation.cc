#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/register.h"

namespace millrace {
namespace {

// LeakyRelu, of (features), and LeakyReluGrad, of (gradients, features): the first input where the
// last is positive, else alpha times it.
template <typename T>
class LeakKernel final : public Kernel {
 public:
  explicit LeakKernel(T alpha) : alpha_(alpha) {}

  static StatusOr<std::unique_ptr<Kernel>> Create(const KernelConstruction& c) {
    MR_ASSIGN_OR_RETURN(const float alpha, c.attrs.Get<float>("alpha"));
    return std::unique_ptr<Kernel>(std::make_unique<LeakKernel>(static_cast<T>(alpha)));
  }

  Status Compute(KernelContext& context) const override {
    const Tensor& value = context.input(0);
    const Tensor& features = context.input(context.num_inputs() - 1);
    if (value.shape() != features.shape()) {
      return InvalidArgument("the inputs must have one shape, but have ", value.shape().ToString(),
                             " and ", features.shape().ToString());
    }
    const T* v = value.data<T>();
    const T* x = features.data<T>();
    T* out = context.output(0).mutable_data<T>();
    ParallelRange(context, value.num_elements(), kElementsPerTask, [&](int64_t begin, int64_t end) {
      vector::Leak(v + begin, x + begin, alpha_, out + begin, end - begin);
    });
    return absl::OkStatus();
  }

 private:
  const T alpha_;
};

}  // namespace

void RegisterActivationKernels(KernelRegistry& registry) {
  AddUnary<functor::Relu, float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t,
           uint32_t, uint64_t>(registry, "Relu");
  AddUnary<functor::Relu6, float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t,
           uint32_t, uint64_t>(registry, "Relu6");
  AddUnary<functor::Elu, float, double>(registry, "Elu");
  AddUnary<functor::Softplus, float, double>(registry, "Softplus");
  AddTyped<LeakKernel, float, double>(registry, "LeakyRelu", "CPU");
  AddBinary<functor::ReluGrad, float, double>(registry, "ReluGrad");
  AddBinary<functor::Relu6Grad, float, double>(registry, "Relu6Grad");
  AddBinary<functor::EluGrad, float, double>(registry, "EluGrad");
  AddBinary<functor::SoftplusGrad, float, double>(registry, "SoftplusGrad");
  AddTyped<LeakKernel, float, double>(registry, "LeakyReluGrad", "CPU");
}

}  // namespace millrace
