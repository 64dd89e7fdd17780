#ifndef CORE_BASE_CRC32C_H_
#define CORE_BASE_CRC32C_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace millrace {

// CRC-32C (Castagnoli), by the SSE4.2 instruction where the processor has it. `crc` continues an
// earlier result. Crc32c("123456789") is 0xe3069283.
uint32_t Crc32c(absl::string_view bytes, uint32_t crc = 0);

// The masked form of TFRecord and event files: rotated right by 15 bits, plus 0xa282ead8.
uint32_t MaskedCrc32c(absl::string_view bytes);

}  // namespace millrace

#endif  // CORE_BASE_CRC32C_H_
