#include <algorithm>
#include <utility>

#include "distributed/data_plane_core.h"

// The side of a link that sends: opening its stream, what the peer answers, and its end.
namespace millrace {
namespace {

constexpr absl::Duration kFirstRetry = absl::Milliseconds(20);
constexpr absl::Duration kLastRetry = absl::Milliseconds(500);

// The reasons that a peer gives; all else is the network's way to say that it is gone.
absl::StatusCode CodeOfLoss(const Status& reason) {
  switch (reason.code()) {
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kUnimplemented:
      return reason.code();
    case absl::StatusCode::kInvalidArgument:  // a frame, not an argument of the user's
      return absl::StatusCode::kInternal;
    default:
      return absl::StatusCode::kUnavailable;
  }
}

}  // namespace

// What the peer says on a stream that we opened.
class DataPlaneCore::OutboundHandler final : public FrameStream::Handler, public FrameHandler {
 public:
  OutboundHandler(std::shared_ptr<DataPlaneCore> core, LinkId link, uint64_t generation)
      : core_(std::move(core)), link_(link), generation_(generation) {}

  void OnMessage(absl::Span<const absl::string_view> pieces) override {
    Turn turn(*core_);
    Link* link = core_->Current(link_, generation_);
    if (link == nullptr) return;
    for (absl::string_view piece : pieces) {
      link->counters.wire_bytes_received += static_cast<int64_t>(piece.size());
    }
    // The frames of this side are small, so all are handled within one turn.
    current_ = link;
    turn_ = &turn;
    const Status status = ParseFrames(pieces, *this);
    if (!status.ok()) {
      core_->LinkDown(*link, status, turn);
    } else {
      core_->Pump(*link, turn);
    }
  }

  void OnWritten() override {
    Turn turn(*core_);
    Link* link = core_->Current(link_, generation_);
    if (link == nullptr) return;
    link->writing = false;
    core_->Pump(*link, turn);
  }

  void OnClosed(const Status& status) override {
    core_->OnOutboundClosed(link_, generation_, status);
  }

  // Called in OnMessage's turn.
  Status OnHello(const Hello& hello) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_->mutex_) {
    if (current_->state == Link::State::kOpen) return InvalidArgument("a second HELLO");
    if (hello.protocol != kFrameProtocol) {
      return FailedPrecondition("it speaks version ", hello.protocol,
                                " of the data protocol, this task ", kFrameProtocol);
    }
    if (hello.incarnation != current_->incarnation) {
      return Aborted("it has restarted: it is incarnation ", hello.incarnation, ", not ",
                     current_->incarnation);
    }
    MR_RETURN_IF_ERROR(current_->sender.Open(hello.eager_window));
    current_->state = Link::State::kOpen;
    core_->StopTimeout(*current_);
    return absl::OkStatus();
  }

