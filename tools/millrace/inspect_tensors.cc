#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "absl/strings/str_format.h"
#include "core/io/checkpoint.h"
#include "core/runtime/byte_text.h"
#include "kernels/half.h"
#include "tools/millrace/inspect.h"
#include "tools/millrace/table.h"

namespace millrace {
namespace {

struct Range {
  double minimum = std::numeric_limits<double>::infinity();
  double maximum = -std::numeric_limits<double>::infinity();
  double sum = 0;
  int64_t finite = 0;
  int64_t not_finite = 0;
};

template <typename T, typename Convert>
Range RangeOf(const Tensor& tensor, Convert convert) {
  Range range;
  for (const T& element : tensor.span<T>()) {
    const double value = convert(element);
    if (!std::isfinite(value)) {
      ++range.not_finite;
      continue;
    }
    ++range.finite;
    range.minimum = std::min(range.minimum, value);
    range.maximum = std::max(range.maximum, value);
    range.sum += value;
  }
  return range;
}

template <typename T>
Range RangeOf(const Tensor& tensor) {
  return RangeOf<T>(tensor, [](T value) { return static_cast<double>(value); });
}

std::optional<Range> RangeOf(const Tensor& tensor) {
  switch (tensor.dtype()) {
    case DType::kFloat:
      return RangeOf<float>(tensor);
    case DType::kDouble:
      return RangeOf<double>(tensor);
    case DType::kHalf:
      return RangeOf<uint16_t>(tensor, HalfToFloat);
    case DType::kBfloat16:
      return RangeOf<uint16_t>(tensor, Bfloat16ToFloat);
    case DType::kInt8:
      return RangeOf<int8_t>(tensor);
    case DType::kInt16:
      return RangeOf<int16_t>(tensor);
    case DType::kInt32:
      return RangeOf<int32_t>(tensor);
    case DType::kInt64:
      return RangeOf<int64_t>(tensor);
    case DType::kUint8:
      return RangeOf<uint8_t>(tensor);
    case DType::kUint16:
      return RangeOf<uint16_t>(tensor);
    case DType::kUint32:
      return RangeOf<uint32_t>(tensor);
    case DType::kUint64:
      return RangeOf<uint64_t>(tensor);
    case DType::kBool:
      return RangeOf<bool>(tensor);
    default:
      return std::nullopt;
  }
}

}  // namespace

std::string DescribeTensors(const std::map<std::string, Tensor>& tensors) {
  Table table;
  table.Add({"tensor", "dtype", "shape", "bytes", "min", "mean", "max", ""});
  int64_t bytes = 0;
  int64_t elements = 0;
  for (const auto& [name, tensor] : tensors) {
    bytes += static_cast<int64_t>(tensor.byte_size());
    elements += tensor.num_elements();
    std::vector<std::string> row = {name, std::string(Name(tensor.dtype())),
                                    tensor.shape().ToString(),
                                    BytesText(static_cast<int64_t>(tensor.byte_size()))};
    const std::optional<Range> range = RangeOf(tensor);
    if (range.has_value() && range->finite > 0) {
      row.push_back(absl::StrFormat("%.6g", range->minimum));
      row.push_back(absl::StrFormat("%.6g", range->sum / range->finite));
      row.push_back(absl::StrFormat("%.6g", range->maximum));
    } else {
      row.insert(row.end(), 3, "-");
    }
    row.push_back(
        range.has_value() && range->not_finite > 0 ? StrCat(range->not_finite, " not finite") : "");
    table.Add(std::move(row));
  }
  return StrCat(table.ToString(), "  in all ", tensors.size(), ": ", elements, " elements, ",
                BytesText(bytes), "\n");
}

StatusOr<std::string> DescribeCheckpoint(FileSystem& files, const std::string& prefix) {
  MR_ASSIGN_OR_RETURN(const Checkpoint checkpoint, ReadCheckpoint(files, prefix));
  std::string text = StrCat("checkpoint ", prefix, ", all checksums right\n\n",
                            DescribeTensors(checkpoint.tensors));
  if (!checkpoint.metadata.empty()) {
    text += "\nmetadata\n";
    Table table;
    for (const auto& [key, value] : checkpoint.metadata) table.Add({key, value});
    text += table.ToString();
  }
  return text;
}

}  // namespace millrace
