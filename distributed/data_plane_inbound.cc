#include <algorithm>
#include <utility>

#include "distributed/data_plane_core.h"

// Streams that peers open, and what comes over them.
namespace millrace {

// What a peer sends. Messages of one stream come one at a time, so between two turns nothing but
// the stream's end and the steps' own beginnings and ends can happen.
class DataPlaneCore::InboundHandler final : public FrameStream::Handler, public FrameHandler {
 public:
  InboundHandler(std::shared_ptr<DataPlaneCore> core, std::shared_ptr<Inbound> inbound)
      : core_(std::move(core)), inbound_(std::move(inbound)) {}

  void OnMessage(absl::Span<const absl::string_view> pieces) override {
    {
      Turn turn(*core_);
      if (inbound_->closed) return;
      for (absl::string_view piece : pieces) {
        inbound_->counters.wire_bytes_received += static_cast<int64_t>(piece.size());
      }
    }
    const Status status = ParseFrames(pieces, *this);
    if (!status.ok()) core_->CloseInbound(inbound_->id, status);
  }

  void OnWritten() override {
    Turn turn(*core_);
    if (inbound_->closed) return;
    inbound_->writing = false;
    core_->Pump(*inbound_, turn);
  }

  void OnClosed(const Status& status) override { core_->CloseInbound(inbound_->id, status); }

  Status OnHello(const Hello& hello) override {
    Turn turn(*core_);
    if (inbound_->closed) return absl::OkStatus();
    if (inbound_->greeted) return InvalidArgument("a second HELLO");
    if (hello.protocol != kFrameProtocol) {
      return FailedPrecondition("this task speaks version ", kFrameProtocol,
                                " of the data protocol, the peer ", hello.protocol);
    }
    if (hello.expected_incarnation != core_->options_.incarnation) {
      return Aborted("the task has restarted: it is incarnation ", core_->options_.incarnation,
                     ", not ", hello.expected_incarnation);
    }
    inbound_->peer = hello;
    inbound_->greeted = true;
    inbound_->hello_due = true;
    inbound_->opened_at_ordinal = core_->steps_.last_ordinal();
    core_->Pump(*inbound_, turn);
    return absl::OkStatus();
  }

  Status OnTensor(const TensorHeader& header, const Payload& payload) override {
    const StepId step(header.key);
    const int64_t cost = kFrameOverhead + static_cast<int64_t>(header.size);
    {
      Turn turn(*core_);
      if (inbound_->closed) return absl::OkStatus();
      if (!inbound_->greeted) return InvalidArgument("TENSOR before HELLO");
      MR_RETURN_IF_ERROR(inbound_->receiver.Charge(cost));
      if (!Wanted(header.key)) {
        inbound_->receiver.Release(cost);
        core_->Pump(*inbound_, turn);
        return absl::OkStatus();
      }
    }
    StatusOr<Tensor> tensor = AllocateLanding(*core_->options_.allocator, header);
    if (tensor.ok()) {
      payload.CopyTo(tensor->mutable_raw_data());
      MR_ASSIGN_OR_RETURN(tensor, FinishLanding(header, *std::move(tensor)));
    }
    Turn turn(*core_);
    if (inbound_->closed) return absl::OkStatus();
    StepRecord* record = core_->steps_.Find(step);
    if (!tensor.ok()) core_->FailStep(step, NoMemory(tensor.status()), turn);
    if (!tensor.ok() || record == nullptr || !record->lost.ok()) {
      // The step has ended meanwhile, or cannot complete.
      if (tensor.ok()) turn.dropped.push_back(*std::move(tensor));
      inbound_->receiver.Release(cost);
    } else {
      ++inbound_->counters.tensors_received;
      inbound_->counters.payload_bytes_received += static_cast<int64_t>(header.size);
      if (record->begun()) {
        inbound_->receiver.Release(cost);
        turn.Deliver(record->gate, header.key, *std::move(tensor), TensorFrameSize(header));
      } else {
        record->early.push_back(
            {header.key, *std::move(tensor), inbound_->id, cost, TensorFrameSize(header)});
        core_->ArmExpiry(core_->UnknownStepLimit());
      }
    }
    core_->Pump(*inbound_, turn);
    return absl::OkStatus();
  }

  Status OnOffer(const TensorHeader& header, uint64_t offer) override {
    Turn turn(*core_);
    if (inbound_->closed) return absl::OkStatus();
    if (!inbound_->greeted) return InvalidArgument("OFFER before HELLO");
    MR_RETURN_IF_ERROR(inbound_->receiver.Charge(kFrameOverhead));
    if (!Wanted(header.key)) {
      MR_RETURN_IF_ERROR(inbound_->receiver.AddRefused(header, offer));
    } else {
      StepRecord& record = *core_->steps_.Find(StepId(header.key));
      MR_RETURN_IF_ERROR(inbound_->receiver.AddOffer(header, offer, record.begun()));
      if (!record.begun()) {
        ++record.waiting_offers;
        core_->ArmExpiry(core_->UnknownStepLimit());
      }
    }
    core_->GrantAndPump(*inbound_, turn);
    return absl::OkStatus();
  }

