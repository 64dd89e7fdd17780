#include "core/io/checkpoint.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "core/base/crc32c.h"
#include "nlohmann/json.hpp"

namespace millrace {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kIndexSuffix[] = ".index";
// No manifest is deeper, and functions that copy or write JSON are recursive.
constexpr int kMaxDepth = 8;
constexpr char kFormat[] = "millrace-checkpoint-1";

std::string DataPath(const std::string& prefix, int file, int files) {
  return absl::StrFormat("%s.data-%05d-of-%05d", prefix, file, files);
}
std::string NameOf(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

// Names that are no UTF-8 must not throw.
std::string Dump(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

uint32_t CrcOf(const Tensor& tensor) {
  return Crc32c({static_cast<const char*>(tensor.raw_data()), tensor.byte_size()});
}

// The manifest, checked for form: every field that readers use is there and of its kind.
StatusOr<Json> ReadIndex(FileSystem& files, const std::string& prefix) {
  const std::string path = prefix + kIndexSuffix;
  if (!files.Exists(path)) return NotFound("there is no checkpoint '", prefix, "' (no ", path, ")");
  MR_ASSIGN_OR_RETURN(std::string text, ReadFile(files, path));
  bool too_deep = false;
  const auto bound_depth = [&too_deep](int depth, Json::parse_event_t, const Json&) {
    too_deep = too_deep || depth > kMaxDepth;
    return depth <= kMaxDepth;
  };
  Json outer = Json::parse(text, bound_depth, /*allow_exceptions=*/false);
  if (too_deep || !outer.is_object() || !outer.contains("crc32c") ||
      !outer["crc32c"].is_number_unsigned() || !outer.contains("manifest") ||
      !outer["manifest"].is_object()) {
    return DataLoss(path, ": no checkpoint manifest: it is truncated or altered");
  }
  Json index = std::move(outer["manifest"]);
  if (Crc32c(Dump(index)) != outer["crc32c"].get<uint64_t>()) {
    return DataLoss(path, ": its checksum does not fit: it was altered");
  }
  if (!index.contains("format") || index["format"] != kFormat || !index.contains("tensors") ||
      !index["tensors"].is_object() || !index.contains("files") || !index["files"].is_object() ||
      !index.contains("metadata") || !index["metadata"].is_object()) {
    return DataLoss(path, ": not of the form ", kFormat);
  }
  for (const auto& [name, entry] : index["tensors"].items()) {
    if (!entry.is_object() || !entry.contains("file") || !entry["file"].is_string() ||
        !entry.contains("crc32c") || !entry["crc32c"].is_number_unsigned() ||
        !entry.contains("dtype") || !entry["dtype"].is_string() || !entry.contains("shape") ||
        !entry["shape"].is_string()) {
      return DataLoss(path, ": the entry of tensor '", name, "' is malformed");
    }
  }
  for (const auto& [name, entry] : index["files"].items()) {
    if (!entry.is_object() || !entry.contains("size") || !entry["size"].is_number_unsigned() ||
        name.find('/') != std::string::npos) {
      return DataLoss(path, ": the entry of file '", name, "' is malformed");
    }
  }
  return index;
}

}  // namespace

Status WriteCheckpoint(FileSystem& files, const std::string& prefix, const NamedTensors& tensors,
                       const std::map<std::string, std::string>& metadata) {
  MR_RETURN_IF_ERROR(files.CreateFolder(FolderOf(prefix)));
  const std::string data_path = DataPath(prefix, 0, 1);
  MR_ASSIGN_OR_RETURN(std::string data, WriteSafetensors(tensors, {}));
  Json index;
  index["format"] = kFormat;
  index["metadata"] = Json::object();
  for (const auto& [key, value] : metadata) index["metadata"][key] = value;
  index["files"][NameOf(data_path)] = {{"size", data.size()}, {"crc32c", Crc32c(data)}};
  index["tensors"] = Json::object();
  for (const auto& [name, tensor] : tensors) {
    index["tensors"][name] = {{"dtype", std::string(Name(tensor.dtype()))},
                              {"shape", tensor.shape().ToString()},
                              {"file", NameOf(data_path)},
                              {"crc32c", CrcOf(tensor)}};
  }
  Json outer;
  outer["crc32c"] = Crc32c(Dump(index));
  outer["manifest"] = std::move(index);
  MR_RETURN_IF_ERROR(WriteFile(files, data_path, data));
  return WriteFile(files, prefix + kIndexSuffix, Dump(outer, 1) + "\n");
}

StatusOr<Checkpoint> ReadCheckpoint(FileSystem& files, const std::string& prefix) {
  MR_ASSIGN_OR_RETURN(Json index, ReadIndex(files, prefix));
  std::map<std::string, Safetensors> parsed;
  for (const auto& [name, entry] : index["files"].items()) {
    const std::string path = JoinPath(FolderOf(prefix), name);
    StatusOr<std::string> bytes = ReadFile(files, path);
    if (!bytes.ok()) return DataLoss("checkpoint '", prefix, "': ", bytes.status().message());
    // Parsed before its size is compared, so that a truncated file's message names a tensor.
    MR_ASSIGN_OR_RETURN(parsed[name], ParseSafetensors(*bytes, path));
    if (bytes->size() != entry["size"].get<uint64_t>()) {
      return DataLoss(path, ": has ", bytes->size(), " bytes, but the manifest says ",
                      entry["size"].get<uint64_t>());
    }
  }
  Checkpoint checkpoint;
  for (const auto& [name, entry] : index["tensors"].items()) {
    const std::string file = entry["file"].get<std::string>();
    auto in_file = parsed.find(file);
    if (in_file == parsed.end()) {
      return DataLoss("checkpoint '", prefix, "': tensor '", name, "' is in file '", file,
                      "', which the manifest does not list");
    }
    auto found = in_file->second.tensors.find(name);
    if (found == in_file->second.tensors.end()) {
      return DataLoss(JoinPath(FolderOf(prefix), file), ": tensor '", name, "' is missing");
    }
    if (CrcOf(found->second) != entry["crc32c"].get<uint64_t>() ||
        found->second.shape().ToString() != entry["shape"].get<std::string>() ||
        Name(found->second.dtype()) != entry["dtype"].get<std::string>()) {
      return DataLoss(JoinPath(FolderOf(prefix), file), ": tensor '", name,
                      "' is not what was saved (checksum, dtype or shape): it was altered");
    }
    checkpoint.tensors[name] = std::move(found->second);
  }
  for (const auto& [key, value] : index["metadata"].items()) {
    if (value.is_string()) checkpoint.metadata[key] = value.get<std::string>();
  }
  return checkpoint;
}

StatusOr<std::vector<CheckpointEntry>> ListCheckpoint(FileSystem& files,
                                                      const std::string& prefix) {
  MR_ASSIGN_OR_RETURN(Json index, ReadIndex(files, prefix));
  std::vector<CheckpointEntry> entries;
  for (const auto& [name, entry] : index["tensors"].items()) {
    MR_ASSIGN_OR_RETURN(DType dtype, ParseDType(entry["dtype"].get<std::string>()));
    MR_ASSIGN_OR_RETURN(PartialShape partial,
                        PartialShape::Parse(entry["shape"].get<std::string>()));
    MR_ASSIGN_OR_RETURN(Shape shape, partial.ToShape());
    entries.push_back({name, dtype, shape, entry["file"].get<std::string>(),
                       static_cast<uint32_t>(entry["crc32c"].get<uint64_t>())});
  }
  return entries;
}

StatusOr<std::string> LatestCheckpoint(FileSystem& files, const std::string& folder,
                                       absl::string_view name) {
  MR_ASSIGN_OR_RETURN(std::vector<std::string> listed, files.List(folder));
  int64_t latest = -1;
  const std::string start = StrCat(name, "-");
  for (const std::string& file : listed) {
    if (!absl::StartsWith(file, start) || !absl::EndsWith(file, kIndexSuffix)) continue;
    const std::string middle =
        file.substr(start.size(), file.size() - start.size() - (sizeof(kIndexSuffix) - 1));
    int64_t step = 0;
    // Spelled otherwise (" 7", "007"), it would be another file than the one that is named below.
    if (absl::SimpleAtoi(middle, &step) && StrCat(step) == middle) latest = std::max(latest, step);
  }
  if (latest < 0) {
    return NotFound("there is no checkpoint '", name, "-<step>' in '", folder, "'");
  }
  return JoinPath(folder, StrCat(start, latest));
}

}  // namespace millrace
