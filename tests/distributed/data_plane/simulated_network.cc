#include "tests/distributed/data_plane/simulated_network.h"

#include <optional>
#include <utility>

namespace millrace {
namespace {

std::string Flatten(const Message& message) {
  std::string bytes = message.header;
  for (const MessagePart& part : message.payloads)
    bytes.append(part.bytes.data(), part.bytes.size());
  return bytes;
}

}  // namespace

// One stream: side 0 has opened it, side 1 accepted.
class SimulatedNetwork::Pipe : public std::enable_shared_from_this<Pipe> {
 public:
  explicit Pipe(SimulatedNetwork* network) : network_(network) {}

  void Open(FrameStreamAcceptor* acceptor);
  void set_handler(int side, std::shared_ptr<FrameStream::Handler> handler) {
    handlers_[side] = std::move(handler);
    Resume();
  }

  // A message from `side`.
  void Write(int side, std::string bytes) {
    if (closed_) return;
    network_->environment_.timers->After(
        network_->Delay(), [self = shared_from_this(), side, bytes = std::move(bytes)]() mutable {
          self->parked_[side] = std::move(bytes);
          self->Resume();
        });
  }

  // Delivers what has arrived and is not held up.
  void Resume() {
    for (int side = 0; side < 2; ++side) {
      if (closed_ || !parked_[side].has_value() || network_->stalled_[side]) continue;
      if (handlers_[1 - side] == nullptr) continue;
      const std::string bytes = *std::exchange(parked_[side], std::nullopt);
      if (network_->messages_to_cut_ >= 0 && network_->messages_to_cut_-- == 0) {
        network_->CutAll();
        return;
      }
      Deliver(side, bytes);
    }
  }

  // Ends it; `reason` goes to `side`, and to the other one if it is the opener.
  void Close(int side, const Status& reason) {
    if (std::exchange(closed_, true)) return;
    const Status gone = Unavailable("the peer has closed the stream");
    Tell(side, reason.ok() ? gone : reason);
    Tell(1 - side, side == 1 && !reason.ok() ? reason : gone);
  }
  void Cut(int side) {
    closed_ = true;
    Tell(side, Unavailable("connection reset"));
  }

 private:
  void Deliver(int side, const std::string& bytes) {
    if (network_->observer_) network_->observer_(side == 0, bytes);
    std::vector<absl::string_view> pieces;
    absl::string_view rest = bytes;
    while (!rest.empty()) {
      const size_t size = 1 + network_->random_() % (rest.size() < 64 ? 64 : rest.size());
      pieces.push_back(rest.substr(0, size));
      rest.remove_prefix(pieces.back().size());
    }
    const std::shared_ptr<FrameStream::Handler> handler = handlers_[1 - side];
    handler->OnMessage(pieces);
    network_->environment_.scheduler->Schedule([self = shared_from_this(), side] {
      if (!self->closed_) self->handlers_[side]->OnWritten();
    });
  }

  // The handler goes only then, as the stream may be in one of its calls now.
  void Tell(int side, const Status& reason) {
    network_->environment_.scheduler->Schedule([self = shared_from_this(), side, reason] {
      if (auto handler = std::exchange(self->handlers_[side], nullptr)) handler->OnClosed(reason);
    });
  }

  SimulatedNetwork* const network_;
  std::shared_ptr<FrameStream::Handler> handlers_[2];
  std::optional<std::string> parked_[2];  // arrived, from that side
  bool closed_ = false;
};

class SimulatedNetwork::End final : public FrameStream {
 public:
  End(std::shared_ptr<Pipe> pipe, int side) : pipe_(std::move(pipe)), side_(side) {}
  void Write(Message message) override { pipe_->Write(side_, Flatten(message)); }
  void Close(const Status& reason) override { pipe_->Close(side_, reason); }

 private:
  const std::shared_ptr<Pipe> pipe_;
  const int side_;
};

void SimulatedNetwork::Pipe::Open(FrameStreamAcceptor* acceptor) {
  if (closed_) return;
  set_handler(1, acceptor->Accept(std::make_shared<End>(shared_from_this(), 1)));
}

SimulatedNetwork::SimulatedNetwork(const Environment& environment, uint64_t seed)
    : environment_(environment), random_(seed) {}

SimulatedNetwork::~SimulatedNetwork() = default;

void SimulatedNetwork::Listen(const std::string& address, FrameStreamAcceptor* acceptor) {
  listeners_[address] = acceptor;
}

std::shared_ptr<FrameStream> SimulatedNetwork::Connect(
    const std::string& address, std::shared_ptr<FrameStream::Handler> handler) {
  ++connects_;
  auto pipe = std::make_shared<Pipe>(this);
  pipe->set_handler(0, std::move(handler));
  pipes_.push_back(pipe);
  environment_.timers->After(Delay(), [this, pipe, address] {
    FrameStreamAcceptor* acceptor = listeners_[address];
    if (acceptor == nullptr) {
      pipe->Close(1, Unavailable("connection refused"));
    } else {
      pipe->Open(acceptor);
    }
  });
  return std::make_shared<End>(std::move(pipe), 0);
}

absl::Duration SimulatedNetwork::Delay() {
  return max_delay_ * (static_cast<double>(random_() % 1000) / 1000);
}

void SimulatedNetwork::StallForward(bool stalled) {
  stalled_[0] = stalled;
  Resume();
}

void SimulatedNetwork::StallBack(bool stalled) {
  stalled_[1] = stalled;
  Resume();
}

void SimulatedNetwork::Resume() {
  for (const std::shared_ptr<Pipe>& pipe : pipes_) pipe->Resume();
}

void SimulatedNetwork::CutAll() {
  messages_to_cut_ = -1;
  for (const std::shared_ptr<Pipe>& pipe : std::exchange(pipes_, {})) {
    pipe->Cut(0);
    pipe->Cut(1);
  }
}

void SimulatedNetwork::CutForOpeners() {
  half_open_ = std::exchange(pipes_, {});
  for (const std::shared_ptr<Pipe>& pipe : half_open_) pipe->Cut(0);
}

void SimulatedNetwork::TellAcceptors() {
  for (const std::shared_ptr<Pipe>& pipe : std::exchange(half_open_, {})) pipe->Cut(1);
}

}  // namespace millrace