  Status OnChunk(uint64_t offer, uint64_t offset, const Payload& payload) override {
    Tensor landing;
    {
      Turn turn(*core_);
      if (inbound_->closed) return absl::OkStatus();
      MR_ASSIGN_OR_RETURN(landing, inbound_->receiver.Land(offer, offset, payload.size()));
    }
    if (landing.valid()) {
      payload.CopyTo(static_cast<char*>(landing.mutable_raw_data()) + offset);
    }
    Turn turn(*core_);
    turn.dropped.push_back(std::move(landing));
    if (inbound_->closed) return absl::OkStatus();
    MR_ASSIGN_OR_RETURN(std::optional<TensorReceiver::Arrived> arrived,
                        inbound_->receiver.Landed(offer, payload.size(), turn.dropped));
    inbound_->counters.payload_bytes_received += static_cast<int64_t>(payload.size());
    if (arrived.has_value()) {
      ++inbound_->counters.tensors_received;
      const StepRecord* record = core_->steps_.Find(StepId(arrived->header.key));
      if (record != nullptr && record->begun()) {
        // No one else may hold the tensor's memory when the sink gets it.
        turn.dropped.clear();
        turn.Deliver(record->gate, arrived->header.key, std::move(arrived->tensor),
                     arrived->wire_bytes);
      }
    }
    core_->GrantAndPump(*inbound_, turn);
    return absl::OkStatus();
  }

  Status OnEnd(uint64_t offer) override {
    Turn turn(*core_);
    if (inbound_->closed) return absl::OkStatus();
    MR_ASSIGN_OR_RETURN(const std::optional<StepId> step,
                        inbound_->receiver.End(offer, turn.dropped));
    if (step.has_value()) {
      if (StepRecord* record = core_->steps_.Find(*step)) --record->waiting_offers;
      core_->steps_.ForgetIfIdle(*step);
    }
    core_->GrantAndPump(*inbound_, turn);
    return absl::OkStatus();
  }

 private:
  // Whether a step waits for the key, or may yet. Notes that it came.
  bool Wanted(const MessageKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_->mutex_) {
    const StepId step(key);
    if (core_->steps_.Ended(step)) return false;
    StepRecord& record =
        core_->steps_.FindOrAdd(step, core_->options_.environment.clock->NowNanos());
    return record.lost.ok() && record.See(key);
  }

  Status NoMemory(const Status& status) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(core_->mutex_) {
    return Annotate(status, StrCat("receiving from ", core_->PeerName(*inbound_)));
  }

