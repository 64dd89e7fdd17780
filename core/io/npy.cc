#include "core/io/npy.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "core/base/checked_math.h"
#include "core/framework/bool_bytes.h"

namespace millrace {
namespace {

constexpr absl::string_view kMagic("\x93NUMPY", 6);
constexpr size_t kAlignment = 64;  // of the elements, in what is written

struct Code {
  DType dtype;
  const char* code;  // kind and size, without the byte order
};
constexpr Code kCodes[] = {
    {DType::kBool, "b1"},     {DType::kInt8, "i1"},  {DType::kInt16, "i2"},  {DType::kInt32, "i4"},
    {DType::kInt64, "i8"},    {DType::kUint8, "u1"}, {DType::kUint16, "u2"}, {DType::kUint32, "u4"},
    {DType::kUint64, "u8"},   {DType::kHalf, "f2"},  {DType::kFloat, "f4"},  {DType::kDouble, "f8"},
    {DType::kBfloat16, "V2"},
};

struct Header {
  std::string descr;
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

// The dict literal of the header, as far as the format allows it.
class HeaderParser {
 public:
  HeaderParser(absl::string_view text, absl::string_view place) : text_(text), place_(place) {}

  StatusOr<Header> Parse() {
    Header header;
    bool seen[3] = {};
    MR_RETURN_IF_ERROR(Expect("{"));
    while (!Consume("}")) {
      MR_ASSIGN_OR_RETURN(const std::string key, String());
      MR_RETURN_IF_ERROR(Expect(":"));
      const int which = key == "descr" ? 0 : key == "fortran_order" ? 1 : key == "shape" ? 2 : -1;
      if (which < 0 || seen[which]) return Damaged(StrCat("the key '", key, "'"));
      seen[which] = true;
      if (which == 0) {
        if (Peek('[')) {
          return Unimplemented(place_, ": elements with several fields are not supported");
        }
        MR_ASSIGN_OR_RETURN(header.descr, String());
      } else if (which == 1) {
        header.fortran_order = Consume("True");
        if (!header.fortran_order) MR_RETURN_IF_ERROR(Expect("False"));
      } else {
        MR_ASSIGN_OR_RETURN(header.shape, Tuple());
      }
      if (Consume(",")) continue;
      MR_RETURN_IF_ERROR(Expect("}"));
      break;
    }
    SkipSpace();
    if (!text_.empty()) return Damaged("text after the dict");
    if (!seen[0] || !seen[1] || !seen[2]) return Damaged("a key that is missing");
    return header;
  }

 private:
  Status Damaged(absl::string_view what) const {
    return DataLoss(place_, ": the header of the npy file has ", what);
  }
  void SkipSpace() {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\n' || text_[0] == '\t')) {
      text_.remove_prefix(1);
    }
  }
  bool Peek(char c) {
    SkipSpace();
    return !text_.empty() && text_[0] == c;
  }
  bool Consume(absl::string_view token) {
    SkipSpace();
    return absl::ConsumePrefix(&text_, token);
  }
  Status Expect(absl::string_view token) {
    if (Consume(token)) return absl::OkStatus();
    return Damaged(StrCat("no '", token, "' where one is needed"));
  }
  StatusOr<std::string> String() {
    const char quote = Peek('"') ? '"' : '\'';
    MR_RETURN_IF_ERROR(Expect(absl::string_view(&quote, 1)));
    const size_t end = text_.find(quote);
    if (end == absl::string_view::npos || text_.substr(0, end).find('\\') != text_.npos) {
      return Damaged("a string without end, or with an escape");
    }
    std::string value(text_.substr(0, end));
    text_.remove_prefix(end + 1);
    return value;
  }
  StatusOr<std::vector<int64_t>> Tuple() {
    std::vector<int64_t> values;
    MR_RETURN_IF_ERROR(Expect("("));
    while (!Consume(")")) {
      SkipSpace();
      const size_t digits = std::min(text_.find_first_not_of("0123456789"), text_.size());
      int64_t value = 0;
      if (!absl::SimpleAtoi(text_.substr(0, digits), &value)) return Damaged("a strange extent");
      text_.remove_prefix(digits);
      Consume("L");  // of Python 2
      values.push_back(value);
      if (Consume(",")) continue;
      MR_RETURN_IF_ERROR(Expect(")"));
      break;
    }
    return values;
  }

