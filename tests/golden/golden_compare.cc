#include "tests/golden/golden_compare.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace millrace::golden {
namespace {

// Where element `i` of `shape` is: "[1,0,2]".
std::string IndicesOf(const Shape& shape, int64_t i) {
  std::vector<int64_t> indices(shape.rank());
  for (int d = shape.rank() - 1; d >= 0; --d) {
    indices[d] = i % shape.dim(d);
    i /= shape.dim(d);
  }
  return StrCat("[", absl::StrJoin(indices, ","), "]");
}

std::string Text(double value) { return absl::StrFormat("%.17g", value); }
std::string Text(float value) { return absl::StrFormat("%.9g", value); }
template <typename T>
std::string Text(T value) {
  return StrCat(static_cast<int64_t>(value));
}

template <typename T, typename Same>
Status CompareElements(const Tensor& got, const Tensor& want, Same same) {
  const T* a = got.data<T>();
  const T* b = want.data<T>();
  for (int64_t i = 0; i < want.num_elements(); ++i) {
    if (same(a[i], b[i])) continue;
    return Internal("element ", IndicesOf(want.shape(), i), " is ", Text(a[i]), ", TensorFlow has ",
                    Text(b[i]));
  }
  return absl::OkStatus();
}

template <typename T>
Status CompareFloats(const Tensor& got, const Tensor& want, Tolerance tolerance) {
  double largest = 0;
  for (const T value : want.span<T>()) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(static_cast<double>(value)));
  }
  // Largest finite values times a tolerance may still be finite: a difference of doubles is, too.
  const double allowed = tolerance.relative * largest;
  return CompareElements<T>(got, want, [&](T a, T b) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
    if (a == b) return a != 0 || !tolerance.signed_zero || std::signbit(a) == std::signbit(b);
    return std::abs(static_cast<double>(a) - static_cast<double>(b)) <= allowed;
  });
}

// Whether the bits of a half or a bfloat16 are those of a NaN.
bool IsNan(DType dtype, uint16_t bits) {
  const uint16_t infinity = dtype == DType::kHalf ? 0x7C00 : 0x7F80;
  return (bits & 0x7FFF) > infinity;
}

Status CompareStrings(const Tensor& got, const Tensor& want) {
  for (int64_t i = 0; i < want.num_elements(); ++i) {
    if (got.string(i) == want.string(i)) continue;
    return Internal("element ", IndicesOf(want.shape(), i), " is '", got.string(i),
                    "', TensorFlow has '", want.string(i), "'");
  }
  return absl::OkStatus();
}

constexpr auto kEqual = [](auto a, auto b) { return a == b; };

}  // namespace

Tolerance ForwardTolerance(Precision precision, DType dtype) {
  if (precision == EXACT) return {0, true};
  const bool is_double = dtype == DType::kDouble;
  if (precision == ELEMENTWISE) return {is_double ? 1e-12 : 1e-5, true};
  return {is_double ? 1e-11 : 1e-4, false};
}

Tolerance GradientTolerance(Precision precision, DType dtype) {
  // A gradient of a choice or a movement may be a sum, where elements were used several times.
  const Precision of_sums = precision == EXACT ? ELEMENTWISE : precision;
  return {ForwardTolerance(of_sums, dtype).relative, false};
}

Status Compare(const Tensor& got, const Tensor& want, Tolerance tolerance) {
  if (got.dtype() != want.dtype() || got.shape() != want.shape()) {
    return Internal("it is ", Name(got.dtype()), " ", got.shape().ToString(), ", TensorFlow has ",
                    Name(want.dtype()), " ", want.shape().ToString());
  }
  switch (want.dtype()) {
    case DType::kFloat:
      return CompareFloats<float>(got, want, tolerance);
    case DType::kDouble:
      return CompareFloats<double>(got, want, tolerance);
    case DType::kHalf:
    case DType::kBfloat16:
      return CompareElements<uint16_t>(got, want, [&](uint16_t a, uint16_t b) {
        return a == b || (IsNan(want.dtype(), a) && IsNan(want.dtype(), b));
      });
    case DType::kInt32:
      return CompareElements<int32_t>(got, want, kEqual);
    case DType::kInt64:
      return CompareElements<int64_t>(got, want, kEqual);
    case DType::kInt8:
      return CompareElements<int8_t>(got, want, kEqual);
    case DType::kUint8:
      return CompareElements<uint8_t>(got, want, kEqual);
    case DType::kBool:
      return CompareElements<bool>(got, want, kEqual);
    case DType::kString:
      return CompareStrings(got, want);
    default:
      return Unimplemented("values of ", Name(want.dtype()), " are not compared");
  }
}

}  // namespace millrace::golden
