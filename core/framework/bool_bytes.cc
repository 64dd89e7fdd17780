#include "core/framework/bool_bytes.h"

#include <algorithm>

namespace millrace {

void NormalizeBools(Tensor& tensor) {
  if (tensor.dtype() != DType::kBool) return;
  auto* const bytes = static_cast<uint8_t*>(tensor.mutable_raw_data());
  std::transform(bytes, bytes + tensor.num_elements(), bytes,
                 [](uint8_t byte) -> uint8_t { return byte != 0 ? 1 : 0; });
}

}  // namespace millrace