  const std::shared_ptr<DataPlaneCore> core_;
  const std::shared_ptr<Inbound> inbound_;
};

std::shared_ptr<FrameStream::Handler> DataPlaneCore::Accept(std::shared_ptr<FrameStream> stream) {
  Turn turn(*this);
  const DataPlaneOptions& limits = options_.limits;
  TensorReceiver::Options receiver;
  receiver.eager_window = limits.eager_window_bytes;
  receiver.credit_window = limits.credit_window_bytes;
  receiver.chunk = limits.chunk_bytes;
  receiver.allocator = options_.allocator;
  auto inbound = std::make_shared<Inbound>(++last_inbound_, stream, receiver);
  if (shut_down_) {
    inbound->closed = true;
    turn.Close(std::move(stream), Unavailable("the task is shutting down"));
  } else {
    inbounds_.emplace(inbound->id, inbound);
  }
  return std::make_shared<InboundHandler>(shared_from_this(), std::move(inbound));
}

void DataPlaneCore::Pump(Inbound& inbound, Turn& turn) {
  if (inbound.writing || !inbound.greeted) return;
  MessageBuilder builder;
  if (std::exchange(inbound.hello_due, false)) builder.AddHello(OwnHello(inbound.peer.incarnation));
  inbound.receiver.Fill(builder);
  if (builder.empty()) return;
  Message message = builder.Build();
  inbound.counters.wire_bytes_sent += static_cast<int64_t>(message.size());
  inbound.writing = true;
  turn.Write(inbound.stream, std::move(message));
}

void DataPlaneCore::GrantAndPump(Inbound& inbound, Turn& turn) {
  std::vector<TensorReceiver::Failed> failed;
  inbound.receiver.Grant(failed);
  for (const TensorReceiver::Failed& failure : failed) {
    FailStep(StepId(failure.header.key),
             Annotate(failure.status, StrCat("receiving from ", PeerName(inbound))), turn);
  }
  Pump(inbound, turn);
}

void DataPlaneCore::CloseInbound(uint64_t id, const Status& reason) {
  Turn turn(*this);
  const auto found = inbounds_.find(id);
  if (found == inbounds_.end()) return;
  const std::shared_ptr<Inbound> inbound = std::move(found->second);
  inbounds_.erase(found);
  inbound->closed = true;
  turn.Close(inbound->stream, reason);
  if (!inbound->greeted) return;
  const Status told =
      Unavailable("lost the connection from ", PeerName(*inbound), ": ", reason.message());

  // A peer that noticed first has opened another stream already: steps that began since use that.
  uint64_t last_ordinal = steps_.last_ordinal();
  for (const auto& [other_id, other] : inbounds_) {
    if (other->peer.incarnation == inbound->peer.incarnation && other_id > id) {
      last_ordinal = std::min(last_ordinal, other->opened_at_ordinal);
    }
  }
  std::vector<StepId> failed = inbound->receiver.steps();
  std::vector<LinkId> links;  // to that peer
  for (const std::unique_ptr<Link>& link : links_) {
    if (link->incarnation == inbound->peer.incarnation) links.push_back(link->id);
  }
  steps_.ForEach([&](const StepId& step, StepRecord& record) {
    const bool lost_early =
        std::any_of(record.early.begin(), record.early.end(),
                    [&](const StepRecord::Early& early) { return early.stream == id; });
    const bool lost_later =
        record.begun() && record.ordinal <= last_ordinal &&
        std::any_of(links.begin(), links.end(), [&](LinkId link) { return record.Uses(link); });
    if (lost_early || lost_later) failed.push_back(step);
  });
  for (const StepId& step : failed) FailStep(step, told, turn);
  inbound->receiver.Clear(turn.dropped);
  if (Link* link = LinkTo(inbound->peer.incarnation)) {
    AddInbound(inbound->counters, link->counters);
  }
}

void DataPlaneCore::AddInbound(const LinkCounters& counters, LinkCounters& sum) {
  sum.wire_bytes_sent += counters.wire_bytes_sent;
  sum.tensors_received += counters.tensors_received;
  sum.payload_bytes_received += counters.payload_bytes_received;
  sum.wire_bytes_received += counters.wire_bytes_received;
}

void DataPlaneCore::FailStep(const StepId& step, const Status& reason, Turn& turn) {
  StepRecord* record = steps_.Find(step);
  if (record == nullptr) return;
  if (record->begun()) {
    turn.TellDown(record->gate, reason);
    return;
  }
  DropWaiting(step, *record, turn);
  steps_.MarkLost(step, reason);
}

void DataPlaneCore::DropWaiting(const StepId& step, StepRecord& record, Turn& turn) {
  ReleaseEarly(record, turn);
  record.waiting_offers = 0;
  for (const auto& [id, inbound] : inbounds_) {
    if (inbound->receiver.DropStep(step, turn.dropped)) Pump(*inbound, turn);
  }
}

void DataPlaneCore::ReleaseEarly(StepRecord& record, Turn& turn) {
  for (StepRecord::Early& early : std::exchange(record.early, {})) {
    turn.dropped.push_back(std::move(early.tensor));
    const auto inbound = inbounds_.find(early.stream);
    if (inbound == inbounds_.end()) continue;
    inbound->second->receiver.Release(early.cost);
    Pump(*inbound->second, turn);
  }
}

void DataPlaneCore::ArmExpiry(absl::Duration delay) {
  if (expiry_ != 0) return;
  expiry_ = options_.environment.timers->After(delay, [self = weak_from_this()] {
    if (const auto core = self.lock()) core->ExpireUnknownSteps();
  });
}

absl::Duration DataPlaneCore::UnknownStepLimit() const {
  return absl::Seconds(options_.limits.unknown_step_seconds);
}

void DataPlaneCore::ExpireUnknownSteps() {
  Turn turn(*this);
  if (shut_down_) return;
  expiry_ = 0;
  const int64_t now = options_.environment.clock->NowNanos();
  std::vector<StepId> expired;
  bool some_wait = false;
  absl::Duration longest = absl::ZeroDuration();  // that one which may still wait has waited
  steps_.ForEach([&](const StepId& step, StepRecord& record) {
    if (record.begun() || (record.early.empty() && record.waiting_offers == 0)) return;
    const absl::Duration waited = absl::Nanoseconds(now - record.first_seen_nanos);
    if (waited >= UnknownStepLimit()) {
      expired.push_back(step);
    } else {
      longest = std::max(longest, waited);
      some_wait = true;
    }
  });
  for (const StepId& step : expired) {
    FailStep(step,
             Unavailable("tensors of step ", step.step, " came but the step did not begin within ",
                         options_.limits.unknown_step_seconds, " s"),
             turn);
  }
  if (some_wait) ArmExpiry(UnknownStepLimit() - longest);
}

std::string DataPlaneCore::PeerName(const Inbound& inbound) const {
  const Link* link = LinkTo(inbound.peer.incarnation);
  if (link != nullptr) return StrCat(link->task, " at ", link->address);
  return inbound.peer.task.empty() ? "an unnamed task" : inbound.peer.task;
}

DataPlaneCore::Link* DataPlaneCore::LinkTo(uint64_t incarnation) const {
  const auto found = link_to_.find(incarnation);
  return found == link_to_.end() ? nullptr : found->second;
}

}  // namespace millrace
