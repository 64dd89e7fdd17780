#include "distributed/worker_step.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "core/framework/resource.h"
#include "core/framework/tensor_proto.h"
#include "distributed/step_stats_proto.h"

namespace millrace {
namespace {

// The container whose random counter a step uses.
constexpr absl::string_view kContainer = "";

}  // namespace

int64_t WorkerStepReply::fetched_bytes() const {
  int64_t bytes = 0;
  for (const auto& [index, tensor] : fetches) bytes += static_cast<int64_t>(tensor.byte_size());
  return bytes;
}

void WorkerStepReply::CopyTo(WorkerRunStepResponse* response) const {
  response->Clear();
  Status outcome = status;
  for (const auto& [index, tensor] : fetches) {
    IndexedTensor* fetch = response->add_fetch();
    fetch->set_index(index);
    const Status converted = TensorToProto(tensor, fetch->mutable_tensor());
    if (outcome.ok() && !converted.ok()) {
      outcome = Annotate(converted, StrCat("fetch number ", index));
    }
  }
  SetStatus(outcome, response->mutable_status());
  EventsToProto(events, response->mutable_step_stats());
  response->set_updates_started(updates_started);
  for (const StepRendezvous::Received& channel : received) {
    ChannelCount* count = response->add_received();
    count->set_channel(channel.channel);
    count->set_payload_bytes(channel.payload_bytes);
    count->set_wire_bytes(channel.wire_bytes);
  }
}

WorkerStep::WorkerStep(std::shared_ptr<const WorkerPlan> plan, std::string task, uint64_t session,
                       uint64_t step, bool trace)
    : plan_(std::move(plan)),
      options_(plan_->context().options),
      task_(std::move(task)),
      session_(session),
      step_(step),
      rendezvous_(plan_->channels(), session, step, options_.data_plane, cancellation_) {
  if (trace) {
    const Clock& clock = *options_.environment.clock;
    stats_ = std::make_unique<StepStatsCollector>(clock.WallMicros(), clock.NowNanos());
  }
}

void WorkerStep::Start(const WorkerRunStepRequest& request, Done done) {
  const std::vector<WorkerPlan::Piece>& pieces = plan_->pieces();
  {
    MutexLock lock(mutex_);
    done_ = std::move(done);
    // One more, so that the step cannot end while it is being started.
    pieces_left_ = static_cast<int>(pieces.size()) + 1;
  }
  StatusOr<std::map<int, Tensor>> feeds = ReadFeeds(request);
  Status begun = feeds.status();
  const std::vector<LinkId>& links = plan_->channels().links();
  if (begun.ok() && !links.empty()) {
    begun = options_.data_plane->BeginStep(session_, step_, &rendezvous_, links);
  }
  if (!begun.ok()) {
    {
      MutexLock lock(mutex_);
      first_error_ = begun;
    }
    Finish();
    return;
  }
  for (const WorkerPlan::Piece& piece : pieces) {
    random_counters_.push_back(piece.device->resources().random_counter(kContainer));
  }
  for (size_t i = 0; i < pieces.size(); ++i) RunPiece(i, *feeds);
  OnPieceDone(pieces.size(), absl::OkStatus(), {});
}

StatusOr<std::map<int, Tensor>> WorkerStep::ReadFeeds(const WorkerRunStepRequest& request) const {
  std::map<int, Tensor> feeds;
  ProtoBudget budget;
  for (const IndexedTensor& feed : request.feed()) {
    StatusOr<Tensor> tensor = TensorFromProto(feed.tensor(), budget);
    if (!tensor.ok()) return Annotate(tensor.status(), StrCat("feed number ", feed.index()));
    feeds[feed.index()] = *std::move(tensor);
  }
  for (const WorkerPlan::Piece& piece : plan_->pieces()) {
    for (const int index : piece.plan->feed_indices()) {
      if (!feeds.contains(index)) return InvalidArgument("feed number ", index, " is missing");
    }
  }
  return feeds;
}

void WorkerStep::RunPiece(size_t index, std::map<int, Tensor>& feeds) {
  const WorkerPlan::Piece& piece = plan_->pieces()[index];
  ExecutorRun run;
  run.context.step_id = step_;
  run.context.random_counter = random_counters_[index];
  run.context.device = piece.device;
  run.context.rendezvous = &rendezvous_;
  run.context.cancellation = &cancellation_;
  run.updates = &updates_;
  if (stats_ != nullptr) {
    run.observer = stats_.get();
    run.clock = options_.environment.clock;
  }
  for (const int feed : piece.plan->feed_indices()) run.feeds.push_back(feeds[feed]);
  piece.executor->Run(std::move(run), [self = shared_from_this(), index](
                                          const Status& status, std::vector<Tensor> fetches) {
    self->OnPieceDone(index, status, std::move(fetches));
  });
}

void WorkerStep::OnPieceDone(size_t index, const Status& status, std::vector<Tensor> fetches) {
  {
    MutexLock lock(mutex_);
    if (!status.ok()) {
      if (first_error_.ok()) first_error_ = status;
    } else if (index < plan_->pieces().size()) {
      const absl::Span<const int> indices = plan_->pieces()[index].plan->fetch_indices();
      for (size_t i = 0; i < fetches.size() && i < indices.size(); ++i) {
        fetches_.emplace_back(indices[i], std::move(fetches[i]));
      }
    }
    if (--pieces_left_ > 0) return;
  }
  Finish();
}

void WorkerStep::Finish() {
  WorkerStepReply reply;
  Done done;
  Timers::Id timer;
  {
    MutexLock lock(mutex_);
    reply.status = first_error_;
    if (reply.status.ok()) reply.fetches = std::move(fetches_);
    fetches_.clear();
    done = std::exchange(done_, nullptr);
    timer = std::exchange(abort_timer_, 0);
  }
  if (timer != 0) options_.environment.timers->Cancel(timer);
  const int finished = updates_.finished.load(std::memory_order_acquire);
  reply.updates_started = finished > 0;
  if (reply.status.ok()) {
    CommitRandomCounters();
  } else {
    // The devices' errors follow from the first one, which aborted the others.
    const Status cause = rendezvous_.abort_reason();
    if (!cause.ok()) reply.status = cause;
    if (!absl::StrContains(reply.status.message(), task_)) {
      reply.status = Annotate(reply.status, task_);
    }
    if (finished > 0 && finished < plan_->num_updates()) plan_->MarkTorn(step_);
  }
  reply.received = rendezvous_.TakeReceived();
  if (stats_ != nullptr) reply.events = stats_->Take();
  if (!plan_->channels().links().empty() && !reply.status.ok()) {
    options_.data_plane->EndStep(session_, step_);
  }
  done(std::move(reply));
}

// Only now: a step that is tried again draws the same numbers.
void WorkerStep::CommitRandomCounters() {
  const std::vector<WorkerPlan::Piece>& pieces = plan_->pieces();
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (!pieces[i].plan->draws_random()) continue;
    ResourceStore& store = pieces[i].device->resources();
    if (store.random_counter(kContainer) <= random_counters_[i]) {
      store.set_random_counter(kContainer, random_counters_[i] + 1);
    }
  }
}

void WorkerStep::Abort(const Status& reason) {
  if (plan_->num_updates() == 0 || !rendezvous_.HasAllTensors()) {
    AbortNow(reason);
    return;
  }
  MutexLock lock(mutex_);
  if (abort_timer_ != 0 || !done_) return;
  abort_timer_ =
      options_.environment.timers->After(options_.abort_grace, [weak = weak_from_this(), reason] {
        if (const std::shared_ptr<WorkerStep> self = weak.lock()) self->AbortNow(reason);
      });
}

void WorkerStep::AbortNow(const Status& reason) {
  // What it calls may end the step, and with it whoever holds it.
  const std::shared_ptr<WorkerStep> self = shared_from_this();
  cancellation_.Cancel(reason);
  rendezvous_.Abort(reason);
}

}  // namespace millrace
