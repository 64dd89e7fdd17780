#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/register.h"

namespace millrace {
namespace {

// Adds `op` for all numbers that C++ has, and for the dtypes Ts.
template <template <typename> class F, typename... Ts>
void AddComparison(KernelRegistry& registry, absl::string_view op) {
  AddBinary<F, float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t,
            uint64_t, Ts...>(registry, op);
}

// Equal and NotEqual of strings.
class EqualStringsKernel final : public Kernel {
 public:
  explicit EqualStringsKernel(bool equal) : equal_(equal) {}
  StatusOr<std::unique_ptr<PreparedShapes>> Prepare(const PrepareContext& c) const override {
    return MakeBroadcastPlan<2>({&c.inputs[0], &c.inputs[1]}, c.outputs[0]);
  }
  Status Compute(KernelContext& context) const override {
    const auto& plan = context.prepared<BroadcastPlan<2>>();
    const Tensor &x = context.input(0), &y = context.input(1);
    bool* out = context.output(0).mutable_data<bool>();
    const auto& s = plan.strides[plan.rank - 1];
    ParallelRange(
        context, plan.num_elements, kHeavyElementsPerTask, [&](int64_t begin, int64_t end) {
          ForEachRow(
              plan, begin, end, [&](int64_t at, const std::array<int64_t, 2>& from, int64_t n) {
                for (int64_t i = 0; i < n; ++i) {
                  out[at + i] =
                      (x.string(from[0] + i * s[0]) == y.string(from[1] + i * s[1])) == equal_;
                }
              });
        });
    return absl::OkStatus();
  }

 private:
  const bool equal_;
};

}  // namespace

void RegisterComparisonKernels(KernelRegistry& registry) {
  AddComparison<functor::Equal, bool>(registry, "Equal");
  AddComparison<functor::NotEqual, bool>(registry, "NotEqual");
  for (const bool equal : {true, false}) {
    registry.Add(KernelDef{equal ? "Equal" : "NotEqual", "CPU", {{"T", {DType::kString}}}},
                 [equal](const KernelConstruction&) -> StatusOr<std::unique_ptr<Kernel>> {
                   return std::unique_ptr<Kernel>(std::make_unique<EqualStringsKernel>(equal));
                 });
  }
  AddComparison<functor::Less>(registry, "Less");
  AddComparison<functor::LessEqual>(registry, "LessEqual");
  AddComparison<functor::Greater>(registry, "Greater");
  AddComparison<functor::GreaterEqual>(registry, "GreaterEqual");
  registry.Add("LogicalAnd", "CPU", MakeKernel<BinaryKernel<functor::LogicalAnd, bool, bool>>);
  registry.Add("LogicalOr", "CPU", MakeKernel<BinaryKernel<functor::LogicalOr, bool, bool>>);
}

}  // namespace millrace