  absl::string_view text_;
  const absl::string_view place_;
};

uint64_t LittleEndian(absl::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

struct Elements {
  DType dtype = DType::kInvalid;
  bool swapped = false;  // big-endian
};

StatusOr<Elements> ElementsOf(const std::string& descr, absl::string_view place) {
  if (!descr.empty() && std::strchr("<>|=", descr[0]) != nullptr) {
    for (const Code& code : kCodes) {
      if (descr.substr(1) == code.code) return Elements{code.dtype, descr[0] == '>'};
    }
  }
  return Unimplemented(place, ": elements of dtype '", descr,
                       "' are not supported; booleans, integers, half, float and double are");
}

void SwapBytes(char* data, size_t count, size_t size) {
  for (size_t i = 0; i < count; ++i) std::reverse(data + i * size, data + (i + 1) * size);
}

// From column-major to row-major.
void Reorder(const Shape& shape, size_t size, const char* from, char* to) {
  std::vector<int64_t> index(shape.rank(), 0), strides(shape.rank(), 1);
  for (int i = 1; i < shape.rank(); ++i) strides[i] = strides[i - 1] * shape[i - 1];
  int64_t at = 0;
  for (int64_t n = 0; n < shape.num_elements(); ++n) {
    std::memcpy(to + n * size, from + at * size, size);
    for (int i = shape.rank() - 1; i >= 0; --i) {
      at += strides[i];
      if (++index[i] < shape[i]) break;
      at -= strides[i] * shape[i];
      index[i] = 0;
    }
  }
}

}  // namespace

StatusOr<Tensor> ParseNpy(absl::string_view bytes, absl::string_view place) {
  constexpr size_t kVersionEnd = kMagic.size() + 2;
  if (bytes.size() < kVersionEnd || bytes.substr(0, kMagic.size()) != kMagic) {
    return DataLoss(place, ": not an npy file: it does not begin with \\x93NUMPY");
  }
  const int major = static_cast<uint8_t>(bytes[kMagic.size()]);
  const int minor = static_cast<uint8_t>(bytes[kMagic.size() + 1]);
  if (major < 1 || major > 3 || minor != 0) {
    return DataLoss(place, ": npy version ", major, ".", minor, " is not known; 1.0 to 3.0 are");
  }
  const size_t length_size = major == 1 ? 2 : 4;
  if (bytes.size() < kVersionEnd + length_size) {
    return DataLoss(place, ": ends within the npy header");
  }
  const uint64_t length = LittleEndian(bytes.substr(kVersionEnd, length_size));
  absl::string_view rest = bytes.substr(kVersionEnd + length_size);
  if (length > rest.size()) {
    return DataLoss(place, ": the npy header has ", length, " bytes, but ", rest.size(),
                    " are left");
  }
  MR_ASSIGN_OR_RETURN(const Header header, HeaderParser(rest.substr(0, length), place).Parse());
  rest.remove_prefix(length);
  MR_ASSIGN_OR_RETURN(const Elements elements, ElementsOf(header.descr, place));
  const StatusOr<Shape> shape = Shape::Create(header.shape);
  if (!shape.ok()) return DataLoss(place, ": ", shape.status().message());
  const auto size = static_cast<int64_t>(SizeOf(elements.dtype));
  int64_t wanted = 0;
  if (!CheckedMul(shape->num_elements(), size, &wanted) ||
      wanted != static_cast<int64_t>(rest.size())) {
    return DataLoss(place, ": ", Name(elements.dtype), shape->ToString(), " needs ",
                    shape->num_elements(), " elements of ", size, " bytes, but ", rest.size(),
                    " bytes follow the npy header");
  }
  Tensor tensor = Tensor::Zeros(elements.dtype, *shape);
  if (!tensor.valid()) {
    return ResourceExhausted(place, ": no memory for ", wanted, " bytes");
  }
  char* const to = static_cast<char*>(tensor.mutable_raw_data());
  if (header.fortran_order) {
    Reorder(*shape, size, rest.data(), to);
  } else if (!rest.empty()) {
    std::memcpy(to, rest.data(), rest.size());
  }
  if (elements.swapped) SwapBytes(to, shape->num_elements(), size);
  NormalizeBools(tensor);
  return tensor;
}

StatusOr<Tensor> ReadNpy(FileSystem& files, const std::string& path) {
  MR_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(files, path));
  return ParseNpy(bytes, path);
}

StatusOr<std::string> WriteNpy(const Tensor& tensor) {
  const auto* const code = std::find_if(std::begin(kCodes), std::end(kCodes),
                                        [&](const Code& c) { return c.dtype == tensor.dtype(); });
  if (code == std::end(kCodes)) {
    return Unimplemented("the npy format has no dtype for ", Name(tensor.dtype()), " tensors");
  }
  const char* const order = SizeOf(tensor.dtype()) == 1 ? "|" : "<";
  const Shape& shape = tensor.shape();
  std::string header =
      StrCat("{'descr': '", order, code->code, "', 'fortran_order': False, 'shape': (",
             absl::StrJoin(shape.dims(), ", "), shape.rank() == 1 ? ",), }" : "), }");
  const size_t before = kMagic.size() + 4;
  header.append((kAlignment - (before + header.size() + 1) % kAlignment) % kAlignment, ' ');
  header += '\n';
  std::string bytes(kMagic);
  bytes += {1, 0, static_cast<char>(header.size() & 255), static_cast<char>(header.size() >> 8)};
  bytes += header;
  bytes.append(static_cast<const char*>(tensor.raw_data()), tensor.byte_size());
  return bytes;
}

}  // namespace millrace
