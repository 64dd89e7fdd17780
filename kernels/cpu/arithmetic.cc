#include <algorithm>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/register.h"

namespace millrace {
namespace {

// The sum of N tensors in their order. The output may be any of the inputs, so a block is summed
// aside first.
template <typename T>
class AddNKernel final : public Kernel {
 public:
  Status Compute(KernelContext& context) const override {
    const int inputs = context.num_inputs();
    const int64_t n = context.output(0).num_elements();
    for (int k = 0; k < inputs; ++k) {
      if (context.input(k).num_elements() != n) {
        return InvalidArgument("input ", k, " has shape ", context.input(k).shape().ToString(),
                               ", but the sum has ", context.output(0).shape().ToString());
      }
    }
    T* out = context.output(0).mutable_data<T>();
    ParallelRange(context, n, kElementsPerTask, [&](int64_t begin, int64_t end) {
      constexpr int64_t kBlock = 1024;
      alignas(64) T sum[kBlock];
      for (int64_t at = begin; at < end; at += kBlock) {
        const int64_t size = std::min(kBlock, end - at);
        std::copy_n(context.input(0).data<T>() + at, size, sum);
        for (int k = 1; k < inputs; ++k) {
          BinaryRow<functor::Add<T>>(sum, 1, context.input(k).data<T>() + at, 1, sum, size);
        }
        std::copy_n(sum, size, out + at);
      }
    });
    return absl::OkStatus();
  }
};

// Adds `op` for all numbers that C++ has.
template <template <typename> class F>
void AddForNumbers(KernelRegistry& registry, absl::string_view op) {
  AddBinary<F, float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t,
            uint64_t>(registry, op);
}

}  // namespace

void RegisterArithmeticKernels(KernelRegistry& registry) {
  for (const char* op : {"Add", "AddV2"}) AddForNumbers<functor::Add>(registry, op);
  AddForNumbers<functor::Sub>(registry, "Sub");
  AddForNumbers<functor::Mul>(registry, "Mul");
  AddForNumbers<functor::Div>(registry, "Div");
  AddBinary<functor::Div, float, double>(registry, "RealDiv");
  AddBinary<functor::DivNoNan, float, double>(registry, "DivNoNan");
  AddForNumbers<functor::FloorDiv>(registry, "FloorDiv");
  AddForNumbers<functor::FloorMod>(registry, "FloorMod");
  AddForNumbers<functor::Maximum>(registry, "Maximum");
  AddForNumbers<functor::Minimum>(registry, "Minimum");
  AddBinary<functor::Pow, float, double, int8_t, int16_t, int32_t, int64_t>(registry, "Pow");
  AddBinary<functor::SquaredDifference, float, double, int32_t, int64_t>(registry,
                                                                         "SquaredDifference");
  AddBinary<functor::TanhGrad, float, double>(registry, "TanhGrad");
  AddBinary<functor::SigmoidGrad, float, double>(registry, "SigmoidGrad");
  AddBinary<functor::SqrtGrad, float, double>(registry, "SqrtGrad");
  AddBinary<functor::RsqrtGrad, float, double>(registry, "RsqrtGrad");
  for (const char* op : {"ReciprocalGrad", "InvGrad"}) {
    AddBinary<functor::ReciprocalGrad, float, double>(registry, op);
  }
  AddTyped<AddNKernel, float, double, int32_t, int64_t>(registry, "AddN", "CPU");
}

}  // namespace millrace
