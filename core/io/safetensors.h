#ifndef CORE_IO_SAFETENSORS_H_
#define CORE_IO_SAFETENSORS_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/file.h"
#include "core/framework/tensor.h"

namespace millrace {

// The safetensors format: u64 little-endian length of a JSON header, the header
// ({"name": {"dtype": "F32", "shape": [2,3], "data_offsets": [0,24]}, "__metadata__": {...}}), then
// the tensors' bytes without gaps. Numeric dtypes only.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

// The file's bytes, header padded with spaces so that data starts on a multiple of 8. Tensors in
// the given order. InvalidArgument for a name twice, one that is not UTF-8, or a dtype that the
// format lacks.
StatusOr<std::string> WriteSafetensors(const NamedTensors& tensors,
                                       const std::map<std::string, std::string>& metadata);

struct Safetensors {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;
};
// DataLoss naming `place` and, where it is known, the tensor. Every length is checked, and that
// each byte of data belongs to one tensor, so that these take no more memory than the file.
StatusOr<Safetensors> ParseSafetensors(absl::string_view bytes, absl::string_view place);

}  // namespace millrace

#endif  // CORE_IO_SAFETENSORS_H_
