#include "kernels/broadcast.h"
#include "kernels/cuda/elementwise_launch.h"
#include "kernels/cuda/register.h"

namespace millrace {
namespace {

Status ToStatus(cudaError_t error) {
  if (error == cudaSuccess) return absl::OkStatus();
  return Internal("CUDA: ", cudaGetErrorString(error));
}

cudaStream_t Stream(const KernelContext& context) {
  return static_cast<cudaStream_t>(context.device().stream());
}

template <typename T>
class CudaUnaryKernel final : public Kernel {
 public:
  explicit CudaUnaryKernel(cuda::Unary op) : op_(op) {}
  Status Compute(KernelContext& context) const override {
    return ToStatus(cuda::Launch(op_, context.input(0).data<T>(),
                                 context.output(0).mutable_data<T>(),
                                 context.input(0).num_elements(), Stream(context)));
  }

 private:
  const cuda::Unary op_;
};

template <typename T>
class CudaBinaryKernel final : public Kernel {
 public:
  explicit CudaBinaryKernel(cuda::Binary op) : op_(op) {}

  StatusOr<std::unique_ptr<PreparedShapes>> Prepare(const PrepareContext& c) const override {
    MR_ASSIGN_OR_RETURN(const auto plan,
                        MakeBroadcastPlan<2>({&c.inputs[0], &c.inputs[1]}, c.outputs[0]));
    auto prepared = std::make_unique<Prepared>();
    static_assert(cuda::Broadcast::kMaxRank == kMaxRank);
    cuda::Broadcast& b = prepared->broadcast;
    b = {};
    b.n = plan->num_elements;
    b.rank = plan->rank;
    for (int i = 0; i < plan->rank; ++i) {
      b.dims[i] = plan->dims[i];
      b.strides[i][0] = plan->strides[i][0];
      b.strides[i][1] = plan->strides[i][1];
    }
    return std::unique_ptr<PreparedShapes>(std::move(prepared));
  }

  Status Compute(KernelContext& context) const override {
    return ToStatus(cuda::Launch(op_, context.prepared<Prepared>().broadcast,
                                 context.input(0).data<T>(), context.input(1).data<T>(),
                                 context.output(0).mutable_data<T>(), Stream(context)));
  }

 private:
  struct Prepared final : public PreparedShapes {
    cuda::Broadcast broadcast;
  };
  const cuda::Binary op_;
};

template <template <typename> class K, typename Op, typename... Ts>
void AddCuda(KernelRegistry& registry, absl::string_view name, Op op) {
  (registry.Add(KernelDef{std::string(name), "CUDA", {{"T", {DTypeOf<Ts>::value}}}},
                [op](const KernelConstruction&) -> StatusOr<std::unique_ptr<Kernel>> {
                  return std::unique_ptr<Kernel>(std::make_unique<K<Ts>>(op));
                }),
   ...);
}

}  // namespace

void RegisterCudaElementwiseKernels(KernelRegistry& registry) {
  const struct {
    const char* name;
    cuda::Unary op;
  } unary[] = {
      {"Neg", cuda::Unary::kNeg},
      {"Abs", cuda::Unary::kAbs},
      {"Sign", cuda::Unary::kSign},
      {"Square", cuda::Unary::kSquare},
      {"Sqrt", cuda::Unary::kSqrt},
      {"Rsqrt", cuda::Unary::kRsqrt},
      {"Reciprocal", cuda::Unary::kReciprocal},
      {"Exp", cuda::Unary::kExp},
      {"Log", cuda::Unary::kLog},
      {"Tanh", cuda::Unary::kTanh},
      {"Sigmoid", cuda::Unary::kSigmoid},
      {"Relu", cuda::Unary::kRelu},
  };
  for (const auto& row : unary) {
    AddCuda<CudaUnaryKernel, cuda::Unary, float, double>(registry, row.name, row.op);
  }
  const struct {
    const char* name;
    cuda::Binary op;
  } binary[] = {
      {"Add", cuda::Binary::kAdd},
      {"AddV2", cuda::Binary::kAdd},
      {"Sub", cuda::Binary::kSub},
      {"Mul", cuda::Binary::kMul},
      {"Div", cuda::Binary::kDiv},
      {"RealDiv", cuda::Binary::kDiv},
      {"DivNoNan", cuda::Binary::kDivNoNan},
      {"Maximum", cuda::Binary::kMaximum},
      {"Minimum", cuda::Binary::kMinimum},
      {"Pow", cuda::Binary::kPow},
      {"SquaredDifference", cuda::Binary::kSquaredDifference},
      {"TanhGrad", cuda::Binary::kTanhGrad},
      {"SigmoidGrad", cuda::Binary::kSigmoidGrad},
      {"SqrtGrad", cuda::Binary::kSqrtGrad},
      {"RsqrtGrad", cuda::Binary::kRsqrtGrad},
      {"ReciprocalGrad", cuda::Binary::kReciprocalGrad},
      {"ReluGrad", cuda::Binary::kReluGrad},
  };
  for (const auto& row : binary) {
    AddCuda<CudaBinaryKernel, cuda::Binary, float, double>(registry, row.name, row.op);
  }
}

}  // namespace millrace
