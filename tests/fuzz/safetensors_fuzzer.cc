#include <cstddef>
#include <cstdint>
#include <string>

#include "core/io/safetensors.h"
#include "tests/fuzz/require.h"

namespace millrace::testing {
namespace {

// Any bytes are read or refused as lost data. Tensors take no more memory than the file, and what
// is read is written and read back as it was.
void CheckFile(absl::string_view bytes) {
  const StatusOr<Safetensors> read = ParseSafetensors(bytes, "input");
  if (!read.ok()) {
    Require(absl::IsDataLoss(read.status()), "a refusal is DataLoss");
    return;
  }
  size_t size = 0;
  for (const auto& [name, tensor] : read->tensors) size += tensor.byte_size();
  Require(size <= bytes.size(), "no byte of the file is in two tensors");
  const NamedTensors tensors(read->tensors.begin(), read->tensors.end());
  const StatusOr<std::string> written = WriteSafetensors(tensors, read->metadata);
  Require(written.ok(), "what was read can be written");
  const StatusOr<Safetensors> again = ParseSafetensors(*written, "written");
  Require(again.ok() && again->tensors.size() == tensors.size(), "what is written reads back");
  Require(again->metadata == read->metadata, "metadata stays as it was");
  for (const auto& [name, tensor] : again->tensors) {
    Require(SameBits(tensor, read->tensors.at(name)), "tensors stay as they were");
  }
}

// A file whose header is what comes before the first NUL, which no JSON has, and its data what
// comes after.
std::string WithHeaderLength(absl::string_view text) {
  const size_t end = std::min(text.find('\0'), text.size());
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(uint64_t{end} >> (8 * i)));
  bytes.append(text.data(), end);
  const absl::string_view data = text.substr(std::min(end + 1, text.size()));
  bytes.append(data.data(), data.size());
  return bytes;
}

}  // namespace
}  // namespace millrace::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  millrace::testing::CheckFile(bytes);
  millrace::testing::CheckFile(millrace::testing::WithHeaderLength(bytes));
  return 0;
}
