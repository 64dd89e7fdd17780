#include "core/io/idx.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/base/checked_math.h"

namespace millrace {
namespace {

// More than any IDX file in use; a bound on what a small compressed file can make us allocate.
constexpr size_t kMaxBytes = size_t{2} << 30;

StatusOr<std::string> Gunzip(absl::string_view bytes, absl::string_view place) {
  if (bytes.size() > kMaxBytes) {
    return DataLoss(place, ": ", bytes.size(), " bytes are more than the ", kMaxBytes,
                    " that are supported");
  }
  z_stream stream{};
  // 15 bits of window, +16: gzip framing.
  if (inflateInit2(&stream, 15 + 16) != Z_OK) return Internal("zlib cannot start");
  std::string out;
  std::vector<char> chunk(1 << 20);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  int code = Z_OK;
  while (code == Z_OK && out.size() <= kMaxBytes) {
    stream.next_out = reinterpret_cast<Bytef*>(chunk.data());
    stream.avail_out = static_cast<uInt>(chunk.size());
    code = inflate(&stream, Z_NO_FLUSH);
    out.append(chunk.data(), chunk.size() - stream.avail_out);
    if (code == Z_BUF_ERROR) break;  // the input ended in the middle
  }
  const size_t used = bytes.size() - stream.avail_in;
  inflateEnd(&stream);
  if (code == Z_STREAM_END && used == bytes.size()) return out;
  if (code == Z_STREAM_END) {
    return DataLoss(place, ": ", bytes.size() - used, " bytes follow the end of the gzip data");
  }
  if (out.size() > kMaxBytes) {
    return DataLoss(place, ": more than ", kMaxBytes, " bytes when unpacked");
  }
  return DataLoss(place, ": damaged or truncated gzip data at byte ", used);
}

struct ElementType {
  DType dtype;
  size_t size;
};

StatusOr<ElementType> TypeOf(uint8_t code, absl::string_view place) {
  switch (code) {
    case 0x08:
      return ElementType{DType::kUint8, 1};
    case 0x09:
      return ElementType{DType::kInt8, 1};
    case 0x0B:
      return ElementType{DType::kInt16, 2};
    case 0x0C:
      return ElementType{DType::kInt32, 4};
    case 0x0D:
      return ElementType{DType::kFloat, 4};
    case 0x0E:
      return ElementType{DType::kDouble, 8};
    default:
      return DataLoss(place, ": byte 2 names element type ", static_cast<int>(code),
                      ", which IDX does not have");
  }
}

uint32_t BigEndian32(const char* p) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | static_cast<uint8_t>(p[i]);
  return value;
}

}  // namespace

StatusOr<Tensor> ParseIdx(absl::string_view bytes, absl::string_view place) {
  std::string unpacked;
  if (bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b') {
    MR_ASSIGN_OR_RETURN(unpacked, Gunzip(bytes, place));
    bytes = unpacked;
  }
  if (bytes.size() < 4 || bytes[0] != 0 || bytes[1] != 0) {
    return DataLoss(place, ": not an IDX file: it begins with no magic number 0x0000");
  }
  MR_ASSIGN_OR_RETURN(const ElementType type, TypeOf(static_cast<uint8_t>(bytes[2]), place));
  const int rank = static_cast<uint8_t>(bytes[3]);
  const size_t header = 4 + 4 * static_cast<size_t>(rank);
  if (bytes.size() < header) {
    return DataLoss(place, ": truncated at byte ", bytes.size(), ", within the header of ", header);
  }
  std::vector<int64_t> dims;
  for (int i = 0; i < rank; ++i) dims.push_back(BigEndian32(bytes.data() + 4 + 4 * i));
  StatusOr<Shape> shape = Shape::Create(dims);
  if (!shape.ok()) return DataLoss(place, ": ", shape.status().message());
  int64_t size = 0;
  if (!CheckedMul(shape->num_elements(), static_cast<int64_t>(type.size), &size) ||
      static_cast<uint64_t>(size) != bytes.size() - header) {
    return DataLoss(place, ": shape ", shape->ToString(), " of ", Name(type.dtype), " needs ", size,
                    " bytes after the header, but ", bytes.size() - header, " are there");
  }
  MR_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(HostAllocator(), type.dtype, *shape));
  char* to = static_cast<char*>(tensor.mutable_raw_data());
  if (size > 0) std::memcpy(to, bytes.data() + header, static_cast<size_t>(size));
  if (type.size > 1) {
    for (int64_t i = 0; i < size; i += static_cast<int64_t>(type.size)) {
      std::reverse(to + i, to + i + type.size);
    }
  }
  return tensor;
}

StatusOr<Tensor> ReadIdx(FileSystem& files, const std::string& path) {
  MR_ASSIGN_OR_RETURN(std::string bytes, ReadFile(files, path));
  return ParseIdx(bytes, path);
}

}  // namespace millrace
