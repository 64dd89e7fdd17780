#include "core/runtime/local_step.h"

#include <optional>
#include <utility>

#include "absl/strings/str_join.h"
#include "core/framework/resource.h"
#include "core/runtime/local_rendezvous.h"

namespace millrace {
namespace {

constexpr char kContainer[] = "";  // of random counters

// Whether they are 0, 1, 2, ...
bool Ascends(absl::Span<const int> indices) {
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] != static_cast<int>(i)) return false;
  }
  return true;
}

}  // namespace

// One run of a LocalStep. Owns itself: deleted when its last piece is done.
struct StepRun {
  StepRun(std::shared_ptr<LocalStep> of, Session::Done when_done)
      : step(std::move(of)), done(std::move(when_done)) {}

  SessionCore& core() { return *step->core_; }
  // False if the session is closed.
  bool Enlist();
  void Delist();
  Status WatchLimits(const RunOptions& options);
  void Start(std::vector<std::vector<Tensor>> feeds, bool caller_waits);
  void PieceDone(size_t piece, const Status& status, std::vector<Tensor> fetches);
  void End();
  void Commit();

  const std::shared_ptr<LocalStep> step;
  Session::Done done;
  uint64_t id = 0;
  Cancellation cancellation;  // its reason is the step's first error
  std::optional<LocalRendezvous> rendezvous;
  std::optional<StepStatsCollector> stats;
  UpdateProgress updates;
  std::vector<uint64_t> random_counters;  // by piece; only if some piece draws
  std::vector<Tensor> fetches;            // in the signature's order
  std::atomic<int> pieces_left{0};
  std::atomic<bool> failed{false};
  std::optional<Cancellation> client;  // the caller's
  Cancellation::Id client_id = 0;
  Timers::Id timer = 0;
  StepRun* next = nullptr;  // in SessionCore::running
  StepRun** previous = nullptr;
};

bool StepRun::Enlist() {
  MutexLock lock(core().mutex);
  if (core().closed) return false;
  next = core().running;
  previous = &core().running;
  if (next != nullptr) next->previous = &next;
  core().running = this;
  return true;
}

void StepRun::Delist() {
  MutexLock lock(core().mutex);
  *previous = next;
  if (next != nullptr) next->previous = previous;
}

Status StepRun::WatchLimits(const RunOptions& options) {
  const Environment& environment = core().options.environment;
  if (options.trace) {
    if (environment.clock == nullptr) return FailedPrecondition("a traced step needs a clock");
    stats.emplace(environment.clock->WallMicros(), environment.clock->NowNanos());
  }
  if (options.timeout != absl::InfiniteDuration()) {
    if (environment.timers == nullptr) return FailedPrecondition("a timeout needs timers");
    timer = environment.timers->After(
        options.timeout, [own = cancellation, timeout = options.timeout]() mutable {
          own.Cancel(DeadlineExceeded("the step took longer than its timeout of ",
                                      absl::FormatDuration(timeout)));
        });
  }
  if (options.cancellation != nullptr) {
    client = *options.cancellation;
    client_id = client->OnCancel(
        [own = cancellation](const Status& reason) mutable { own.Cancel(reason); });
  }
  return absl::OkStatus();
}

void StepRun::Start(std::vector<std::vector<Tensor>> feeds, bool caller_waits) {
  // The last piece to end deletes this, perhaps before the loop does.
  const std::shared_ptr<LocalStep> held = step;
  const size_t count = held->pieces_.size();
  pieces_left.store(static_cast<int>(count), std::memory_order_relaxed);
  for (size_t i = 0; i < count; ++i) {
    const LocalStep::Piece& piece = held->pieces_[i];
    ExecutorRun run;
    run.context.step_id = id;
    run.context.cancellation = &cancellation;
    if (rendezvous.has_value()) run.context.rendezvous = &*rendezvous;
    if (!random_counters.empty()) run.context.random_counter = random_counters[i];
    run.feeds = std::move(feeds[i]);
    if (stats.has_value()) run.observer = &*stats;
    run.clock = held->core_->options.environment.clock;
    run.updates = &updates;
    // The others are on their way when the caller begins with the last one.
    run.caller_runs = caller_waits && i + 1 == count;
    piece.executor->Run(std::move(run), [this, i](Status status, std::vector<Tensor> values) {
      PieceDone(i, status, std::move(values));
    });
  }
}

void StepRun::PieceDone(size_t piece, const Status& status, std::vector<Tensor> values) {
  if (status.ok() && step->is_whole_) {
    fetches = std::move(values);
  } else if (status.ok()) {
    const absl::Span<const int> indices = step->pieces_[piece].plan->fetch_indices();
    for (size_t i = 0; i < indices.size(); ++i) fetches[indices[i]] = std::move(values[i]);
  } else {
    failed.store(true, std::memory_order_relaxed);
    cancellation.Cancel(status);  // already so, but for an executor that was not told
  }
  if (pieces_left.fetch_sub(1, std::memory_order_acq_rel) == 1) End();
}

// Only now: a step that is tried again draws the same numbers.
void StepRun::Commit() {
  if (random_counters.empty()) return;
  MutexLock lock(core().mutex);
  for (size_t i = 0; i < random_counters.size(); ++i) {
    if (!step->pieces_[i].plan->draws_random()) continue;
    ResourceStore& store = step->pieces_[i].device->resources();
    if (store.random_counter(kContainer) <= random_counters[i]) {
      store.set_random_counter(kContainer, random_counters[i] + 1);
    }
  }
}

