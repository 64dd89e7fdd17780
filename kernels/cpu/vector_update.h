#ifndef KERNELS_CPU_VECTOR_UPDATE_H_
#define KERNELS_CPU_VECTOR_UPDATE_H_

#include <cstdint>

// The inner loops of the optimizers: each reads and writes its arrays once. As in vector_math.h, a
// range may be cut anywhere.
namespace millrace::vector {

// y += factor * x
void AddScaled(float factor, const float* x, float* y, int64_t n);
void AddScaled(double factor, const double* x, double* y, int64_t n);

template <typename T>
struct MomentumRates {
  T rate;
  T momentum;
  bool nesterov;
};
// m = momentum * m + g; w -= rate * m, or rate * (g + momentum * m) with nesterov.
void Momentum(const MomentumRates<float>& r, const float* g, float* m, float* w, int64_t n);
void Momentum(const MomentumRates<double>& r, const double* g, double* m, double* w, int64_t n);

// m = momentum * m - rate * g; w += m, or momentum * m - rate * g with nesterov.
void KerasMomentum(const MomentumRates<float>& r, const float* g, float* m, float* w, int64_t n);
void KerasMomentum(const MomentumRates<double>& r, const double* g, double* m, double* w,
                   int64_t n);

// sum += g^2, if `update_sum`; w -= rate * g / sqrt(sum)
void Adagrad(float rate, bool update_sum, const float* g, float* sum, float* w, int64_t n);
void Adagrad(double rate, bool update_sum, const double* g, double* sum, double* w, int64_t n);

template <typename T>
struct RmsPropRates {
  T rate;
  T decay;
  T momentum;
  T epsilon;
};
// s += (g^2 - s)(1 - decay); m = momentum * m + rate * g / sqrt(s + epsilon); w -= m
void RmsProp(const RmsPropRates<float>& r, const float* g, float* s, float* m, float* w, int64_t n);
void RmsProp(const RmsPropRates<double>& r, const double* g, double* s, double* m, double* w,
             int64_t n);

template <typename T>
struct AdamRates {
  T rate;  // with the bias corrections in it
  T beta1;
  T beta2;
  T epsilon;
  bool nesterov;
};
// m += (g - m)(1 - beta1); v += (g^2 - v)(1 - beta2); w -= rate * m / (sqrt(v) + epsilon); with
// nesterov, beta1 * m + (1 - beta1) g stands for m in the last.
void Adam(const AdamRates<float>& r, const float* g, float* m, float* v, float* w, int64_t n);
void Adam(const AdamRates<double>& r, const double* g, double* m, double* v, double* w, int64_t n);

}  // namespace millrace::vector

#endif  // KERNELS_CPU_VECTOR_UPDATE_H_
