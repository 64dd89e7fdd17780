#include "distributed/frame.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace millrace {
namespace {

enum Kind : uint8_t {
  kHello = 1,
  kTensor = 2,
  kOffer = 3,
  kChunk = 4,
  kEnd = 5,
  kCredit = 6,
  kRelease = 7,
  kRefuse = 8,
};

constexpr uint32_t kMagic = 0x5044524d;  // "MRDP"
constexpr size_t kPrefix = sizeof(uint32_t);
// Far above what a sender puts into one message.
constexpr size_t kMaxHeaderSize = size_t{4} << 20;
constexpr size_t kMaxTextSize = 1024;
// Offers and credits: beyond any memory, and sums of some stay far from overflow.
constexpr uint64_t kMaxTensorSize = uint64_t{1} << 48;

template <typename T>
void Append(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    out.push_back(static_cast<char>(static_cast<uint64_t>(value) >> (8 * i)));
  }
}

void AppendText(std::string& out, absl::string_view text) {
  text = text.substr(0, kMaxTextSize);
  Append<uint16_t>(out, static_cast<uint16_t>(text.size()));
  out.append(text.data(), text.size());
}

size_t TotalSize(absl::Span<const absl::string_view> pieces) {
  size_t size = 0;
  for (absl::string_view piece : pieces) size += piece.size();
  return size;
}

// Whether `size` bytes can be a tensor of that type and shape.
bool SizeFits(const TensorHeader& header) {
  if (header.size > kMaxTensorSize) return false;
  const auto elements = static_cast<uint64_t>(header.shape.num_elements());
  switch (header.dtype) {
    case DType::kInvalid:
      return header.shape.rank() == 0 && header.size == 0;
    case DType::kResource:
      return false;
    case DType::kString:
      return header.size / sizeof(uint64_t) > elements;  // one offset more than there are strings
    default:
      return header.size == elements * SizeOf(header.dtype);  // no overflow: see Shape
  }
}

