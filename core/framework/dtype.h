#ifndef CORE_FRAMEWORK_DTYPE_H_
#define CORE_FRAMEWORK_DTYPE_H_

#include <cstddef>
#include <cstdint>

#include "core/base/status.h"

namespace millrace {

// Element types. Values are those of the public GraphDef's DataType.
enum class DType : int32_t {
  kInvalid = 0,
  kFloat = 1,
  kDouble = 2,
  kInt32 = 3,
  kUint8 = 4,
  kInt16 = 5,
  kInt8 = 6,
  kString = 7,
  kInt64 = 9,
  kBool = 10,
  kBfloat16 = 14,
  kUint16 = 17,
  kHalf = 19,
  kResource = 20,
  kUint32 = 22,
  kUint64 = 23,
};

// Bytes an element; 0 for kString, kResource and kInvalid.
size_t SizeOf(DType dtype);
// "float", "int32", ...: the spelling of op signatures, text form and messages.
absl::string_view Name(DType dtype);
StatusOr<DType> ParseDType(absl::string_view name);
// Whether the number is a dtype that this build knows (kInvalid is not).
bool IsKnownDType(int32_t value);
bool IsFloating(DType dtype);  // half, bfloat16, float, double
bool IsInteger(DType dtype);   // signed and unsigned, not bool

// The dtype of a C++ type: DTypeOf<float>::value.
template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kFloat;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::kDouble;
};
template <>
struct DTypeOf<int8_t> {
  static constexpr DType value = DType::kInt8;
};
template <>
struct DTypeOf<int16_t> {
  static constexpr DType value = DType::kInt16;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = DType::kInt32;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr DType value = DType::kInt64;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr DType value = DType::kUint8;
};
template <>
struct DTypeOf<uint16_t> {
  static constexpr DType value = DType::kUint16;
};
template <>
struct DTypeOf<uint32_t> {
  static constexpr DType value = DType::kUint32;
};
template <>
struct DTypeOf<uint64_t> {
  static constexpr DType value = DType::kUint64;
};
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::kBool;
};

}  // namespace millrace

#endif  // CORE_FRAMEWORK_DTYPE_H_
