#include "core/framework/dtype.h"

namespace millrace {
namespace {

struct Entry {
  DType dtype;
  size_t size;
  absl::string_view name;
};

constexpr Entry kEntries[] = {
    {DType::kFloat, 4, "float"},       {DType::kDouble, 8, "double"}, {DType::kInt32, 4, "int32"},
    {DType::kUint8, 1, "uint8"},       {DType::kInt16, 2, "int16"},   {DType::kInt8, 1, "int8"},
    {DType::kString, 0, "string"},     {DType::kInt64, 8, "int64"},   {DType::kBool, 1, "bool"},
    {DType::kBfloat16, 2, "bfloat16"}, {DType::kUint16, 2, "uint16"}, {DType::kHalf, 2, "half"},
    {DType::kResource, 0, "resource"}, {DType::kUint32, 4, "uint32"}, {DType::kUint64, 8, "uint64"},
};

const Entry* Find(DType dtype) {
  for (const Entry& entry : kEntries) {
    if (entry.dtype == dtype) return &entry;
  }
  return nullptr;
}

}  // namespace

size_t SizeOf(DType dtype) {
  const Entry* entry = Find(dtype);
  return entry == nullptr ? 0 : entry->size;
}

absl::string_view Name(DType dtype) {
  const Entry* entry = Find(dtype);
  return entry == nullptr ? "invalid" : entry->name;
}

StatusOr<DType> ParseDType(absl::string_view name) {
  for (const Entry& entry : kEntries) {
    if (entry.name == name) return entry.dtype;
  }
  return InvalidArgument("'", name, "' is not a dtype");
}

bool IsKnownDType(int32_t value) { return Find(static_cast<DType>(value)) != nullptr; }

bool IsFloating(DType dtype) {
  return dtype == DType::kFloat || dtype == DType::kDouble || dtype == DType::kHalf ||
         dtype == DType::kBfloat16;
}

bool IsInteger(DType dtype) {
  return SizeOf(dtype) != 0 && dtype != DType::kBool && !IsFloating(dtype);
}

}  // namespace millrace
