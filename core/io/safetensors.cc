#include "core/io/safetensors.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "nlohmann/json.hpp"

namespace millrace {
namespace {

using Json = nlohmann::ordered_json;

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

// One entry of the header, checked against the size of the data.
StatusOr<Tensor> ParseTensor(const Json& entry, absl::string_view data) {
  if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string() ||
      !entry.contains("shape") || !entry["shape"].is_array() || !entry.contains("data_offsets") ||
      !entry["data_offsets"].is_array() || entry["data_offsets"].size() != 2) {
    return DataLoss("its header entry lacks dtype, shape or data_offsets");
  }
  const std::string type_name = entry["dtype"].get<std::string>();
  const DType dtype = TypeOf(type_name);
  if (dtype == DType::kInvalid) return DataLoss("its dtype '", type_name, "' is unknown");
  std::vector<int64_t> dims;
  for (const Json& dim : entry["shape"]) {
    if (!dim.is_number_unsigned()) return DataLoss("its shape has an extent that is no count");
    dims.push_back(dim.get<int64_t>());
  }
  StatusOr<Shape> shape = Shape::Create(dims);
  if (!shape.ok()) return DataLoss("its shape is refused: ", shape.status().message());
  for (const Json& offset : entry["data_offsets"]) {
    if (!offset.is_number_unsigned()) return DataLoss("its data_offsets are no counts");
  }
  const uint64_t begin = entry["data_offsets"][0].get<uint64_t>();
  const uint64_t end = entry["data_offsets"][1].get<uint64_t>();
  if (begin > end || end > data.size()) {
    return DataLoss("its bytes [", begin, ",", end, ") are not within the ", data.size(),
                    " bytes of data: the file is truncated or altered");
  }
  const uint64_t expected = static_cast<uint64_t>(shape->num_elements()) * SizeOf(dtype);
  if (end - begin != expected) {
    return DataLoss("it has ", end - begin, " bytes, but ", Name(dtype), shape->ToString(),
                    " needs ", expected);
  }
  MR_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(HostAllocator(), dtype, *shape));
  if (expected > 0) std::memcpy(tensor.mutable_raw_data(), data.data() + begin, expected);
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
  const Json header = Json::parse(text, text + header_size, nullptr, /*allow_exceptions=*/false);
  if (!header.is_object()) return DataLoss(place, ": its header is no JSON object");
  const absl::string_view data = bytes.substr(8 + header_size);
  Safetensors result;
  for (const auto& [name, entry] : header.items()) {
    if (name == kMetadataKey) {
      if (!entry.is_object()) return DataLoss(place, ": its metadata is no JSON object");
      for (const auto& [key, value] : entry.items()) {
        if (!value.is_string()) return DataLoss(place, ": metadata '", key, "' is no string");
        result.metadata[key] = value.get<std::string>();
      }
      continue;
    }
    StatusOr<Tensor> tensor = ParseTensor(entry, data);
    if (!tensor.ok()) return Annotate(tensor.status(), StrCat(place, ": tensor '", name, "'"));
    result.tensors[name] = *std::move(tensor);
  }
  return result;
}

}  // namespace millrace
