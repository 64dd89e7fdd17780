#ifndef KERNELS_HALF_H_
#define KERNELS_HALF_H_

#include <cstdint>
#include <cstring>

// The two 16-bit floating-point formats, kept as bits in a uint16_t, to and from float; rounded to
// nearest, ties to even.
namespace millrace {

inline uint32_t FloatBits(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}
inline float FloatFromBits(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

// bfloat16 is the upper half of a float.
inline float Bfloat16ToFloat(uint16_t bits) { return FloatFromBits(uint32_t{bits} << 16); }
inline uint16_t FloatToBfloat16(float x) {
  const uint32_t bits = FloatBits(x);
  if (x != x) return static_cast<uint16_t>((bits >> 16) | 0x40);  // a quiet NaN stays one
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// IEEE half: 1 sign bit, 5 of exponent (bias 15), 10 of mantissa.
inline float HalfToFloat(uint16_t half) {
  const uint32_t sign = uint32_t{half & 0x8000u} << 16;
  const uint32_t exponent = (half >> 10) & 0x1f;
  const uint32_t mantissa = half & 0x3ff;
  if (exponent == 0x1f) return FloatFromBits(sign | 0x7f800000 | (mantissa << 13));
  if (exponent != 0) return FloatFromBits(sign | ((exponent + 112) << 23) | (mantissa << 13));
  // Subnormal: mantissa * 2^-24, exact in a float.
  const float value = static_cast<float>(mantissa) * 0x1p-24f;
  return sign != 0 ? -value : value;
}
inline uint16_t FloatToHalf(float x) {
  const uint32_t bits = FloatBits(x);
  const uint32_t sign = (bits >> 16) & 0x8000;
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00);   // NaN
  if (magnitude >= 0x477ff000) return static_cast<uint16_t>(sign | 0x7c00);  // rounds to infinity
  if (magnitude < 0x38800000) {
    // Subnormal: adding 0.5 leaves the multiple of 2^-24, rounded, in the low bits.
    const float shifted = FloatFromBits(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (FloatBits(shifted) - 0x3f000000));
  }
  const uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000) >> 13));
}

}  // namespace millrace

#endif  // KERNELS_HALF_H_
