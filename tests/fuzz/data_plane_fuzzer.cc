#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/simulation.h"
#include "distributed/data_plane.h"
#include "tests/fuzz/require.h"

namespace millrace::testing {
namespace {

constexpr uint64_t kSession = 7;
constexpr uint64_t kIncarnation = 11;
constexpr uint64_t kSteps = 4;
constexpr int64_t kWindow = 4096;
constexpr int64_t kCredit = 2000;
// Of one offer: a peer may announce what it likes, and memory is taken for what a step waits for.
constexpr int64_t kMemory = 1 << 16;

// Numbers out of the input; zeros after its end.
class Source {
 public:
  explicit Source(absl::string_view bytes) : bytes_(bytes) {}
  bool empty() const { return bytes_.empty(); }
  uint8_t Byte() {
    if (bytes_.empty()) return 0;
    const auto byte = static_cast<uint8_t>(bytes_[0]);
    bytes_.remove_prefix(1);
    return byte;
  }
  uint16_t Short() { return static_cast<uint16_t>(Byte() << 8 | Byte()); }
  std::string Text(size_t size) {
    std::string text(bytes_.substr(0, size));
    bytes_.remove_prefix(text.size());
    text.resize(size, '\0');
    return text;
  }

 private:
  absl::string_view bytes_;
};

class BoundedMemory final : public Allocator {
 public:
  void* Allocate(size_t bytes) override {
    if (static_cast<int64_t>(bytes) > kMemory - stats_.bytes_in_use) return nullptr;
    stats_.bytes_in_use += static_cast<int64_t>(bytes);
    return HostAllocator().Allocate(bytes);
  }
  void Deallocate(void* memory, size_t bytes) override {
    stats_.bytes_in_use -= static_cast<int64_t>(bytes);
    HostAllocator().Deallocate(memory, bytes);
  }
  AllocatorStats stats() const override { return stats_; }

 private:
  AllocatorStats stats_;
};

// The peer's end of the one stream. What is written to it is only counted.
class Stream final : public FrameStream {
 public:
  void Write(Message) override {
    Require(!writing_, "one message is written at a time");
    writing_ = !closed_;
  }
  void Close(const Status& reason) override {
    if (std::exchange(closed_, true)) return;
    writing_ = false;
    handler_->OnClosed(reason);
  }
  void Receive(absl::string_view bytes) {
    if (closed_) return;
    const absl::string_view pieces[] = {bytes.substr(0, bytes.size() / 2),
                                        bytes.substr(bytes.size() / 2)};
    const std::shared_ptr<Handler> kept = handler_;
    kept->OnMessage(pieces);
  }
  void FinishWrite() {
    if (!std::exchange(writing_, false)) return;
    const std::shared_ptr<Handler> kept = handler_;
    kept->OnWritten();
  }
  void set_handler(std::shared_ptr<Handler> handler) { handler_ = std::move(handler); }

 private:
  std::shared_ptr<Handler> handler_;
  bool writing_ = false;
  bool closed_ = false;
};

// There is nobody to connect to: the task under test only receives.
class NoPeers final : public FrameStreamFactory {
 public:
  std::shared_ptr<FrameStream> Connect(const std::string&,
                                       std::shared_ptr<FrameStream::Handler>) override {
    Require(false, "a task that sends nothing opens no stream");
    return nullptr;
  }
};

class Sink final : public TensorSink {
 public:
  void OnTensor(const MessageKey& key, Tensor tensor, int64_t) override {
    Require(!ended, "nothing is delivered after the step's end");
    Require(key.session == kSession, "a sink hears of its session only");
    Require(seen_.emplace(key.step, key.frame, key.channel).second, "each key comes once");
    // Reads all of it.
    if (tensor.valid()) Require(SameBits(tensor, tensor), "a tensor is itself");
    if (tensor.dtype() != DType::kString) return;
    for (int64_t i = 0; i < tensor.num_elements(); ++i) total_ += tensor.string(i).size();
  }
  void OnLinkDown(const Status& reason) override {
    Require(!ended && !reason.ok(), "a link goes down for a reason, before the step's end");
  }
  bool ended = false;

