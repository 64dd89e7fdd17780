#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/register.h"

namespace millrace {
namespace {

// SelectV2: elements only move, so one instantiation serves all dtypes of a size.
template <typename T>
class SelectKernel final : public Kernel {
 public:
  StatusOr<std::unique_ptr<PreparedShapes>> Prepare(const PrepareContext& c) const override {
    return MakeBroadcastPlan<3>({&c.inputs[0], &c.inputs[1], &c.inputs[2]}, c.outputs[0]);
  }
  Status Compute(KernelContext& context) const override {
    const auto& plan = context.prepared<BroadcastPlan<3>>();
    const bool* condition = context.input(0).data<bool>();
    const T* x = context.input(1).data<T>();
    const T* y = context.input(2).data<T>();
    T* out = context.output(0).mutable_data<T>();
    const auto& s = plan.strides[plan.rank - 1];
    ParallelRange(context, plan.num_elements, kElementsPerTask, [&](int64_t begin, int64_t end) {
      ForEachRow(plan, begin, end, [&](int64_t at, const std::array<int64_t, 3>& from, int64_t n) {
        const bool* c = condition + from[0];
        const T* a = x + from[1];
        const T* b = y + from[2];
        for (int64_t i = 0; i < n; ++i) out[at + i] = c[i * s[0]] ? a[i * s[1]] : b[i * s[2]];
      });
    });
    return absl::OkStatus();
  }
};

StatusOr<std::unique_ptr<Kernel>> CreateSelect(const KernelConstruction& c) {
  MR_ASSIGN_OR_RETURN(const DType dtype, c.attrs.Get<DType>("T"));
  switch (SizeOf(dtype)) {
    case 1:
      return std::unique_ptr<Kernel>(new SelectKernel<uint8_t>());
    case 2:
      return std::unique_ptr<Kernel>(new SelectKernel<uint16_t>());
    case 4:
      return std::unique_ptr<Kernel>(new SelectKernel<uint32_t>());
    case 8:
      return std::unique_ptr<Kernel>(new SelectKernel<uint64_t>());
    default:
      return Unimplemented("no selection of ", Name(dtype), " elements");
  }
}

}  // namespace

void RegisterSelectKernels(KernelRegistry& registry) {
  registry.Add("SelectV2", "CPU", CreateSelect);
}

}  // namespace millrace
