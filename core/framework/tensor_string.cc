#include "absl/strings/escaping.h"
#include "core/framework/resource.h"
#include "core/framework/tensor.h"

namespace millrace {
namespace {

constexpr size_t kShownCharacters = 40;  // of one string

float BitsToFloat(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

float HalfToFloat(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1f;
  const uint32_t fraction = half & 0x3ff;
  if (exponent == 0x1f) return BitsToFloat(sign | 0x7f800000u | fraction << 13);
  if (exponent != 0) return BitsToFloat(sign | (exponent + 112) << 23 | fraction << 13);
  const float magnitude = static_cast<float>(fraction) / 16777216.0f;  // subnormal: 2^-24 each
  return sign != 0 ? -magnitude : magnitude;
}

// Element i, which may lie at an address that is not aligned for T.
template <typename T>
T Load(const Tensor& tensor, int64_t i) {
  T value;
  std::memcpy(&value, static_cast<const char*>(tensor.raw_data()) + i * sizeof(T), sizeof(T));
  return value;
}

std::string ValueToString(const Tensor& tensor, int64_t i) {
  switch (tensor.dtype()) {
    case DType::kFloat:
      return StrCat(Load<float>(tensor, i));
    case DType::kDouble:
      return StrCat(Load<double>(tensor, i));
    case DType::kHalf:
      return StrCat(HalfToFloat(Load<uint16_t>(tensor, i)));
    case DType::kBfloat16:
      return StrCat(BitsToFloat(static_cast<uint32_t>(Load<uint16_t>(tensor, i)) << 16));
    case DType::kInt8:
      return StrCat(static_cast<int>(Load<int8_t>(tensor, i)));
    case DType::kInt16:
      return StrCat(Load<int16_t>(tensor, i));
    case DType::kInt32:
      return StrCat(Load<int32_t>(tensor, i));
    case DType::kInt64:
      return StrCat(Load<int64_t>(tensor, i));
    case DType::kUint8:
      return StrCat(static_cast<int>(Load<uint8_t>(tensor, i)));
    case DType::kUint16:
      return StrCat(Load<uint16_t>(tensor, i));
    case DType::kUint32:
      return StrCat(Load<uint32_t>(tensor, i));
    case DType::kUint64:
      return StrCat(Load<uint64_t>(tensor, i));
    case DType::kBool:
      return Load<uint8_t>(tensor, i) != 0 ? "true" : "false";
    case DType::kString: {
      const absl::string_view text = tensor.string(i);
      return StrCat("\"", absl::CHexEscape(text.substr(0, kShownCharacters)),
                    text.size() > kShownCharacters ? "\"..." : "\"");
    }
    case DType::kResource:
      return tensor.resource() == nullptr ? "null" : tensor.resource()->DebugString();
    case DType::kInvalid:
      break;
  }
  return "";
}

}  // namespace

std::string Tensor::ToString(int max_values) const {
  if (!valid()) return "invalid tensor";
  std::string text = StrCat(Name(dtype_), shape_.ToString());
  if (!IsHostMemory()) return text;
  absl::StrAppend(&text, " =");
  const int64_t shown = std::min<int64_t>(num_elements(), std::max(max_values, 0));
  for (int64_t i = 0; i < shown; ++i) absl::StrAppend(&text, " ", ValueToString(*this, i));
  if (shown < num_elements()) absl::StrAppend(&text, " ...");
  return text;
}

}  // namespace millrace
