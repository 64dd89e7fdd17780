#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/register.h"

namespace millrace {
namespace {

StatusOr<ChannelId> Channel(const KernelConstruction& c) {
  MR_ASSIGN_OR_RETURN(const int64_t channel, c.attrs.Get<int64_t>("channel"));
  if (channel < 0 || channel > std::numeric_limits<ChannelId>::max()) {
    return InvalidArgument("channel ", channel, " is no channel id");
  }
  return static_cast<ChannelId>(channel);
}

class SendKernel final : public Kernel {
 public:
  explicit SendKernel(ChannelId channel) : channel_(channel) {}
  static StatusOr<std::unique_ptr<Kernel>> Create(const KernelConstruction& c) {
    MR_ASSIGN_OR_RETURN(const ChannelId channel, Channel(c));
    return std::unique_ptr<Kernel>(new SendKernel(channel));
  }
  bool IsExpensive() const override { return false; }
  Status Compute(KernelContext& context) const override {
    if (context.step().rendezvous == nullptr) return Internal("a step without a rendezvous");
    // A control edge travels as an empty tensor.
    Tensor value =
        context.num_inputs() > 0 ? context.input(0) : Tensor::Zeros(DType::kUint8, Shape({0}));
    return context.step().rendezvous->Send(channel_, std::move(value));
  }

 private:
  const ChannelId channel_;
};

class RecvKernel final : public AsyncKernel {
 public:
  explicit RecvKernel(ChannelId channel) : channel_(channel) {}
  static StatusOr<std::unique_ptr<Kernel>> Create(const KernelConstruction& c) {
    MR_ASSIGN_OR_RETURN(const ChannelId channel, Channel(c));
    return std::unique_ptr<Kernel>(new RecvKernel(channel));
  }
  bool IsExpensive() const override { return false; }
  void ComputeAsync(KernelContext& context, Done done) const override {
    if (context.step().rendezvous == nullptr) {
      done(Internal("a step without a rendezvous"));
      return;
    }
    context.step().rendezvous->RecvAsync(
        channel_, [&context, done = std::move(done)](StatusOr<Tensor> value) mutable {
          if (value.ok() && context.num_outputs() > 0) {
            context.set_output(0, *std::move(value));
          }
          done(value.ok() ? absl::OkStatus() : value.status());
        });
  }

 private:
  const ChannelId channel_;
};

}  // namespace

void RegisterCommKernels(KernelRegistry& registry) {
  registry.Add("_Send", "CPU", SendKernel::Create);
  registry.Add("_Recv", "CPU", RecvKernel::Create);
}

}  // namespace millrace
