#ifndef DISTRIBUTED_FRAME_H_
#define DISTRIBUTED_FRAME_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/base/status.h"
#include "core/framework/tensor.h"
#include "distributed/transport.h"

// What goes over a data stream. One stream carries the tensors of one ordered pair of tasks: the
// task that opened it sends them, the other answers with windows.
//
//   message := u32 size of `header`, header (frames, back to back), payloads of those frames in
//   order frame   := u8 kind, fields
//
//   kind       fields (little-endian)                                              payload
//   HELLO   1  u32 magic, u32 protocol, u64 incarnation, u64 expected incarnation,
//              i64 eager window, text task, text build version
//   TENSOR  2  tensor, u64 size                                                    size bytes
//   OFFER   3  tensor, u64 size, u64 offer
//   CHUNK   4  u64 offer, u64 offset, u64 size                                     size bytes
//   END     5  u64 offer          the sender will send nothing more of it
//   CREDIT  6  u64 offer, u64 bytes that may now be sent of it, beyond those before
//   RELEASE 7  u64 bytes of the eager window that are free again
//   REFUSE  8  u64 offer          the receiver wants no more of it; END answers, unless all was
//   sent
//
//   tensor := u8 dtype, u8 rank, u64 session, u64 step, u32 frame, u32 channel, rank * i64
//   text   := u16 size, bytes
//
// Each side's first frame is HELLO, and the opener sends nothing else before it has the other's.
// A tensor's bytes are its memory; strings are their flat buffer. dtype 0 of rank 0 is the empty
// tensor, which carries a control edge. Offers are numbered by the sender, upwards.
namespace millrace {

inline constexpr uint32_t kFrameProtocol = 1;
// What one tensor or offer takes of the eager window beside its payload.
inline constexpr int64_t kFrameOverhead = 128;

struct Hello {
  uint32_t protocol = kFrameProtocol;
  uint64_t incarnation = 0;           // of the task that says it
  uint64_t expected_incarnation = 0;  // of the task that is meant to hear it
  int64_t eager_window = 0;           // of the task that says it, as a receiver
  std::string task;                   // what it calls itself; may be ""
  std::string build_version;
};

// What is known of a tensor before its bytes come. `dtype` is kInvalid for the empty one.
struct TensorHeader {
  MessageKey key;
  DType dtype = DType::kInvalid;
  Shape shape;
  uint64_t size = 0;

  static TensorHeader Of(const MessageKey& key, const Tensor& tensor);
};

// Bytes of a message as they came: in pieces, good for as long as the message is.
class Payload {
 public:
  Payload() = default;
  // REQUIRES: skip + size is within `pieces`.
  Payload(absl::Span<const absl::string_view> pieces, size_t skip, size_t size)
      : pieces_(pieces), skip_(skip), size_(size) {}
  size_t size() const { return size_; }
  void CopyTo(void* to) const;

 private:
  absl::Span<const absl::string_view> pieces_;
  size_t skip_ = 0;  // in the first piece and perhaps beyond it
  size_t size_ = 0;
};

// Takes the frames of a message, each checked by itself: known dtype, valid shape, a size that fits
// both and is really there. An error ends the parse. By default a frame is refused as unexpected.
class FrameHandler {
 public:
  virtual ~FrameHandler() = default;
  virtual Status OnHello(const Hello& hello);
  virtual Status OnTensor(const TensorHeader& header, const Payload& payload);
  virtual Status OnOffer(const TensorHeader& header, uint64_t offer);
  virtual Status OnChunk(uint64_t offer, uint64_t offset, const Payload& payload);
  virtual Status OnEnd(uint64_t offer);
  virtual Status OnCredit(uint64_t offer, uint64_t bytes);
  virtual Status OnRelease(uint64_t bytes);
  virtual Status OnRefuse(uint64_t offer);
};

// Reads one message, whose bytes lie in `pieces`. InvalidArgument for anything but well-formed
// frames (those before the fault have been handled), or the handler's error. Safe for any bytes.
Status ParseFrames(absl::Span<const absl::string_view> pieces, FrameHandler& handler);

// The bytes that each frame puts on the wire, its payload among them.
int64_t TensorFrameSize(const TensorHeader& header);
int64_t OfferFrameSize(const TensorHeader& header);
int64_t ChunkFrameSize(uint64_t payload_size);

// Bytes to send, kept by `owner` (or, without one, by the message's header).
struct MessagePart {
  absl::string_view bytes;
  Tensor owner;
};

struct Message {
  std::string header;
  std::vector<MessagePart> payloads;

  size_t size() const;
};

// Puts frames together to a message. Not thread-safe.
class MessageBuilder {
 public:
  MessageBuilder();
  void AddHello(const Hello& hello);
  void AddTensor(const TensorHeader& header, Tensor tensor);
  void AddOffer(const TensorHeader& header, uint64_t offer);
  // REQUIRES: the bytes are within the tensor.
  void AddChunk(uint64_t offer, uint64_t offset, uint64_t size, const Tensor& tensor);
  void AddEnd(uint64_t offer);
  void AddCredit(uint64_t offer, uint64_t bytes);
  void AddRelease(uint64_t bytes);
  void AddRefuse(uint64_t offer);

  bool empty() const;
  size_t payload_size() const { return payload_size_; }
  size_t header_size() const { return message_.header.size(); }
  // Leaves the builder empty.
  Message Build();

 private:
  void AddHeader(uint8_t kind, const TensorHeader& header);
  void AddNumbers(uint8_t kind, std::initializer_list<uint64_t> numbers);

  Message message_;
  size_t payload_size_ = 0;
};

}  // namespace millrace

#endif  // DISTRIBUTED_FRAME_H_
