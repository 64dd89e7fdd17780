#include "distributed/data_plane.h"

#include <algorithm>
#include <utility>

#include "distributed/data_plane_core.h"

namespace millrace {
namespace {

class StreamDataPlaneImpl final : public StreamDataPlane {
 public:
  explicit StreamDataPlaneImpl(StreamDataPlaneOptions options)
      : core_(std::make_shared<DataPlaneCore>(std::move(options))) {}
  ~StreamDataPlaneImpl() override { core_->Shutdown(); }

  LinkId Link(const std::string& task, const std::string& address, uint64_t incarnation) override {
    return core_->AddLink(task, address, incarnation);
  }
  void Push(LinkId link, const MessageKey& key, Tensor tensor) override {
    core_->Push(link, key, std::move(tensor));
  }
  Status BeginStep(uint64_t session, uint64_t step, TensorSink* sink,
                   std::vector<LinkId> links) override {
    return core_->BeginStep({session, step}, sink, std::move(links));
  }
  void EndStep(uint64_t session, uint64_t step) override { core_->EndStep({session, step}); }
  void EndSession(uint64_t session) override { core_->EndSession(session); }
  std::vector<LinkCounters> Counters() const override { return core_->Counters(); }
  Usage usage() const override { return core_->usage(); }
  std::shared_ptr<FrameStream::Handler> Accept(std::shared_ptr<FrameStream> stream) override {
    return core_->Accept(std::move(stream));
  }

