#include "core/io/safetensors.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "absl/strings/escaping.h"
#include "core/framework/bool_bytes.h"
#include "nlohmann/json.hpp"

namespace millrace {
namespace {

// Written in the order of the tensors.
using Json = nlohmann::ordered_json;
// Read by name: an ordered one would take time quadratic in the number of names.
using ParsedJson = nlohmann::json;

// As the format's reference reader: no header is longer.
constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr char kMetadataKey[] = "__metadata__";

struct TypeName {
  DType dtype;
  const char* name;
};
constexpr TypeName kTypes[] = {
    {DType::kFloat, "F32"},     {DType::kDouble, "F64"}, {DType::kHalf, "F16"},
    {DType::kBfloat16, "BF16"}, {DType::kInt64, "I64"},  {DType::kInt32, "I32"},
    {DType::kInt16, "I16"},     {DType::kInt8, "I8"},    {DType::kUint8, "U8"},
    {DType::kUint16, "U16"},    {DType::kUint32, "U32"}, {DType::kUint64, "U64"},
    {DType::kBool, "BOOL"},
};

// Whether JSON can hold it: other bytes than UTF-8 are replaced.
bool IsJsonString(const std::string& text) {
  const std::string json = Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
  return ParsedJson::parse(json, nullptr, /*allow_exceptions=*/false) == text;
}

const char* NameOf(DType dtype) {
  for (const TypeName& t : kTypes) {
    if (t.dtype == dtype) return t.name;
  }
  return nullptr;
}

DType TypeOf(const std::string& name) {
  for (const TypeName& t : kTypes) {
    if (name == t.name) return t.dtype;
  }
  return DType::kInvalid;
}

// A tensor as the header has it.
struct Entry {
  std::string name;
  DType dtype = DType::kInvalid;
  Shape shape;
  uint64_t begin = 0;
  uint64_t end = 0;
};

StatusOr<Entry> ParseEntry(const ParsedJson& entry) {
  if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string() ||
      !entry.contains("shape") || !entry["shape"].is_array() || !entry.contains("data_offsets") ||
      !entry["data_offsets"].is_array() || entry["data_offsets"].size() != 2) {
    return DataLoss("its header entry lacks dtype, shape or data_offsets");
  }
  const std::string type_name = entry["dtype"].get<std::string>();
  const DType dtype = TypeOf(type_name);
  if (dtype == DType::kInvalid) return DataLoss("its dtype '", type_name, "' is unknown");
  std::vector<int64_t> dims;
  for (const ParsedJson& dim : entry["shape"]) {
    if (!dim.is_number_unsigned()) return DataLoss("its shape has an extent that is no count");
    dims.push_back(dim.get<int64_t>());
  }
  StatusOr<Shape> shape = Shape::Create(dims);
  if (!shape.ok()) return DataLoss("its shape is refused: ", shape.status().message());
  for (const ParsedJson& offset : entry["data_offsets"]) {
    if (!offset.is_number_unsigned()) return DataLoss("its data_offsets are no counts");
  }
  const uint64_t begin = entry["data_offsets"][0].get<uint64_t>();
  const uint64_t end = entry["data_offsets"][1].get<uint64_t>();
  if (begin > end) return DataLoss("its bytes [", begin, ",", end, ") end before they begin");
  const uint64_t expected = static_cast<uint64_t>(shape->num_elements()) * SizeOf(dtype);
  if (end - begin != expected) {
    return DataLoss("it has ", end - begin, " bytes, but ", Name(dtype), shape->ToString(),
                    " needs ", expected);
  }
  return Entry{"", dtype, *shape, begin, end};
}

// That the tensors' bytes are the data, without gaps and each byte of one tensor: else a small file
// could name its data many times, and take much memory.
Status CheckRanges(std::vector<const Entry*> entries, size_t size) {
  std::sort(entries.begin(), entries.end(), [](const Entry* a, const Entry* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  uint64_t at = 0;
  for (const Entry* entry : entries) {
    if (entry->begin != at) {
      return DataLoss("tensor '", entry->name, "': its bytes begin at ", entry->begin,
                      ", but those before end at ", at);
    }
    if (entry->end > size) {
      return DataLoss("tensor '", entry->name, "': its bytes [", entry->begin, ",", entry->end,
                      ") are not within the ", size,
                      " bytes of data: the file is truncated or altered");
    }
    at = entry->end;
  }
  if (at == size) return absl::OkStatus();
  return DataLoss("its last ", size - at, " bytes belong to no tensor");
}

StatusOr<Tensor> ReadTensor(const Entry& entry, absl::string_view data) {
  MR_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(HostAllocator(), entry.dtype, entry.shape));
  const size_t size = entry.end - entry.begin;
  if (size > 0) std::memcpy(tensor.mutable_raw_data(), data.data() + entry.begin, size);
  NormalizeBools(tensor);
  return tensor;
}

}  // namespace

StatusOr<std::string> WriteSafetensors(const NamedTensors& tensors,
                                       const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header[kMetadataKey] = metadata;
  uint64_t offset = 0;
  std::set<std::string> names = {kMetadataKey};
  for (const auto& [name, tensor] : tensors) {
    if (!IsJsonString(name)) {
      return InvalidArgument("tensor '", absl::CHexEscape(name), "': its name is not UTF-8");
    }
    if (!names.insert(name).second) return InvalidArgument("tensor '", name, "' is there twice");
    const char* type = NameOf(tensor.dtype());
    if (type == nullptr) {
      return InvalidArgument("tensor '", name, "' has dtype ", Name(tensor.dtype()),
                             ", which safetensors files cannot hold");
    }
    const absl::Span<const int64_t> dims = tensor.shape().dims();
    header[name] = {{"dtype", type},
                    {"shape", std::vector<int64_t>(dims.begin(), dims.end())},
                    {"data_offsets", {offset, offset + tensor.byte_size()}}};
    offset += tensor.byte_size();
  }
  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  while ((8 + text.size()) % 8 != 0) text.push_back(' ');
  std::string bytes;
  bytes.reserve(8 + text.size() + offset);
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(text.size() >> (8 * i)));
  bytes += text;
  for (const auto& [name, tensor] : tensors) {
    bytes.append(static_cast<const char*>(tensor.raw_data()), tensor.byte_size());
  }
  return bytes;
}

