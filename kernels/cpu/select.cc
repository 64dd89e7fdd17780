#include <vector>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/register.h"
#include "kernels/cpu/string_output.h"

namespace millrace {
namespace {

enum class Form {
  kBroadcast,  // SelectV2: all three operands broadcast
  kRows,       // Select: equal branches; a condition of rank 1 picks whole rows
};

struct SelectPlan final : public PreparedShapes {
  std::unique_ptr<BroadcastPlan<3>> broadcast;
  Shape output;
};

StatusOr<std::unique_ptr<PreparedShapes>> MakeSelectPlan(Form form, const PrepareContext& c) {
  Shape condition = c.inputs[0];
  if (form == Form::kRows) {
    const Shape& branch = c.inputs[1];
    const bool rows = condition.rank() == 1 && branch.rank() > 0 && condition[0] == branch[0];
    if (branch != c.inputs[2] || (condition.rank() > 0 && !rows && condition != branch)) {
      return InvalidArgument("the condition ", condition.ToString(), " does not choose between ",
                             branch.ToString(), " and ", c.inputs[2].ToString());
    }
    if (rows) {
      std::vector<int64_t> dims(branch.rank(), 1);
      dims[0] = condition[0];
      MR_ASSIGN_OR_RETURN(condition, Shape::Create(dims));
    }
  }
  auto plan = std::make_unique<SelectPlan>();
  MR_ASSIGN_OR_RETURN(plan->broadcast,
                      MakeBroadcastPlan<3>({&condition, &c.inputs[1], &c.inputs[2]}, c.outputs[0]));
  plan->output = c.outputs[0];
  return std::unique_ptr<PreparedShapes>(std::move(plan));
}

// Elements only move, so one instantiation serves all dtypes of a size.
template <typename T>
class SelectKernel final : public Kernel {
 public:
  explicit SelectKernel(Form form) : form_(form) {}
  StatusOr<std::unique_ptr<PreparedShapes>> Prepare(const PrepareContext& c) const override {
    return MakeSelectPlan(form_, c);
  }
  Status Compute(KernelContext& context) const override {
    const BroadcastPlan<3>& plan = *context.prepared<SelectPlan>().broadcast;
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

 private:
  const Form form_;
};

class SelectStringsKernel final : public Kernel {
 public:
  explicit SelectStringsKernel(Form form) : form_(form) {}
  StatusOr<std::unique_ptr<PreparedShapes>> Prepare(const PrepareContext& c) const override {
    return MakeSelectPlan(form_, c);
  }
  Status Compute(KernelContext& context) const override {
    const auto& prepared = context.prepared<SelectPlan>();
    const BroadcastPlan<3>& plan = *prepared.broadcast;
    const bool* condition = context.input(0).data<bool>();
    const auto& s = plan.strides[plan.rank - 1];
    // Which element each is: of the first branch, or the complement of one of the second.
    MR_ASSIGN_OR_RETURN(Tensor numbers, context.AllocateScratch(DType::kInt64, prepared.output));
    auto* const chosen = numbers.mutable_data<int64_t>();
    if (plan.num_elements > 0) {
      ForEachRow(plan, 0, plan.num_elements,
                 [&](int64_t at, const std::array<int64_t, 3>& from, int64_t n) {
                   for (int64_t i = 0; i < n; ++i) {
                     chosen[at + i] =
                         condition[from[0] + i * s[0]] ? from[1] + i * s[1] : ~(from[2] + i * s[2]);
                   }
                 });
    }
    return OutputStrings(context, 0, prepared.output, [&](int64_t i) {
      return chosen[i] >= 0 ? context.input(1).string(chosen[i])
                            : context.input(2).string(~chosen[i]);
    });
  }

 private:
  const Form form_;
};

StatusOr<std::unique_ptr<Kernel>> CreateSelect(const KernelConstruction& c, Form form) {
  MR_ASSIGN_OR_RETURN(const DType dtype, c.attrs.Get<DType>("T"));
  if (dtype == DType::kString) return std::unique_ptr<Kernel>(new SelectStringsKernel(form));
  switch (SizeOf(dtype)) {
    case 1:
      return std::unique_ptr<Kernel>(new SelectKernel<uint8_t>(form));
    case 2:
      return std::unique_ptr<Kernel>(new SelectKernel<uint16_t>(form));
    case 4:
      return std::unique_ptr<Kernel>(new SelectKernel<uint32_t>(form));
    case 8:
      return std::unique_ptr<Kernel>(new SelectKernel<uint64_t>(form));
    default:
      return Unimplemented("no selection of ", Name(dtype), " elements");
  }
}

}  // namespace

void RegisterSelectKernels(KernelRegistry& registry) {
  registry.Add("SelectV2", "CPU",
               [](const KernelConstruction& c) { return CreateSelect(c, Form::kBroadcast); });
  registry.Add("Select", "CPU",
               [](const KernelConstruction& c) { return CreateSelect(c, Form::kRows); });
}

}  // namespace millrace
