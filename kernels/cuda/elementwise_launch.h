#ifndef KERNELS_CUDA_ELEMENTWISE_LAUNCH_H_
#define KERNELS_CUDA_ELEMENTWISE_LAUNCH_H_

#include <cuda_runtime_api.h>

#include <cstdint>

// Starts elementwise CUDA kernels. Free of Abseil, which nvcc reads slowly.
namespace millrace::cuda {

enum class Unary {
  kNeg,
  kAbs,
  kSign,
  kSquare,
  kSqrt,
  kRsqrt,
  kReciprocal,
  kExp,
  kLog,
  kTanh,
  kSigmoid,
  kRelu,
};

enum class Binary {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kDivNoNan,
  kMaximum,
  kMinimum,
  kPow,
  kSquaredDifference,
  kTanhGrad,
  kSigmoidGrad,
  kSqrtGrad,
  kRsqrtGrad,
  kReciprocalGrad,
  kReluGrad,
};

// How two operands are broadcast to one output of n elements; strides in elements, 0 where an
// operand repeats. The innermost dimension is last.
struct Broadcast {
  static constexpr int kMaxRank = 8;
  int64_t n;
  int rank;
  int64_t dims[kMaxRank];
  int64_t strides[kMaxRank][2];
};

cudaError_t Launch(Unary op, const float* x, float* out, int64_t n, cudaStream_t stream);
cudaError_t Launch(Unary op, const double* x, double* out, int64_t n, cudaStream_t stream);
cudaError_t Launch(Binary op, const Broadcast& b, const float* x, const float* y, float* out,
                   cudaStream_t stream);
cudaError_t Launch(Binary op, const Broadcast& b, const double* x, const double* y, double* out,
                   cudaStream_t stream);

}  // namespace millrace::cuda

#endif  // KERNELS_CUDA_ELEMENTWISE_LAUNCH_H_
