#include "core/runtime/byte_text.h"

#include <limits>

#include "absl/strings/str_format.h"
#include "core/base/checked_math.h"

namespace millrace {

std::string BytesText(int64_t bytes) {
  if (bytes < 0) return "?";
  if (bytes < 1024) return absl::StrFormat("%d B", bytes);
  double value = static_cast<double>(bytes);
  const char* unit = "B";
  for (const char* next : {"KB", "MB", "GB", "TB"}) {
    if (value < 1024) break;
    value /= 1024;
    unit = next;
  }
  return absl::StrFormat("%.1f %s", value, unit);
}

int64_t LeastBytes(DType dtype, const PartialShape& shape) {
  int64_t bytes = static_cast<int64_t>(SizeOf(dtype));
  for (int64_t extent : shape.dims()) {
    if (extent >= 0 && !CheckedMul(bytes, extent, &bytes)) {
      return std::numeric_limits<int64_t>::max();
    }
  }
  return bytes;
}

}  // namespace millrace