  Status OnCredit(uint64_t offer, uint64_t bytes) override {
    return current_->sender.OnCredit(offer, bytes);
  }
  Status OnRelease(uint64_t bytes) override { return current_->sender.OnRelease(bytes); }
  Status OnRefuse(uint64_t offer) override {
    current_->sender.OnRefuse(offer, turn_->dropped);
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<DataPlaneCore> core_;
  const LinkId link_;
  const uint64_t generation_;
  // During OnMessage.
  Link* current_ = nullptr;
  Turn* turn_ = nullptr;
};

DataPlaneCore::Link* DataPlaneCore::Current(LinkId id, uint64_t generation) {
  if (shut_down_) return nullptr;
  Link* link = links_[id].get();
  return link->state != Link::State::kIdle && link->generation == generation ? link : nullptr;
}

Hello DataPlaneCore::OwnHello(uint64_t expected_incarnation) const {
  Hello hello;
  hello.incarnation = options_.incarnation;
  hello.expected_incarnation = expected_incarnation;
  hello.eager_window = options_.limits.eager_window_bytes;
  hello.task = options_.task;
  hello.build_version = options_.build_version;
  return hello;
}

void DataPlaneCore::BeginAttempt(Link& link, Turn& turn) {
  link.state = Link::State::kConnecting;
  link.tries = 0;
  link.last_error = absl::OkStatus();
  const uint64_t attempt = ++link.attempt;
  link.timeout = options_.environment.timers->After(
      options_.connect_timeout, [self = weak_from_this(), id = link.id, attempt] {
        if (const auto core = self.lock()) core->OnConnectTimeout(id, attempt);
      });
  turn.Connect(link.id, ++link.generation);
}

void DataPlaneCore::Connect(LinkId id, uint64_t generation) {
  std::string address;
  {
    MutexLock lock(mutex_);
    const Link* link = Current(id, generation);
    if (link == nullptr) return;
    address = link->address;
    ++connecting_;
  }
  std::shared_ptr<FrameStream> stream = options_.streams->Connect(
      address, std::make_shared<OutboundHandler>(shared_from_this(), id, generation));
  Turn turn(*this);
  --connecting_;
  connect_ended_.NotifyAll();
  Link* link = Current(id, generation);
  if (link == nullptr) {
    turn.Close(std::move(stream), Cancelled("the link is not needed any more"));
    return;
  }
  link->stream = std::move(stream);
  Pump(*link, turn);
}

void DataPlaneCore::Retry(LinkId id, uint64_t attempt) {
  Turn turn(*this);
  if (shut_down_) return;
  Link& link = *links_[id];
  if (link.state != Link::State::kConnecting || link.attempt != attempt) return;
  turn.Connect(id, ++link.generation);
}

void DataPlaneCore::OnConnectTimeout(LinkId id, uint64_t attempt) {
  Turn turn(*this);
  if (shut_down_) return;
  Link& link = *links_[id];
  if (link.state != Link::State::kConnecting || link.attempt != attempt) return;
  LinkDown(link,
           Unavailable("no connection within ", absl::FormatDuration(options_.connect_timeout),
                       link.last_error.ok() ? "" : StrCat(": ", link.last_error.message())),
           turn);
}

void DataPlaneCore::OnOutboundClosed(LinkId id, uint64_t generation, const Status& status) {
  Turn turn(*this);
  Link* link = Current(id, generation);
  if (link == nullptr) return;
  if (link->state == Link::State::kOpen || !absl::IsUnavailable(status)) {
    LinkDown(*link, status, turn);
    return;
  }
  // Nobody listens yet, or not any more: until OnConnectTimeout, again.
  link->last_error = status;
  ++link->generation;
  link->stream = nullptr;
  link->hello_sent = false;
  link->writing = false;
  const absl::Duration delay = std::min(kFirstRetry * (int64_t{1} << link->tries), kLastRetry);
  link->tries = std::min(link->tries + 1, 10);
  options_.environment.timers->After(delay, [self = weak_from_this(), id, attempt = link->attempt] {
    if (const auto core = self.lock()) core->Retry(id, attempt);
  });
}

void DataPlaneCore::LinkDown(Link& link, const Status& reason, Turn& turn) {
  const Status told(CodeOfLoss(reason), StrCat("lost the connection to ", link.task, " at ",
                                               link.address, ": ", reason.message()));
  if (link.stream != nullptr) turn.Close(std::move(link.stream), reason);
  StopTimeout(link);
  link.stream = nullptr;
  link.state = Link::State::kIdle;
  link.hello_sent = false;
  link.writing = false;
  link.down_ordinal = steps_.last_ordinal();
  // Whatever the sender held belongs to steps that use the link: see Push.
  link.sender.Clear(turn.dropped);
  steps_.ForEach([&](const StepId&, StepRecord& record) {
    if (record.begun() && record.Uses(link.id)) turn.TellDown(record.gate, told);
  });
}

void DataPlaneCore::StopTimeout(Link& link) {
  if (link.timeout != 0) options_.environment.timers->Cancel(std::exchange(link.timeout, 0));
}

void DataPlaneCore::Pump(Link& link, Turn& turn) {
  if (link.writing || link.stream == nullptr) return;
  MessageBuilder builder;
  if (!link.hello_sent) {
    builder.AddHello(OwnHello(link.incarnation));
    link.hello_sent = true;
  } else if (link.state == Link::State::kOpen) {
    link.sender.Fill(builder);
  }
  if (builder.empty()) return;
  Message message = builder.Build();
  link.counters.wire_bytes_sent += static_cast<int64_t>(message.size());
  link.writing = true;
  turn.Write(link.stream, std::move(message));
}

void DataPlaneCore::Push(LinkId id, const MessageKey& key, Tensor tensor) {
  Turn turn(*this);
  const StepId step(key);
  // Dropped tensors end with the turn, not in it.
  turn.dropped.emplace_back();
  Tensor& dropped = turn.dropped.back();
  if (shut_down_ || id < 0 || id >= static_cast<LinkId>(links_.size()) || steps_.Ended(step)) {
    dropped = std::move(tensor);
    return;
  }
  Link& link = *links_[id];
  StepRecord* record = steps_.Find(step);
  if (record != nullptr && record->begun()) {
    if (record->ordinal <= link.down_ordinal && record->Uses(id)) {
      dropped = std::move(tensor);  // its sink was told
      return;
    }
    if (!record->Uses(id)) record->links.push_back(id);
    if (tensor.dtype() == DType::kResource) {
      turn.TellDown(record->gate, InvalidArgument("a resource cannot be sent to ", link.task));
      return;
    }
  }
  if (tensor.dtype() == DType::kResource) return;
  link.sender.Push(key, std::move(tensor));
  if (link.state == Link::State::kIdle) BeginAttempt(link, turn);
  Pump(link, turn);
}

}  // namespace millrace
