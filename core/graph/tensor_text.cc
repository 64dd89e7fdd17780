#include <charconv>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "core/framework/bool_bytes.h"
#include "core/graph/attr_text.h"

namespace millrace {
namespace {

// More elements than these are written as bytes.
constexpr int64_t kMostWrittenOut = 32;

// Calls `visit` with a value of the dtype's C++ type; false for dtypes without plain numbers.
template <typename Visit>
bool WithNumber(DType dtype, Visit visit) {
  switch (dtype) {
    case DType::kFloat:
      visit(float());
      return true;
    case DType::kDouble:
      visit(double());
      return true;
    case DType::kInt8:
      visit(int8_t());
      return true;
    case DType::kInt16:
      visit(int16_t());
      return true;
    case DType::kInt32:
      visit(int32_t());
      return true;
    case DType::kInt64:
      visit(int64_t());
      return true;
    case DType::kUint8:
      visit(uint8_t());
      return true;
    case DType::kUint16:
      visit(uint16_t());
      return true;
    case DType::kUint32:
      visit(uint32_t());
      return true;
    case DType::kUint64:
      visit(uint64_t());
      return true;
    default:
      return false;
  }
}

template <typename T>
T Load(const Tensor& tensor, int64_t i) {
  T value;
  std::memcpy(&value, static_cast<const char*>(tensor.raw_data()) + i * sizeof(T), sizeof(T));
  return value;
}

// Whether the digits of each element say all of it: not so for a NaN that carries a message.
template <typename T>
bool AllHaveDigits(const Tensor& tensor) {
  if constexpr (std::is_floating_point_v<T>) {
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      if (std::isnan(Load<T>(tensor, i))) return false;
    }
  }
  return true;
}

template <typename T>
void AppendNumbers(const Tensor& tensor, std::string* text) {
  char digits[64];
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const auto [end, error] = std::to_chars(digits, digits + sizeof(digits), Load<T>(tensor, i));
    absl::StrAppend(text, " ", absl::string_view(digits, end - digits));
  }
}

template <typename T>
bool ParseNumber(absl::string_view word, T* value) {
  if constexpr (std::is_same_v<T, float>) {
    return absl::SimpleAtof(word, value);
  } else if constexpr (std::is_same_v<T, double>) {
    return absl::SimpleAtod(word, value);
  } else {
    const char* end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data(), end, *value);
    return error == std::errc() && stop == end;
  }
}

// As many values as the shape says: memory is taken for what the text holds, not for what it
// claims.
template <typename T, typename Parse>
StatusOr<std::vector<T>> TakeValues(TextCursor& cursor, const Shape& shape, Parse parse) {
  std::vector<T> values;
  while (!cursor.Sees(')')) {
    const int column = cursor.column();
    if (static_cast<int64_t>(values.size()) == shape.num_elements()) {
      return cursor.Error(StrCat("expected ')' after ", values.size(), " values"));
    }
    T value{};
    if (!parse(&value)) return cursor.ErrorAt(column, "expected a value of the tensor");
    values.push_back(std::move(value));
  }
  if (static_cast<int64_t>(values.size()) != shape.num_elements()) {
    return cursor.Error(
        StrCat("expected ", shape.num_elements(), " values, but there are ", values.size()));
  }
  return values;
}

StatusOr<Tensor> FromBytes(TextCursor& cursor, DType dtype, const Shape& shape,
                           absl::string_view bytes) {
  int64_t size = static_cast<int64_t>(bytes.size());
  if (SizeOf(dtype) == 0 || size / static_cast<int64_t>(SizeOf(dtype)) != shape.num_elements() ||
      size % static_cast<int64_t>(SizeOf(dtype)) != 0) {
    return cursor.Error(StrCat(size, " bytes are not a tensor ", Name(dtype), shape.ToString()));
  }
  StatusOr<Tensor> tensor = Tensor::Allocate(HostAllocator(), dtype, shape);
  if (!tensor.ok()) return cursor.Error(tensor.status().message());
  if (size > 0) std::memcpy(tensor->mutable_raw_data(), bytes.data(), size);
  NormalizeBools(*tensor);
  return tensor;
}