void StepRun::End() {
  if (timer != 0) core().options.environment.timers->Cancel(timer);
  if (client_id != 0) client->Remove(client_id);
  StatusOr<RunResult> result = RunResult{};
  if (failed.load(std::memory_order_relaxed)) {
    result = cancellation.reason();
    const int finished = updates.finished.load(std::memory_order_acquire);
    if (finished > 0 && finished < step->num_updates_) {
      for (const LocalStep::Piece& piece : step->pieces_) piece.plan->MarkTorn(id);
    }
  } else {
    Commit();
    result->fetches = std::move(fetches);
    result->step_id = id;
    if (stats.has_value()) result->events = stats->Take();
  }
  Delist();
  Session::Done then = std::move(done);
  delete this;
  std::move(then)(std::move(result));
}

void CancelRunning(SessionCore& core) {
  std::vector<Cancellation> running;
  {
    MutexLock lock(core.mutex);
    core.closed = true;
    for (StepRun* run = core.running; run != nullptr; run = run->next) {
      running.push_back(run->cancellation);
    }
  }
  for (Cancellation& cancellation : running)
    cancellation.Cancel(Cancelled("the session was closed"));
}

StatusOr<std::shared_ptr<LocalStep>> LocalStep::Create(std::shared_ptr<SessionCore> core,
                                                       PlannedStep planned) {
  std::shared_ptr<LocalStep> step(new LocalStep(std::move(core), std::move(planned)));
  const LocalSessionOptions& options = step->core_->options;
  step->num_channels_ = static_cast<uint32_t>(step->planned_.program.channels.size());
  for (Partition& partition : step->planned_.program.partitions) {
    Piece piece;
    for (Device* device : options.devices) {
      if (device->info().name == partition.device) piece.device = device;
    }
    if (piece.device == nullptr) {
      return Internal("planned for a device that is not here: ", partition.device.ToString());
    }
    MR_ASSIGN_OR_RETURN(
        piece.plan, ExecutionPlan::Create(std::move(partition), *piece.device, *options.kernels));
    piece.executor = std::make_unique<Executor>(*piece.plan, *options.environment.scheduler);
    step->num_updates_ += piece.plan->num_updates();
    step->draws_random_ = step->draws_random_ || piece.plan->draws_random();
    step->pieces_.push_back(std::move(piece));
  }
  step->planned_.program.partitions.clear();
  step->is_whole_ = step->pieces_.size() == 1 && Ascends(step->pieces_[0].plan->feed_indices()) &&
                    Ascends(step->pieces_[0].plan->fetch_indices());
  return step;
}

std::vector<Tensor> LocalStep::TakeFeeds(const ExecutionPlan& plan,
                                         std::vector<Tensor>& feeds) const {
  if (is_whole_) return std::move(feeds);
  std::vector<Tensor> taken;
  taken.reserve(plan.feed_indices().size());
  for (int index : plan.feed_indices()) taken.push_back(std::move(feeds[index]));
  return taken;
}

Status LocalStep::CheckFeedCount(size_t given) const {
  const std::vector<std::string>& names = signature().feeds;
  if (given == names.size()) return absl::OkStatus();
  return InvalidArgument("the step takes ", names.size(), " feeds (", absl::StrJoin(names, ", "),
                         "), but got ", given);
}

void LocalStep::Run(std::vector<Tensor> feeds, const RunOptions& options, bool caller_waits,
                    Session::Done done) {
  Status status = CheckFeedCount(feeds.size());
  std::vector<std::vector<Tensor>> piece_feeds;
  piece_feeds.reserve(pieces_.size());
  // All feeds before any piece starts: a step that is refused has done nothing.
  for (size_t i = 0; i < pieces_.size() && status.ok(); ++i) {
    piece_feeds.push_back(TakeFeeds(*pieces_[i].plan, feeds));
    if (pieces_.size() > 1) {
      status = static_cast<const CompiledPlan&>(*pieces_[i].plan).CheckFeeds(piece_feeds[i]);
    }
  }
  if (!status.ok()) return std::move(done)(std::move(status));

  auto run = std::make_unique<StepRun>(shared_from_this(), std::move(done));
  run->id = core_->next_step_id.fetch_add(1, std::memory_order_relaxed);
  if (!is_whole_) run->fetches.resize(signature().fetches.size());
  if (num_channels_ > 0) run->rendezvous.emplace(num_channels_);
  if (draws_random_) {
    for (const Piece& piece : pieces_) {
      run->random_counters.push_back(piece.device->resources().random_counter(kContainer));
    }
  }
  if (!run->Enlist()) {
    return std::move(run->done)(FailedPrecondition("the session is closed"));
  }
  status = run->WatchLimits(options);
  if (!status.ok() || pieces_.empty()) {
    run->failed.store(!status.ok(), std::memory_order_relaxed);
    if (!status.ok()) run->cancellation.Cancel(status);
    run.release()->End();
    return;
  }
  run.release()->Start(std::move(piece_feeds), caller_waits);
}

}  // namespace millrace
