#ifndef CORE_IO_CHECKPOINT_H_
#define CORE_IO_CHECKPOINT_H_

#include <map>
#include <string>
#include <vector>

#include "core/io/safetensors.h"

namespace millrace {

// A checkpoint with prefix P: `P.data-00000-of-0000n` (safetensors files) and `P.index`, a JSON
// manifest with the shape, dtype, file and CRC-32C of each tensor and the size and CRC-32C of each
// file. The index is published last, so that a checkpoint is complete or absent. It holds logical
// tensors: no trace of how they were placed.

// All or nothing. Values that must stay together (step counters, data set positions) go into
// `metadata`.
Status WriteCheckpoint(FileSystem& files, const std::string& prefix, const NamedTensors& tensors,
                       const std::map<std::string, std::string>& metadata);

struct Checkpoint {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;
};
// DataLoss, naming file and tensor, for anything missing, truncated or altered; nothing is returned
// then. NotFound if there is no index.
StatusOr<Checkpoint> ReadCheckpoint(FileSystem& files, const std::string& prefix);

// The manifest alone, for inspection.
struct CheckpointEntry {
  std::string name;
  DType dtype;
  Shape shape;
  std::string file;
  uint32_t crc32c;
};
StatusOr<std::vector<CheckpointEntry>> ListCheckpoint(FileSystem& files, const std::string& prefix);

// The prefix of the newest complete checkpoint in `folder` whose name begins with `name` and ends
// in "-<step>"; NotFound if there is none.
StatusOr<std::string> LatestCheckpoint(FileSystem& files, const std::string& folder,
                                       absl::string_view name);

}  // namespace millrace

#endif  // CORE_IO_CHECKPOINT_H_
