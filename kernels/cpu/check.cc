#include <atomic>
#include <cmath>
#include <limits>

#include "core/base/logging.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/register.h"

// Kernels that look at values and stop the step, or tell of them.
namespace millrace {
namespace {

// Inputs from `first` on, each with its first `most` elements (all, if negative).
std::string DataText(const KernelContext& context, int first, int64_t most) {
  const int shown = most < 0 || most > 1000 ? 1000 : static_cast<int>(most);
  std::string text;
  for (int i = first; i < context.num_inputs(); ++i) {
    absl::StrAppend(&text, i == first ? "" : "; ", context.input(i).ToString(shown));
  }
  return text;
}

class AssertKernel final : public Kernel {
 public:
  explicit AssertKernel(const KernelConstruction& c)
      : summarize_(c.attrs.GetOr<int64_t>("summarize", 3)) {}
  bool IsExpensive() const override { return false; }
  Status Compute(KernelContext& context) const override {
    const Tensor& condition = context.input(0);
    if (condition.num_elements() != 1) {
      return InvalidArgument("condition must be a scalar, but has shape ",
                             condition.shape().ToString());
    }
    if (*condition.data<bool>()) return absl::OkStatus();
    return InvalidArgument("assertion failed: ", DataText(context, 1, summarize_));
  }

 private:
  const int64_t summarize_;
};

class PrintKernel final : public Kernel {
 public:
  explicit PrintKernel(const KernelConstruction& c)
      : message_(c.attrs.GetOr<std::string>("message", "")),
        summarize_(c.attrs.GetOr<int64_t>("summarize", 3)),
        left_(c.attrs.GetOr<int64_t>("first_n", -1)) {}
  bool IsExpensive() const override { return false; }
  Status Compute(KernelContext& context) const override {
    context.set_output(0, context.input(0));
    if (!CountDown()) return absl::OkStatus();
    // The user asked for it: no level may hide it.
    LogError(message_, DataText(context, 1, summarize_));
    return absl::OkStatus();
  }

 private:
  // Whether this step still logs. Steps that run at once must not take the count below zero, which
  // stands for no limit.
  bool CountDown() const {
    int64_t left = left_.load(std::memory_order_relaxed);
    while (left > 0 && !left_.compare_exchange_weak(left, left - 1, std::memory_order_relaxed)) {
    }
    return left != 0;
  }

  const std::string message_;
  const int64_t summarize_;
  mutable std::atomic<int64_t> left_;  // negative: no limit
};

template <typename T>
class CheckNumericsKernel final : public Kernel {
 public:
  explicit CheckNumericsKernel(const KernelConstruction& c)
      : message_(c.attrs.GetOr<std::string>("message", "")) {}
  Status Compute(KernelContext& context) const override {
    const Tensor& x = context.input(0);
    const T* const values = x.data<T>();
    for (int64_t i = 0; i < x.num_elements(); ++i) {
      if (std::isfinite(values[i])) continue;
      return InvalidArgument(message_, message_.empty() ? "" : ": ", "element ", i, " of the ",
                             x.shape().ToString(), " input is ",
                             std::isnan(values[i]) ? "NaN" : "infinite");
    }
    context.set_output(0, x);
    return absl::OkStatus();
  }

 private:
  const std::string message_;
};

}  // namespace

void RegisterCheckKernels(KernelRegistry& registry) {
  registry.Add("Assert", "CPU", MakeKernel<AssertKernel>);
  registry.Add("Print", "CPU", MakeKernel<PrintKernel>);
  registry.Add(KernelDef{"CheckNumerics", "CPU", {{"T", {DType::kFloat}}}},
               MakeKernel<CheckNumericsKernel<float>>);
  registry.Add(KernelDef{"CheckNumerics", "CPU", {{"T", {DType::kDouble}}}},
               MakeKernel<CheckNumericsKernel<double>>);
}

}  // namespace millrace