StatusOr<Safetensors> ParseSafetensors(absl::string_view bytes, absl::string_view place) {
  if (bytes.size() < 8) return DataLoss(place, ": too short for a safetensors file");
  uint64_t header_size = 0;
  for (int i = 0; i < 8; ++i) {
    header_size |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[i])) << (8 * i);
  }
  if (header_size > kMaxHeaderBytes || header_size > bytes.size() - 8) {
    return DataLoss(place, ": its header claims ", header_size, " bytes, but ", bytes.size() - 8,
                    " follow");
  }
  const char* text = bytes.data() + 8;
  const ParsedJson header =
      ParsedJson::parse(text, text + header_size, nullptr, /*allow_exceptions=*/false);
  if (!header.is_object()) return DataLoss(place, ": its header is no JSON object");
  const absl::string_view data = bytes.substr(8 + header_size);
  Safetensors result;
  std::vector<Entry> entries;
  for (const auto& [name, entry] : header.items()) {
    if (name == kMetadataKey) {
      if (!entry.is_object()) return DataLoss(place, ": its metadata is no JSON object");
      for (const auto& [key, value] : entry.items()) {
        if (!value.is_string()) return DataLoss(place, ": metadata '", key, "' is no string");
        result.metadata[key] = value.get<std::string>();
      }
      continue;
    }
    StatusOr<Entry> parsed = ParseEntry(entry);
    if (!parsed.ok()) return Annotate(parsed.status(), StrCat(place, ": tensor '", name, "'"));
    parsed->name = name;
    entries.push_back(*std::move(parsed));
  }
  std::vector<const Entry*> ranges;
  for (const Entry& entry : entries) ranges.push_back(&entry);
  if (const Status status = CheckRanges(std::move(ranges), data.size()); !status.ok()) {
    return Annotate(status, place);
  }
  for (const Entry& entry : entries) {
    StatusOr<Tensor> tensor = ReadTensor(entry, data);
    if (!tensor.ok()) {
      return Annotate(tensor.status(), StrCat(place, ": tensor '", entry.name, "'"));
    }
    result.tensors[entry.name] = *std::move(tensor);
  }
  return result;
}

}  // namespace millrace
