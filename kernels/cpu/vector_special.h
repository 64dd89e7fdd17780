#ifndef KERNELS_CPU_VECTOR_SPECIAL_H_
#define KERNELS_CPU_VECTOR_SPECIAL_H_

#include <cstdint>

// Loops as in vector_math.h, for functions of which doubles are left to the C library, and for
// those with a parameter.
namespace millrace::vector {

enum class Special {
  kExpm1,
  kLog1p,
  kErf,
  kElu,
  kSoftplus,
};

// out = op(x), within 4 units in the last place.
void Run(Special op, const float* x, float* out, int64_t n);

// out = value where x > 0, else alpha * value. With value = x: the leaky rectifier; with its
// gradient as value: the gradient's way back.
void Leak(const float* value, const float* x, float alpha, float* out, int64_t n);
void Leak(const double* value, const double* x, double alpha, double* out, int64_t n);

// out = max(min(x, high), low). NaN stays; a bound that is NaN is none.
void Clip(const float* x, float low, float high, float* out, int64_t n);
void Clip(const double* x, double low, double high, double* out, int64_t n);

}  // namespace millrace::vector

#endif  // KERNELS_CPU_VECTOR_SPECIAL_H_
