#ifndef CORE_IO_IDX_H_
#define CORE_IO_IDX_H_

#include <string>

#include "core/base/file.h"
#include "core/framework/tensor.h"

namespace millrace {

// Reads an IDX file (the format of MNIST: big-endian magic 0x00 0x00 <type> <rank>, extents, then
// elements), gzip-compressed or not (told by content). uint8, int8, int16, int32, float, double;
// elements come in host byte order. DataLoss, naming the file and the place, for a truncated or
// malformed file, trailing bytes included.
StatusOr<Tensor> ReadIdx(FileSystem& files, const std::string& path);
// From bytes, for tests and fuzzing; `place` names them in messages.
StatusOr<Tensor> ParseIdx(absl::string_view bytes, absl::string_view place);

}  // namespace millrace

#endif  // CORE_IO_IDX_H_