StatusOr<Tensor> StringsFromText(TextCursor& cursor, const Shape& shape) {
  const auto parse = [&cursor](std::string* value) {
    StatusOr<std::string> text = cursor.TakeQuoted();
    if (text.ok()) *value = *std::move(text);
    return text.ok();
  };
  MR_ASSIGN_OR_RETURN(const std::vector<std::string> values,
                      TakeValues<std::string>(cursor, shape, parse));
  return Tensor::Strings(shape, values);
}

StatusOr<Tensor> BoolsFromText(TextCursor& cursor, const Shape& shape) {
  const auto parse = [&cursor](char* value) {
    const absl::string_view word = cursor.TakeWord();
    *value = word == "true" ? 1 : 0;
    return word == "true" || word == "false";
  };
  MR_ASSIGN_OR_RETURN(const std::vector<char> values, TakeValues<char>(cursor, shape, parse));
  return FromBytes(cursor, DType::kBool, shape, {values.data(), values.size()});
}

template <typename T>
StatusOr<Tensor> NumbersFromText(TextCursor& cursor, DType dtype, const Shape& shape) {
  const auto parse = [&cursor](T* value) { return ParseNumber(cursor.TakeWord(), value); };
  MR_ASSIGN_OR_RETURN(const std::vector<T> values, TakeValues<T>(cursor, shape, parse));
  return FromBytes(cursor, dtype, shape,
                   {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)});
}

StatusOr<Tensor> ValuesFromText(TextCursor& cursor, DType dtype, const Shape& shape) {
  if (cursor.Take("base64 ")) {
    const int column = cursor.column();
    std::string bytes;
    if (!absl::Base64Unescape(cursor.TakeUntil(")"), &bytes)) {
      return cursor.ErrorAt(column, "this is not base64");
    }
    return FromBytes(cursor, dtype, shape, bytes);
  }
  if (dtype == DType::kString) return StringsFromText(cursor, shape);
  if (dtype == DType::kBool) return BoolsFromText(cursor, shape);
  StatusOr<Tensor> tensor =
      cursor.Error(StrCat("values of a ", Name(dtype), " tensor are written as bytes"));
  WithNumber(dtype, [&]<typename T>(T) { tensor = NumbersFromText<T>(cursor, dtype, shape); });
  return tensor;
}

}  // namespace

std::string TensorToText(const Tensor& tensor) {
  if (!tensor.valid()) return "tensor(invalid)";
  std::string text = StrCat("tensor(", Name(tensor.dtype()), tensor.shape().ToString(), ":");
  bool written = false;
  if (tensor.dtype() == DType::kString) {
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      absl::StrAppend(&text, " \"", absl::CHexEscape(tensor.string(i)), "\"");
    }
    written = true;
  } else if (tensor.num_elements() <= kMostWrittenOut) {
    WithNumber(tensor.dtype(), [&]<typename T>(T) {
      written = AllHaveDigits<T>(tensor);
      if (written) AppendNumbers<T>(tensor, &text);
    });
    if (tensor.dtype() == DType::kBool) {
      for (int64_t i = 0; i < tensor.num_elements(); ++i) {
        absl::StrAppend(&text, Load<char>(tensor, i) != 0 ? " true" : " false");
      }
      written = true;
    }
  }
  if (!written && SizeOf(tensor.dtype()) > 0) {
    absl::StrAppend(
        &text, " base64 ",
        absl::Base64Escape({static_cast<const char*>(tensor.raw_data()), tensor.byte_size()}));
  }
  return text + ")";
}

StatusOr<Tensor> TensorFromText(TextCursor& cursor) {
  if (cursor.Take("invalid)")) return Tensor();
  const int column = cursor.column();
  const StatusOr<DType> dtype = ParseDType(cursor.TakeWord());
  if (!dtype.ok()) return cursor.ErrorAt(column, dtype.status().message());
  if (!cursor.Take("[")) return cursor.Error("expected the shape of the tensor");
  const StatusOr<PartialShape> partial =
      PartialShape::Parse(StrCat("[", cursor.TakeUntil("]"), "]"));
  const StatusOr<Shape> shape = partial.ok() ? partial->ToShape() : partial.status();
  if (!shape.ok()) return cursor.ErrorAt(column, shape.status().message());
  if (!cursor.Take("]") || !cursor.Take(":")) return cursor.Error("expected ']:'");
  MR_ASSIGN_OR_RETURN(Tensor tensor, ValuesFromText(cursor, *dtype, *shape));
  if (!cursor.Take(")")) return cursor.Error("expected ')'");
  return tensor;
}

}  // namespace millrace
