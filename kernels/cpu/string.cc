#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/register.h"

namespace millrace {
namespace {

class StringJoinKernel final : public Kernel {
 public:
  explicit StringJoinKernel(const KernelConstruction& c)
      : separator_(c.attrs.GetOr<std::string>("separator", "")) {}

  Status Compute(KernelContext& context) const override {
    Shape shape;
    for (int i = 0; i < context.num_inputs(); ++i) {
      const Shape& own = context.input(i).shape();
      if (own.rank() == 0) continue;
      if (shape.rank() > 0 && own != shape) {
        return InvalidArgument("input ", i, " has shape ", own.ToString(),
                               ", but those before have ", shape.ToString());
      }
      shape = own;
    }
    std::vector<std::string> joined(shape.num_elements());
    for (int64_t k = 0; k < shape.num_elements(); ++k) {
      for (int i = 0; i < context.num_inputs(); ++i) {
        const Tensor& x = context.input(i);
        absl::StrAppend(&joined[k], i == 0 ? "" : separator_,
                        x.string(x.shape().rank() == 0 ? 0 : k));
      }
    }
    context.set_output(0, Tensor::Strings(shape, joined));
    return absl::OkStatus();
  }

 private:
  const std::string separator_;
};

class ShardedFilenameKernel final : public Kernel {
 public:
  bool IsExpensive() const override { return false; }
  Status Compute(KernelContext& context) const override {
    for (int i = 0; i < 3; ++i) {
      if (context.input(i).num_elements() == 1) continue;
      return InvalidArgument("input ", i, " must be a scalar, but has shape ",
                             context.input(i).shape().ToString());
    }
    const std::string name =
        absl::StrFormat("%s-%05d-of-%05d", context.input(0).string(0),
                        *context.input(1).data<int32_t>(), *context.input(2).data<int32_t>());
    context.set_output(0, Tensor::Strings(Shape(), {name}));
    return absl::OkStatus();
  }
};

}  // namespace

void RegisterStringKernels(KernelRegistry& registry) {
  registry.Add("StringJoin", "CPU", MakeKernel<StringJoinKernel>);
  registry.Add("ShardedFilename", "CPU", MakeKernel<ShardedFilenameKernel>);
}

}  // namespace millrace