 private:
  std::set<std::tuple<uint64_t, uint32_t, uint32_t>> seen_;
  size_t total_ = 0;
};

TensorHeader HeaderFrom(Source& source) {
  constexpr DType kTypes[] = {DType::kInvalid, DType::kUint8, DType::kFloat, DType::kString,
                              DType::kBool};
  TensorHeader header;
  header.key = {kSession, source.Byte() % (kSteps + 1), 0, source.Byte()};
  header.dtype = kTypes[source.Byte() % 5];
  const int64_t elements = source.Short();
  if (header.dtype == DType::kInvalid) return header;
  header.shape = Shape({elements});
  header.size = header.dtype == DType::kString
                    ? static_cast<uint64_t>(8 * (elements + 1) + source.Byte())
                    : static_cast<uint64_t>(elements) * SizeOf(header.dtype);
  return header;
}

// Bytes from the source, then zeros; strings begin with offsets that may be right.
Tensor BytesFrom(Source& source, uint64_t size) {
  Tensor tensor = Tensor::Zeros(DType::kUint8, Shape({static_cast<int64_t>(size)}));
  const size_t given = std::min<uint64_t>(source.Byte(), size);
  const std::string bytes = source.Text(given);
  std::copy(bytes.begin(), bytes.end(), tensor.mutable_data<uint8_t>());
  return tensor;
}

void AddFrame(int kind, Source& source, MessageBuilder& builder) {
  if (kind == 0) {
    const TensorHeader header = HeaderFrom(source);
    builder.AddTensor(header, BytesFrom(source, header.size));
  } else if (kind == 1) {
    const TensorHeader header = HeaderFrom(source);
    builder.AddOffer(header, source.Byte());
  } else if (kind == 2) {
    const uint64_t offer = source.Byte();
    const uint64_t offset = source.Short();
    const uint64_t size = source.Short();
    builder.AddChunk(offer, offset, size, Tensor::Zeros(DType::kUint8, Shape({1 << 17})));
  } else if (kind == 3) {
    builder.AddEnd(source.Byte());
  } else if (kind == 4) {
    builder.AddCredit(source.Byte(), source.Short());
  } else if (kind == 5) {
    builder.AddRelease(source.Short());
  } else if (kind == 6) {
    builder.AddRefuse(source.Byte());
  } else {
    Hello hello;
    hello.incarnation = source.Byte();
    hello.expected_incarnation = kIncarnation + source.Byte() % 2;
    builder.AddHello(hello);
  }
}

std::string Flat(const Message& message) {
  std::string bytes = message.header;
  for (const MessagePart& part : message.payloads) {
    bytes.append(part.bytes.data(), part.bytes.size());
  }
  return bytes;
}

// One task that receives from one peer, and what goes on with them.
class World {
 public:
  World() : world_(1) {
    StreamDataPlaneOptions options;
    options.environment = world_.environment();
    options.streams = &no_peers_;
    options.allocator = &memory_;
    options.incarnation = kIncarnation;
    options.limits.eager_window_bytes = kWindow;
    options.limits.chunk_bytes = 1000;
    options.limits.credit_window_bytes = kCredit;
    plane_ = StreamDataPlane::Create(options);
    stream_->set_handler(plane_->Accept(stream_));
    for (uint64_t step = 1; step <= kSteps; ++step) sinks_.push_back(std::make_unique<Sink>());
  }

  void Do(Source& source) {
    const int kind = source.Byte() % 12;
    if (kind < 8) {
      MessageBuilder builder;
      AddFrame(kind, source, builder);
      stream_->Receive(Flat(builder.Build()));
    } else if (kind == 8) {
      const size_t step = source.Byte() % kSteps;
      // A second beginning is the caller's mistake and is refused.
      (void)plane_->BeginStep(kSession, step + 1, sinks_[step].get(), {});
    } else if (kind == 9) {
      EndStep(source.Byte() % kSteps);
    } else if (kind == 10) {
      stream_->FinishWrite();
    } else {
      stream_->Receive(source.Text(source.Byte()));
    }
    const StreamDataPlane::Usage usage = plane_->usage();
    Require(usage.eager_held >= 0 && usage.eager_held + usage.eager_unsent <= kWindow,
            "the eager window is kept");
    Require(usage.credit_outstanding >= 0 && usage.credit_outstanding <= kCredit,
            "the credit window is kept");
  }

  // Nothing is left of a peer that went and of steps that ended.
  void End() {
    stream_->Close(Unavailable("the peer went"));
    for (size_t step = 0; step < kSteps; ++step) EndStep(step);
    plane_->EndSession(kSession);
    const StreamDataPlane::Usage usage = plane_->usage();
    Require(usage.steps == 0 && usage.offers == 0 && usage.eager_held == 0 &&
                usage.early_bytes == 0 && usage.credit_outstanding == 0,
            "nothing is held after all have ended");
    Require(memory_.stats().bytes_in_use == 0, "all memory is given back");
    stream_->set_handler(nullptr);
    plane_ = nullptr;
    world_.RunFor(absl::Hours(1));
  }

 private:
  void EndStep(size_t step) {
    plane_->EndStep(kSession, step + 1);
    sinks_[step]->ended = true;
  }

  Simulation world_;
  NoPeers no_peers_;
  BoundedMemory memory_;
  std::vector<std::unique_ptr<Sink>> sinks_;
  std::shared_ptr<Stream> stream_ = std::make_shared<Stream>();
  std::unique_ptr<StreamDataPlane> plane_;
};

// A peer says whatever it likes, while steps begin and end: it is served or thrown out, windows are
// kept, and nothing of it stays.
void RunOne(absl::string_view bytes) {
  Source source(bytes);
  World world;
  while (!source.empty()) world.Do(source);
  world.End();
}

}  // namespace
}  // namespace millrace::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  millrace::testing::RunOne({reinterpret_cast<const char*>(data), size});
  return 0;
}
