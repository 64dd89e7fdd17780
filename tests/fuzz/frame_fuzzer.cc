#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "distributed/frame.h"
#include "tests/fuzz/require.h"

namespace millrace::testing {
namespace {

// Chunks further within their tensor than this are not built again, as that takes the whole tensor.
constexpr uint64_t kMaxOffset = 1 << 16;

// Builds a message of what it hears.
class Rebuilder final : public FrameHandler {
 public:
  Status OnHello(const Hello& hello) override { return builder_.AddHello(hello), absl::OkStatus(); }
  Status OnTensor(const TensorHeader& header, const Payload& payload) override {
    Require(payload.size() == header.size, "a payload is as long as its frame says");
    return builder_.AddTensor(header, Bytes(payload, 0)), absl::OkStatus();
  }
  Status OnOffer(const TensorHeader& header, uint64_t offer) override {
    return builder_.AddOffer(header, offer), absl::OkStatus();
  }
  Status OnChunk(uint64_t offer, uint64_t offset, const Payload& payload) override {
    if (offset > kMaxOffset) {
      whole_ = false;
    } else {
      builder_.AddChunk(offer, offset, payload.size(), Bytes(payload, offset));
    }
    return absl::OkStatus();
  }
  Status OnEnd(uint64_t offer) override { return builder_.AddEnd(offer), absl::OkStatus(); }
  Status OnCredit(uint64_t offer, uint64_t bytes) override {
    return builder_.AddCredit(offer, bytes), absl::OkStatus();
  }
  Status OnRelease(uint64_t bytes) override { return builder_.AddRelease(bytes), absl::OkStatus(); }
  Status OnRefuse(uint64_t offer) override { return builder_.AddRefuse(offer), absl::OkStatus(); }

  // "" if something was left out.
  std::string Build() {
    const Message message = builder_.Build();
    std::string bytes = message.header;
    for (const MessagePart& part : message.payloads) {
      bytes.append(part.bytes.data(), part.bytes.size());
    }
    return whole_ ? bytes : "";
  }

 private:
  static Tensor Bytes(const Payload& payload, uint64_t offset) {
    Tensor tensor =
        Tensor::Zeros(DType::kUint8, Shape({static_cast<int64_t>(offset + payload.size())}));
    if (payload.size() > 0) payload.CopyTo(tensor.mutable_data<uint8_t>() + offset);
    return tensor;
  }

  MessageBuilder builder_;
  bool whole_ = true;
};

// What is heard of the message in pieces of that size.
Status Parse(absl::string_view bytes, size_t piece, std::string* rebuilt) {
  std::vector<absl::string_view> pieces;
  for (size_t at = 0; at < bytes.size(); at += piece) pieces.push_back(bytes.substr(at, piece));
  Rebuilder rebuilder;
  const Status status = ParseFrames(pieces, rebuilder);
  *rebuilt = rebuilder.Build();
  return status;
}

// A message after one byte that says how it is cut: it is read or refused, however it is cut, and
// the frames that are read make up the whole message.
void RunOne(absl::string_view input) {
  if (input.empty()) return;
  const size_t piece = static_cast<uint8_t>(input[0]) + size_t{1};
  const absl::string_view bytes = input.substr(1);
  std::string whole;
  std::string pieces;
  const Status status = Parse(bytes, std::max<size_t>(bytes.size(), 1), &whole);
  Require(Parse(bytes, piece, &pieces) == status && pieces == whole,
          "how a message is cut makes no difference");
  if (!status.ok()) {
    Require(absl::IsInvalidArgument(status), "a refusal is InvalidArgument");
  } else if (!whole.empty()) {
    Require(whole == bytes, "the frames make up the message");
  }
}

}  // namespace
}  // namespace millrace::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  millrace::testing::RunOne({reinterpret_cast<const char*>(data), size});
  return 0;
}
