#include "distributed/grpc/stream.h"

#include <utility>
#include <vector>

#include "distributed/grpc/handover.h"
#include "grpcpp/generic/generic_stub.h"

namespace millrace {
namespace {

// A slice that refers to bytes of `owner`, which lives as long as gRPC needs them.
template <typename Owner>
grpc::Slice SliceOf(const void* data, size_t size, Owner owner) {
  struct Kept {
    Owner owner;
    Handover handover;
  };
  auto* kept = new Kept{std::move(owner), {}};
  kept->handover.Give();
  return grpc::Slice(
      const_cast<void*>(data), size,
      [](void* p) {
        const std::unique_ptr<Kept> returned(static_cast<Kept*>(p));
        returned->handover.Take();
      },
      kept);
}

// No payload is copied.
grpc::ByteBuffer ToByteBuffer(Message message) {
  std::vector<grpc::Slice> slices;
  slices.reserve(message.payloads.size() + 1);
  slices.emplace_back(message.header);
  for (MessagePart& part : message.payloads) {
    slices.push_back(SliceOf(part.bytes.data(), part.bytes.size(), std::move(part.owner)));
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

// False if gRPC cannot tell the bytes.
bool HandMessage(const grpc::ByteBuffer& buffer, FrameStream::Handler& handler) {
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) return false;
  std::vector<absl::string_view> pieces;
  pieces.reserve(slices.size());
  for (const grpc::Slice& slice : slices) {
    pieces.emplace_back(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  handler.OnMessage(pieces);
  return true;
}

// gRPC may run reactions from within its own Start... functions, so none is called with the lock
// held. `starting_` counts the threads between the look at the state and the end of such a call:
// until it is 0 nothing is done that forbids the call (RemoveHold, Finish).
class ClientStream final : public FrameStream,
                           public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                           public std::enable_shared_from_this<ClientStream> {
 public:
  ClientStream(std::shared_ptr<grpc::Channel> channel, std::shared_ptr<Handler> handler)
      : stub_(std::move(channel)), handler_(std::move(handler)) {}

  void Start() {
    self_ = shared_from_this();
    stub_.PrepareBidiStreamingCall(&context_, kDataStreamMethod, {}, this);
    AddHold();  // for writes, which come from outside the reactions
    handover_.Give();
    StartRead(&incoming_);
    StartCall();
  }

  void Write(Message message) override {
    {
      MutexLock lock(mutex_);
      if (ended_) return;
      ++starting_;
    }
    outgoing_ = ToByteBuffer(std::move(message));
    handover_.Give();
    StartWrite(&outgoing_);
    bool remove_hold;
    {
      MutexLock lock(mutex_);
      --starting_;
      remove_hold = TakeHold();
    }
    if (remove_hold) RemoveHold();
  }

  void Close(const Status& reason) override {
    {
      MutexLock lock(mutex_);
      if (ended_) return;
      if (reason_.ok()) reason_ = reason;
    }
    context_.TryCancel();  // the read ends, and with it the rest
  }

  void OnReadDone(bool ok) override {
    handover_.Take();
    if (ok && HandMessage(incoming_, *handler_)) {
      incoming_.Clear();
      handover_.Give();
      StartRead(&incoming_);
      return;
    }
    context_.TryCancel();
    bool remove_hold;
    {
      MutexLock lock(mutex_);
      ended_ = true;
      remove_hold = TakeHold();
    }
    if (remove_hold) RemoveHold();
  }

  void OnWriteDone(bool ok) override {
    handover_.Take();
    outgoing_.Clear();
    if (ok) {
      handler_->OnWritten();
    } else {
      context_.TryCancel();
    }
  }

  void OnDone(const grpc::Status& status) override {
    handover_.Take();
    Status told = FromGrpc(status);
    {
      MutexLock lock(mutex_);
      if (!reason_.ok()) told = reason_;
    }
    if (told.ok()) told = Unavailable("the peer has closed the stream");
    const std::shared_ptr<ClientStream> self = std::move(self_);
    std::exchange(handler_, nullptr)->OnClosed(told);
  }

 private:
  bool TakeHold() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return ended_ && starting_ == 0 && std::exchange(held_, false);
  }

  grpc::TemplatedGenericStub<grpc::ByteBuffer, grpc::ByteBuffer> stub_;
  grpc::ClientContext context_;
  std::shared_ptr<Handler> handler_;
  std::shared_ptr<ClientStream> self_;  // until OnDone
  grpc::ByteBuffer incoming_;
  grpc::ByteBuffer outgoing_;
  Handover handover_;  // of this object

  Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool held_ ABSL_GUARDED_BY(mutex_) = true;
  int starting_ ABSL_GUARDED_BY(mutex_) = 0;
  Status reason_ ABSL_GUARDED_BY(mutex_);  // given to Close
};

}  // namespace

// As ClientStream; here the end is Finish, which must come once, after the last write is done.
class GrpcServerStream final : public FrameStream,
                               public grpc::ServerGenericBidiReactor,
                               public std::enable_shared_from_this<GrpcServerStream> {
 public:
  explicit GrpcServerStream(GrpcStreamSet* set) : set_(set) {}

  void Start(FrameStreamAcceptor& acceptor) {
    self_ = shared_from_this();
    handler_ = acceptor.Accept(self_);
    handover_.Give();
    StartRead(&incoming_);
  }

  void Write(Message message) override {
    {
      MutexLock lock(mutex_);
      if (ended_) return;
      writing_ = true;
      ++starting_;
    }
    outgoing_ = ToByteBuffer(std::move(message));
    handover_.Give();
    StartWrite(&outgoing_);
    FinishIfDue(/*started=*/true);
  }

  void Close(const Status& reason) override { End(reason.ok() ? Unavailable("closed") : reason); }

  void OnReadDone(bool ok) override {
    handover_.Take();
    if (!ok) {
      End(Unavailable("the peer has closed the stream"));
    } else if (HandMessage(incoming_, *handler_)) {
      incoming_.Clear();
      {
        MutexLock lock(mutex_);
        if (ended_) return;
        ++starting_;
      }
      handover_.Give();
      StartRead(&incoming_);
      FinishIfDue(/*started=*/true);
    } else {
      End(Internal("a message cannot be read"));
    }
  }

  void OnWriteDone(bool ok) override {
    handover_.Take();
    outgoing_.Clear();
    {
      MutexLock lock(mutex_);
      writing_ = false;
    }
    if (ok) handler_->OnWritten();
    FinishIfDue(/*started=*/false);
  }

  void OnCancel() override {
    handover_.Take();
    End(Unavailable("the peer is gone"));
  }

  void OnDone() override {
    handover_.Take();
    Status reason;
    {
      MutexLock lock(mutex_);
      reason = reason_;
    }
    set_->Remove(this);
    const std::shared_ptr<GrpcServerStream> self = std::move(self_);
    std::exchange(handler_, nullptr)->OnClosed(reason);
  }

 private:
  void End(const Status& reason) {
    {
      MutexLock lock(mutex_);
      if (std::exchange(ended_, true)) return;
      reason_ = reason;
    }
    FinishIfDue(/*started=*/false);
  }

  void FinishIfDue(bool started) {
    Status reason;
    {
      MutexLock lock(mutex_);
      if (started) --starting_;
      if (!ended_ || writing_ || starting_ > 0 || std::exchange(finished_, true)) return;
      reason = reason_;
    }
    handover_.Give();
    Finish(ToGrpc(reason));
  }

  GrpcStreamSet* const set_;
  std::shared_ptr<Handler> handler_;
  std::shared_ptr<GrpcServerStream> self_;  // until OnDone
  grpc::ByteBuffer incoming_;
  grpc::ByteBuffer outgoing_;
  Handover handover_;  // of this object

  Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  int starting_ ABSL_GUARDED_BY(mutex_) = 0;
  Status reason_ ABSL_GUARDED_BY(mutex_);
};

std::shared_ptr<FrameStream> GrpcStreamFactory::Connect(
    const std::string& address, std::shared_ptr<FrameStream::Handler> handler) {
  std::shared_ptr<grpc::Channel> channel;
  {
    MutexLock lock(mutex_);
    std::shared_ptr<grpc::Channel>& known = channels_[address];
    if (known == nullptr) known = NewGrpcChannel(address, GrpcTraffic::kBulk, keepalive_);
    channel = known;
  }
  auto stream = std::make_shared<ClientStream>(std::move(channel), std::move(handler));
  stream->Start();
  return stream;
}

grpc::ServerGenericBidiReactor* GrpcStreamSet::Open() {
  auto stream = std::make_shared<GrpcServerStream>(this);
  Status closed;
  {
    MutexLock lock(mutex_);
    streams_.emplace(stream.get(), stream);
    closed = closed_;
  }
  stream->Start(*acceptor_);
  if (!closed.ok()) stream->Close(closed);
  return stream.get();
}

void GrpcStreamSet::CloseAll(const Status& reason) {
  std::vector<std::shared_ptr<FrameStream>> streams;
  {
    MutexLock lock(mutex_);
    closed_ = reason;
    for (const auto& [key, stream] : streams_) {
      if (std::shared_ptr<FrameStream> live = stream.lock()) streams.push_back(std::move(live));
    }
  }
  for (const std::shared_ptr<FrameStream>& stream : streams) stream->Close(reason);
}

void GrpcStreamSet::Remove(const FrameStream* stream) {
  MutexLock lock(mutex_);
  streams_.erase(stream);
}

}  // namespace millrace
