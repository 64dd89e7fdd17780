#include "kernels/cuda/elementwise_launch.h"

#include "kernels/elementwise_functors.h"

namespace millrace::cuda {
namespace {

constexpr int kThreads = 256;
// Enough blocks to fill any device; threads loop over what is left.
constexpr int64_t kMaxBlocks = 8192;

unsigned BlocksFor(int64_t n) {
  const int64_t blocks = (n + kThreads - 1) / kThreads;
  return static_cast<unsigned>(blocks < kMaxBlocks ? blocks : kMaxBlocks);
}

template <typename F, typename T>
__global__ void UnaryKernel(const T* x, T* out, int64_t n) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < n; i += step) {
    out[i] = F()(x[i]);
  }
}

template <typename F, typename T>
__global__ void BinaryKernel(Broadcast b, const T* x, const T* y, T* out) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < b.n; i += step) {
    int64_t rest = i, at_x = 0, at_y = 0;
    for (int d = b.rank - 1; d > 0; --d) {
      const int64_t index = rest % b.dims[d];
      rest /= b.dims[d];
      at_x += index * b.strides[d][0];
      at_y += index * b.strides[d][1];
    }
    out[i] = F()(x[at_x + rest * b.strides[0][0]], y[at_y + rest * b.strides[0][1]]);
  }
}

template <typename F, typename T>
cudaError_t Run(const T* x, T* out, int64_t n, cudaStream_t stream) {
  if (n == 0) return cudaSuccess;
  UnaryKernel<F><<<BlocksFor(n), kThreads, 0, stream>>>(x, out, n);
  return cudaGetLastError();
}

template <typename F, typename T>
cudaError_t Run(const Broadcast& b, const T* x, const T* y, T* out, cudaStream_t stream) {
  if (b.n == 0) return cudaSuccess;
  BinaryKernel<F><<<BlocksFor(b.n), kThreads, 0, stream>>>(b, x, y, out);
  return cudaGetLastError();
}

template <typename T>
cudaError_t LaunchUnary(Unary op, const T* x, T* out, int64_t n, cudaStream_t stream) {
  switch (op) {
    case Unary::kNeg:
      return Run<functor::Neg<T>>(x, out, n, stream);
    case Unary::kAbs:
      return Run<functor::Abs<T>>(x, out, n, stream);
    case Unary::kSign:
      return Run<functor::Sign<T>>(x, out, n, stream);
    case Unary::kSquare:
      return Run<functor::Square<T>>(x, out, n, stream);
    case Unary::kSqrt:
      return Run<functor::Sqrt<T>>(x, out, n, stream);
    case Unary::kRsqrt:
      return Run<functor::Rsqrt<T>>(x, out, n, stream);
    case Unary::kReciprocal:
      return Run<functor::Reciprocal<T>>(x, out, n, stream);
    case Unary::kExp:
      return Run<functor::Exp<T>>(x, out, n, stream);
    case Unary::kLog:
      return Run<functor::Log<T>>(x, out, n, stream);
    case Unary::kTanh:
      return Run<functor::Tanh<T>>(x, out, n, stream);
    case Unary::kSigmoid:
      return Run<functor::Sigmoid<T>>(x, out, n, stream);
    case Unary::kRelu:
      return Run<functor::Relu<T>>(x, out, n, stream);
  }
  return cudaErrorInvalidValue;
}

template <typename T>
cudaError_t LaunchBinary(Binary op, const Broadcast& b, const T* x, const T* y, T* out,
                         cudaStream_t stream) {
  switch (op) {
    case Binary::kAdd:
      return Run<functor::Add<T>>(b, x, y, out, stream);
    case Binary::kSub:
      return Run<functor::Sub<T>>(b, x, y, out, stream);
    case Binary::kMul:
      return Run<functor::Mul<T>>(b, x, y, out, stream);
    case Binary::kDiv:
      return Run<functor::Div<T>>(b, x, y, out, stream);
    case Binary::kDivNoNan:
      return Run<functor::DivNoNan<T>>(b, x, y, out, stream);
    case Binary::kMaximum:
      return Run<functor::Maximum<T>>(b, x, y, out, stream);
    case Binary::kMinimum:
      return Run<functor::Minimum<T>>(b, x, y, out, stream);
    case Binary::kPow:
      return Run<functor::Pow<T>>(b, x, y, out, stream);
    case Binary::kSquaredDifference:
      return Run<functor::SquaredDifference<T>>(b, x, y, out, stream);
    case Binary::kTanhGrad:
      return Run<functor::TanhGrad<T>>(b, x, y, out, stream);
    case Binary::kSigmoidGrad:
      return Run<functor::SigmoidGrad<T>>(b, x, y, out, stream);
    case Binary::kSqrtGrad:
      return Run<functor::SqrtGrad<T>>(b, x, y, out, stream);
    case Binary::kRsqrtGrad:
      return Run<functor::RsqrtGrad<T>>(b, x, y, out, stream);
    case Binary::kReciprocalGrad:
      return Run<functor::ReciprocalGrad<T>>(b, x, y, out, stream);
    case Binary::kReluGrad:
      return Run<functor::ReluGrad<T>>(b, x, y, out, stream);
  }
  return cudaErrorInvalidValue;
}

}  // namespace

cudaError_t Launch(Unary op, const float* x, float* out, int64_t n, cudaStream_t stream) {
  return LaunchUnary(op, x, out, n, stream);
}
cudaError_t Launch(Unary op, const double* x, double* out, int64_t n, cudaStream_t stream) {
  return LaunchUnary(op, x, out, n, stream);
}
cudaError_t Launch(Binary op, const Broadcast& b, const float* x, const float* y, float* out,
                   cudaStream_t stream) {
  return LaunchBinary(op, b, x, y, out, stream);
}
cudaError_t Launch(Binary op, const Broadcast& b, const double* x, const double* y, double* out,
                   cudaStream_t stream) {
  return LaunchBinary(op, b, x, y, out, stream);
}

}  // namespace millrace::cuda