 private:
  const std::shared_ptr<DataPlaneCore> core_;
};

StreamDataPlaneOptions Checked(StreamDataPlaneOptions options) {
  DataPlaneOptions& limits = options.limits;
  limits.small_tensor_bytes = std::max<int64_t>(limits.small_tensor_bytes, 0);
  limits.eager_window_bytes = std::max<int64_t>(limits.eager_window_bytes, 16 * kFrameOverhead);
  limits.credit_window_bytes = std::max<int64_t>(limits.credit_window_bytes, 1);
  // Some chunk must fit.
  limits.chunk_bytes = std::clamp<int64_t>(limits.chunk_bytes, 1, limits.credit_window_bytes);
  limits.unknown_step_seconds = std::max<int64_t>(limits.unknown_step_seconds, 1);
  return options;
}

}  // namespace

std::unique_ptr<StreamDataPlane> StreamDataPlane::Create(StreamDataPlaneOptions options) {
  return std::make_unique<StreamDataPlaneImpl>(Checked(std::move(options)));
}

DataPlaneCore::DataPlaneCore(StreamDataPlaneOptions options) : options_(std::move(options)) {}

LinkId DataPlaneCore::AddLink(const std::string& task, const std::string& address,
                              uint64_t incarnation) {
  MutexLock lock(mutex_);
  for (const std::unique_ptr<Link>& link : links_) {
    if (link->incarnation == incarnation && link->task == task && link->address == address) {
      return link->id;
    }
  }
  const auto id = static_cast<LinkId>(links_.size());
  links_.push_back(std::make_unique<Link>(id, options_));
  links_.back()->task = task;
  links_.back()->address = address;
  links_.back()->incarnation = incarnation;
  link_to_.emplace(incarnation, links_.back().get());
  return id;
}

Status DataPlaneCore::BeginStep(const StepId& step, TensorSink* sink, std::vector<LinkId> links) {
  Turn turn(*this);
  if (shut_down_) return Unavailable("the task is shutting down");
  for (LinkId link : links) {
    if (link < 0 || link >= static_cast<LinkId>(links_.size())) {
      return InvalidArgument("unknown link ", link);
    }
  }
  MR_ASSIGN_OR_RETURN(StepRecord * record, steps_.Begin(step, sink, std::move(links)));
  for (StepRecord::Early& early : std::exchange(record->early, {})) {
    turn.Deliver(record->gate, early.key, std::move(early.tensor), early.wire_bytes);
    const auto inbound = inbounds_.find(early.stream);
    if (inbound != inbounds_.end()) inbound->second->receiver.Release(early.cost);
  }
  if (!record->lost.ok()) turn.TellDown(record->gate, record->lost);
  record->waiting_offers = 0;
  for (const auto& [id, inbound] : inbounds_) {
    inbound->receiver.BeginStep(step);
    GrantAndPump(*inbound, turn);
  }
  return absl::OkStatus();
}

void DataPlaneCore::EndStep(const StepId& step) {
  Turn turn(*this);
  if (!shut_down_) DropStep(step, steps_.End(step), turn);
}

void DataPlaneCore::EndSession(uint64_t session) {
  Turn turn(*this);
  if (shut_down_) return;
  for (auto& [step, record] : steps_.EndSession(session)) DropStep(step, std::move(record), turn);
}

void DataPlaneCore::DropStep(const StepId& step, std::unique_ptr<StepRecord> record, Turn& turn) {
  for (const std::unique_ptr<Link>& link : links_) {
    if (link->sender.DropStep(step, turn.dropped)) Pump(*link, turn);
  }
  if (record == nullptr) return;  // nothing came
  ReleaseEarly(*record, turn);
  for (const auto& [id, inbound] : inbounds_) {
    if (inbound->receiver.DropStep(step, turn.dropped)) GrantAndPump(*inbound, turn);
  }
  if (record->begun()) turn.CloseGate(record->gate);
}

std::vector<LinkCounters> DataPlaneCore::Counters() const {
  MutexLock lock(mutex_);
  std::vector<LinkCounters> all;
  for (const std::unique_ptr<Link>& link : links_) {
    LinkCounters counters = link->counters;
    counters.peer = link->task;
    counters.tensors_sent = link->sender.tensors_sent();
    counters.payload_bytes_sent = link->sender.payload_bytes_sent();
    all.push_back(std::move(counters));
  }
  // What a task sends is told once, at its first link.
  for (const auto& [id, inbound] : inbounds_) {
    const Link* link = inbound->greeted ? LinkTo(inbound->peer.incarnation) : nullptr;
    if (link == nullptr) continue;
    AddInbound(inbound->counters, all[link->id]);
    all[link->id].buffered_bytes += inbound->receiver.eager_held();
  }
  return all;
}

StreamDataPlane::Usage DataPlaneCore::usage() const {
  MutexLock lock(mutex_);
  StreamDataPlane::Usage usage;
  usage.steps = steps_.size();
  for (const std::unique_ptr<Link>& link : links_) {
    usage.queued_tensors += link->sender.queued_tensors();
    usage.queued_bytes += link->sender.queued_bytes();
    usage.eager_used += link->sender.eager_used();
  }
  for (const auto& [id, inbound] : inbounds_) {
    usage.eager_held += inbound->receiver.eager_held();
    usage.eager_unsent += inbound->receiver.eager_unsent();
    usage.credit_outstanding += inbound->receiver.credit_outstanding();
    usage.offers += inbound->receiver.offers();
  }
  steps_.ForEach([&](const StepId&, const StepRecord& record) {
    for (const StepRecord::Early& early : record.early) {
      usage.early_bytes += early.cost - kFrameOverhead;
    }
  });
  return usage;
}

void DataPlaneCore::Shutdown() {
  const Status reason = Unavailable("the task is shutting down");
  Turn turn(*this);
  shut_down_ = true;
  while (connecting_ > 0) connect_ended_.Wait(mutex_);
  if (expiry_ != 0) options_.environment.timers->Cancel(expiry_);
  for (const std::unique_ptr<Link>& link : links_) {
    StopTimeout(*link);
    if (link->stream != nullptr) turn.Close(std::move(link->stream), reason);
    link->stream = nullptr;
    link->sender.Clear(turn.dropped);
  }
  for (const auto& [id, inbound] : std::exchange(inbounds_, {})) {
    inbound->closed = true;
    inbound->receiver.Clear(turn.dropped);
    turn.Close(inbound->stream, reason);
  }
  steps_.ForEach([&](const StepId&, StepRecord& record) {
    for (StepRecord::Early& early : record.early) turn.dropped.push_back(std::move(early.tensor));
    record.early.clear();
    if (record.begun()) turn.CloseGate(record.gate);
  });
}

}  // namespace millrace