// Reads fields; once some are missing all that follow are zero, and ok() tells.
class Reader {
 public:
  explicit Reader(absl::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  T Number() {
    uint64_t value = 0;
    if (bytes_.size() < sizeof(T)) {
      Fail();
      return 0;
    }
    for (size_t i = 0; i < sizeof(T); ++i) {
      value |= static_cast<uint64_t>(static_cast<uint8_t>(bytes_[i])) << (8 * i);
    }
    bytes_.remove_prefix(sizeof(T));
    return static_cast<T>(value);
  }

  std::string Text() {
    const auto size = Number<uint16_t>();
    if (size > kMaxTextSize || size > bytes_.size()) {
      Fail();
      return "";
    }
    std::string text(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
    return text;
  }

  // All but `size`.
  Status Header(TensorHeader& header) {
    const auto dtype = static_cast<int32_t>(Number<uint8_t>());
    const auto rank = Number<uint8_t>();
    header.key.session = Number<uint64_t>();
    header.key.step = Number<uint64_t>();
    header.key.frame = Number<uint32_t>();
    header.key.channel = Number<uint32_t>();
    if (dtype != 0 && !IsKnownDType(dtype)) return InvalidArgument("unknown dtype ", dtype);
    if (rank > kMaxRank) return InvalidArgument("rank ", static_cast<int>(rank));
    header.dtype = static_cast<DType>(dtype);
    std::array<int64_t, kMaxRank> dims{};
    for (int i = 0; i < rank; ++i) dims[i] = Number<int64_t>();
    MR_ASSIGN_OR_RETURN(header.shape, Shape::Create({dims.data(), rank}));
    return absl::OkStatus();
  }

  bool ok() const { return ok_; }
  bool done() const { return bytes_.empty(); }

 private:
  void Fail() {
    ok_ = false;
    bytes_ = {};
  }

  absl::string_view bytes_;
  bool ok_ = true;
};

// The payloads of one message, given out in order.
class PayloadArea {
 public:
  PayloadArea(absl::Span<const absl::string_view> pieces, size_t skip, size_t size)
      : pieces_(pieces), skip_(skip), left_(size) {}

  StatusOr<Payload> Take(uint64_t size) {
    if (size > left_) {
      return InvalidArgument("a payload of ", size, " bytes where ", left_, " are left");
    }
    while (!pieces_.empty() && skip_ >= pieces_[0].size()) {
      skip_ -= pieces_[0].size();
      pieces_.remove_prefix(1);
    }
    const Payload payload(pieces_, skip_, size);
    skip_ += size;
    left_ -= size;
    return payload;
  }
  size_t left() const { return left_; }

 private:
  absl::Span<const absl::string_view> pieces_;
  size_t skip_;
  size_t left_;
};

Status Truncated() { return InvalidArgument("a frame is cut short"); }

Status ParseHello(Reader& reader, FrameHandler& handler) {
  const auto magic = reader.Number<uint32_t>();
  Hello hello;
  hello.protocol = reader.Number<uint32_t>();
  hello.incarnation = reader.Number<uint64_t>();
  hello.expected_incarnation = reader.Number<uint64_t>();
  hello.eager_window = reader.Number<int64_t>();
  hello.task = reader.Text();
  hello.build_version = reader.Text();
  if (!reader.ok()) return Truncated();
  if (magic != kMagic) return InvalidArgument("not a data stream of millrace");
  return handler.OnHello(hello);
}

Status ParseTensor(Reader& reader, PayloadArea& payloads, FrameHandler& handler, bool offered) {
  TensorHeader header;
  MR_RETURN_IF_ERROR(reader.Header(header));
  header.size = reader.Number<uint64_t>();
  const uint64_t offer = offered ? reader.Number<uint64_t>() : 0;
  if (!reader.ok()) return Truncated();
  if (!SizeFits(header)) {
    return InvalidArgument(header.size, " bytes do not make a tensor of dtype ",
                           static_cast<int>(header.dtype), " and shape ", header.shape.ToString());
  }
  if (offered) return handler.OnOffer(header, offer);
  MR_ASSIGN_OR_RETURN(const Payload payload, payloads.Take(header.size));
  return handler.OnTensor(header, payload);
}

Status ParseChunk(Reader& reader, PayloadArea& payloads, FrameHandler& handler) {
  const auto offer = reader.Number<uint64_t>();
  const auto offset = reader.Number<uint64_t>();
  const auto size = reader.Number<uint64_t>();
  if (!reader.ok()) return Truncated();
  if (offset > kMaxTensorSize) return InvalidArgument("a chunk at offset ", offset);
  MR_ASSIGN_OR_RETURN(const Payload payload, payloads.Take(size));
  return handler.OnChunk(offer, offset, payload);
}

Status ParseFrame(Reader& reader, PayloadArea& payloads, FrameHandler& handler) {
  const auto kind = reader.Number<uint8_t>();
  switch (kind) {
    case kHello:
      return ParseHello(reader, handler);
    case kTensor:
      return ParseTensor(reader, payloads, handler, /*offered=*/false);
    case kOffer:
      return ParseTensor(reader, payloads, handler, /*offered=*/true);
    case kChunk:
      return ParseChunk(reader, payloads, handler);
    case kCredit: {
      const auto offer = reader.Number<uint64_t>();
      const auto bytes = reader.Number<uint64_t>();
      if (!reader.ok()) return Truncated();
      if (bytes > kMaxTensorSize) return InvalidArgument("a credit of ", bytes, " bytes");
      return handler.OnCredit(offer, bytes);
    }
    case kEnd:
    case kRelease:
    case kRefuse: {
      const auto number = reader.Number<uint64_t>();
      if (!reader.ok()) return Truncated();
      if (kind == kEnd) return handler.OnEnd(number);
      if (kind == kRefuse) return handler.OnRefuse(number);
      if (number > kMaxTensorSize) return InvalidArgument("a release of ", number, " bytes");
      return handler.OnRelease(number);
    }
    default:
      return InvalidArgument("unknown frame ", static_cast<int>(kind));
  }
}

Status Unexpected(absl::string_view frame) { return InvalidArgument("unexpected ", frame); }

}  // namespace

TensorHeader TensorHeader::Of(const MessageKey& key, const Tensor& tensor) {
  if (!tensor.valid()) return {key, DType::kInvalid, Shape(), 0};
  return {key, tensor.dtype(), tensor.shape(), tensor.byte_size()};
}

void Payload::CopyTo(void* to) const {
  auto* out = static_cast<char*>(to);
  size_t skip = skip_;
  size_t left = size_;
  for (absl::string_view piece : pieces_) {
    if (left == 0) return;
    if (skip >= piece.size()) {
      skip -= piece.size();
      continue;
    }
    const size_t size = std::min(piece.size() - skip, left);
    std::memcpy(out, piece.data() + skip, size);
    out += size;
    left -= size;
    skip = 0;
  }
}

Status FrameHandler::OnHello(const Hello&) { return Unexpected("HELLO"); }
Status FrameHandler::OnTensor(const TensorHeader&, const Payload&) { return Unexpected("TENSOR"); }
Status FrameHandler::OnOffer(const TensorHeader&, uint64_t) { return Unexpected("OFFER"); }
Status FrameHandler::OnChunk(uint64_t, uint64_t, const Payload&) { return Unexpected("CHUNK"); }
Status FrameHandler::OnEnd(uint64_t) { return Unexpected("END"); }
Status FrameHandler::OnCredit(uint64_t, uint64_t) { return Unexpected("CREDIT"); }
Status FrameHandler::OnRelease(uint64_t) { return Unexpected("RELEASE"); }
Status FrameHandler::OnRefuse(uint64_t) { return Unexpected("REFUSE"); }

Status ParseFrames(absl::Span<const absl::string_view> pieces, FrameHandler& handler) {
  const size_t total = TotalSize(pieces);
  if (total < kPrefix) return InvalidArgument("a message of ", total, " bytes");
  std::string prefix(kPrefix, '\0');
  Payload(pieces, 0, kPrefix).CopyTo(prefix.data());
  const size_t header_size = Reader(prefix).Number<uint32_t>();
  if (header_size > kMaxHeaderSize || header_size > total - kPrefix) {
    return InvalidArgument("a header of ", header_size, " bytes in a message of ", total);
  }
  // Mostly all of it lies in the first piece.
  std::string joined;
  absl::string_view header;
  if (pieces[0].size() >= kPrefix + header_size) {
    header = pieces[0].substr(kPrefix, header_size);
  } else {
    joined.resize(header_size);
    Payload(pieces, kPrefix, header_size).CopyTo(joined.data());
    header = joined;
  }
  Reader reader(header);
  PayloadArea payloads(pieces, kPrefix + header_size, total - kPrefix - header_size);
  while (!reader.done()) MR_RETURN_IF_ERROR(ParseFrame(reader, payloads, handler));
  if (payloads.left() > 0) return InvalidArgument(payloads.left(), " bytes belong to no frame");
  return absl::OkStatus();
}

int64_t OfferFrameSize(const TensorHeader& header) {
  // kind, dtype, rank; session, step; frame, channel; dims; size, offer
  return 3 + 2 * 8 + 2 * 4 + 8 * header.shape.rank() + 2 * 8;
}

int64_t TensorFrameSize(const TensorHeader& header) {
  return OfferFrameSize(header) - 8 + static_cast<int64_t>(header.size);
}

int64_t ChunkFrameSize(uint64_t payload_size) {
  return 1 + 3 * 8 + static_cast<int64_t>(payload_size);
}

size_t Message::size() const {
  size_t size = header.size();
  for (const MessagePart& part : payloads) size += part.bytes.size();
  return size;
}

MessageBuilder::MessageBuilder() { message_.header.assign(kPrefix, '\0'); }

bool MessageBuilder::empty() const { return message_.header.size() == kPrefix; }

void MessageBuilder::AddHello(const Hello& hello) {
  std::string& out = message_.header;
  Append<uint8_t>(out, kHello);
  Append(out, kMagic);
  Append(out, hello.protocol);
  Append(out, hello.incarnation);
  Append(out, hello.expected_incarnation);
  Append(out, hello.eager_window);
  AppendText(out, hello.task);
  AppendText(out, hello.build_version);
}

void MessageBuilder::AddHeader(uint8_t kind, const TensorHeader& header) {
  std::string& out = message_.header;
  Append(out, kind);
  Append(out, static_cast<uint8_t>(header.dtype));
  Append(out, static_cast<uint8_t>(header.shape.rank()));
  Append(out, header.key.session);
  Append(out, header.key.step);
  Append(out, header.key.frame);
  Append(out, header.key.channel);
  for (int64_t dim : header.shape.dims()) Append(out, dim);
  Append(out, header.size);
}

void MessageBuilder::AddNumbers(uint8_t kind, std::initializer_list<uint64_t> numbers) {
  Append(message_.header, kind);
  for (uint64_t number : numbers) Append(message_.header, number);
}

void MessageBuilder::AddTensor(const TensorHeader& header, Tensor tensor) {
  AddHeader(kTensor, header);
  if (header.size == 0) return;
  const absl::string_view bytes(static_cast<const char*>(tensor.raw_data()), header.size);
  message_.payloads.push_back({bytes, std::move(tensor)});
  payload_size_ += header.size;
}

void MessageBuilder::AddOffer(const TensorHeader& header, uint64_t offer) {
  AddHeader(kOffer, header);
  Append(message_.header, offer);
}

void MessageBuilder::AddChunk(uint64_t offer, uint64_t offset, uint64_t size,
                              const Tensor& tensor) {
  AddNumbers(kChunk, {offer, offset, size});
  if (size == 0) return;
  const absl::string_view bytes(static_cast<const char*>(tensor.raw_data()) + offset, size);
  message_.payloads.push_back({bytes, tensor});
  payload_size_ += size;
}

void MessageBuilder::AddEnd(uint64_t offer) { AddNumbers(kEnd, {offer}); }
void MessageBuilder::AddCredit(uint64_t offer, uint64_t bytes) {
  AddNumbers(kCredit, {offer, bytes});
}
void MessageBuilder::AddRelease(uint64_t bytes) { AddNumbers(kRelease, {bytes}); }
void MessageBuilder::AddRefuse(uint64_t offer) { AddNumbers(kRefuse, {offer}); }

Message MessageBuilder::Build() {
  const size_t header_size = message_.header.size() - kPrefix;
  for (size_t i = 0; i < kPrefix; ++i) {
    message_.header[i] = static_cast<char>(header_size >> (8 * i));
  }
  payload_size_ = 0;
  Message built = std::move(message_);
  message_ = Message();
  message_.header.assign(kPrefix, '\0');
  return built;
}

}  // namespace millrace
