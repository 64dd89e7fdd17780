#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/io/idx.h"
#include "tests/fuzz/require.h"

namespace millrace::testing {
namespace {

std::string Gzip(absl::string_view bytes) {
  z_stream stream{};
  Require(deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK, "zlib");
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  Require(deflate(&stream, Z_FINISH) == Z_STREAM_END, "zlib packs");
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

char TypeCode(DType dtype) {
  switch (dtype) {
    case DType::kUint8:
      return 0x08;
    case DType::kInt8:
      return 0x09;
    case DType::kInt16:
      return 0x0B;
    case DType::kInt32:
      return 0x0C;
    case DType::kFloat:
      return 0x0D;
    default:
      return 0x0E;
  }
}

std::string ToIdx(const Tensor& tensor) {
  std::string bytes = {0, 0, TypeCode(tensor.dtype()), static_cast<char>(tensor.shape().rank())};
  for (const int64_t dim : tensor.shape().dims()) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(dim >> shift));
  }
  const size_t header = bytes.size();
  bytes.append(static_cast<const char*>(tensor.raw_data()), tensor.byte_size());
  const size_t size = SizeOf(tensor.dtype());
  for (size_t at = header; at < bytes.size(); at += size) {
    std::reverse(bytes.begin() + at, bytes.begin() + at + size);
  }
  return bytes;
}

// Any bytes are read or refused as lost data. What is read is the whole file and nothing else, and
// packed it reads as it does plain.
void RunOne(absl::string_view bytes) {
  const StatusOr<Tensor> tensor = ParseIdx(bytes, "input");
  if (!tensor.ok()) {
    Require(absl::IsDataLoss(tensor.status()), "a refusal is DataLoss");
    return;
  }
  const std::string plain = ToIdx(*tensor);
  const bool packed = !bytes.empty() && bytes[0] != 0;
  Require(packed || plain == bytes, "each byte of the file is in the tensor");
  const StatusOr<Tensor> again = ParseIdx(plain, "plain");
  Require(again.ok() && SameBits(*tensor, *again), "what is written out reads back");
  const std::string gzip = Gzip(plain);
  const StatusOr<Tensor> unpacked = ParseIdx(gzip, "packed");
  Require(unpacked.ok() && SameBits(*tensor, *unpacked), "a packed file reads as a plain one");
  Require(!ParseIdx(gzip + '\0', "longer").ok(), "bytes after the packed ones are refused");
  Require(!ParseIdx(absl::string_view(gzip).substr(0, gzip.size() - 1), "shorter").ok(),
          "a packed file that ends early is refused");
}

}  // namespace
}  // namespace millrace::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  millrace::testing::RunOne({reinterpret_cast<const char*>(data), size});
  return 0;
}
