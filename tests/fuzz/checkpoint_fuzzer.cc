#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/base/crc32c.h"
#include "core/io/checkpoint.h"
#include "nlohmann/json.hpp"
#include "tests/fuzz/require.h"

namespace millrace::testing {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kPrefix[] = "run/c-1";
constexpr char kData[] = "run/c-1.data-00000-of-00001";

// The manifest in an index whose checksum fits, as else nothing of it would be looked at. Text that
// is no JSON, or too deep to be written by a recursive function, is the index itself.
std::string IndexOf(absl::string_view manifest) {
  constexpr auto kDeepest = 100;
  const Json json = std::count(manifest.begin(), manifest.end(), '[') +
                                std::count(manifest.begin(), manifest.end(), '{') >
                            kDeepest
                        ? Json(Json::value_t::discarded)
                        : Json::parse(manifest.begin(), manifest.end(), nullptr, false);
  if (json.is_discarded()) return std::string(manifest);
  Json index;
  index["crc32c"] = Crc32c(json.dump(-1, ' ', false, Json::error_handler_t::replace));
  index["manifest"] = json;
  return index.dump();
}

// The manifest is what comes before the first NUL, the file of tensors what comes after. They are
// read or refused as lost data; what is read is written and read back as it was.
void RunOne(absl::string_view input) {
  const size_t end = std::min(input.find('\0'), input.size());
  const absl::string_view data = input.substr(std::min(end + 1, input.size()));
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  Require(files->CreateFolder("run").ok(), "there is a folder");
  Require(WriteFile(*files, StrCat(kPrefix, ".index"), IndexOf(input.substr(0, end))).ok(),
          "the index is written");
  Require(WriteFile(*files, kData, data).ok(), "the data is written");
  (void)ListCheckpoint(*files, kPrefix);
  const StatusOr<Checkpoint> read = ReadCheckpoint(*files, kPrefix);
  if (!read.ok()) {
    Require(absl::IsDataLoss(read.status()), "a refusal is DataLoss");
    return;
  }
  const NamedTensors tensors(read->tensors.begin(), read->tensors.end());
  Require(WriteCheckpoint(*files, "run/again-1", tensors, read->metadata).ok(),
          "what was read can be written");
  const StatusOr<Checkpoint> again = ReadCheckpoint(*files, "run/again-1");
  Require(again.ok() && again->tensors.size() == tensors.size(), "what is written reads back");
  Require(again->metadata == read->metadata, "metadata stays as it was");
  for (const auto& [name, tensor] : again->tensors) {
    Require(SameBits(tensor, read->tensors.at(name)), "tensors stay as they were");
  }
}

}  // namespace
}  // namespace millrace::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  millrace::testing::RunOne({reinterpret_cast<const char*>(data), size});
  return 0;
}
