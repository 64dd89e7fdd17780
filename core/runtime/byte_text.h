#ifndef CORE_RUNTIME_BYTE_TEXT_H_
#define CORE_RUNTIME_BYTE_TEXT_H_

#include <cstdint>
#include <string>

#include "core/framework/dtype.h"
#include "core/framework/shape.h"

namespace millrace {

// "784 B", "12.3 KB", "1.5 MB" (1 KB = 1024 B); "?" for a negative number.
std::string BytesText(int64_t bytes);

// Bytes of a tensor, an unknown extent (or rank) counted as 1: a lower bound for anything but an
// empty tensor. Saturates.
int64_t LeastBytes(DType dtype, const PartialShape& shape);

}  // namespace millrace

#endif  // CORE_RUNTIME_BYTE_TEXT_H_
