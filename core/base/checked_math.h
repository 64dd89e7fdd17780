#ifndef CORE_BASE_CHECKED_MATH_H_
#define CORE_BASE_CHECKED_MATH_H_

#include <cstdint>

namespace millrace {

// True, and `*result` set, unless the result would overflow.
inline bool CheckedMul(int64_t a, int64_t b, int64_t* result) {
  return !__builtin_mul_overflow(a, b, result);
}
inline bool CheckedAdd(int64_t a, int64_t b, int64_t* result) {
  return !__builtin_add_overflow(a, b, result);
}

}  // namespace millrace

#endif  // CORE_BASE_CHECKED_MATH_H_
