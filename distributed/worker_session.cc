#include "distributed/worker_session.h"

#include <algorithm>
#include <utility>

namespace millrace {
namespace {

// Of steps that did not come yet.
constexpr size_t kMostEarlyAborts = 1024;

}  // namespace

WorkerSession::WorkerSession(std::shared_ptr<WorkerContext> context, uint64_t id, std::string task)
    : context_(std::move(context)),
      id_(id),
      task_(std::move(task)),
      last_touch_nanos_(context_->options.environment.clock->NowNanos()) {}

Status WorkerSession::AddPeers(const CreateWorkerSessionRequest& request) {
  MutexLock lock(mutex_);
  if (!ended_.ok()) return ended_;
  for (const millrace::Peer& peer : request.peer()) {
    if (peer.task() == task_) continue;
    const auto [entry, added] = peers_.try_emplace(peer.task());
    Peer& known = entry->second;
    if (added) {
      known.address = peer.address();
      known.incarnation = peer.incarnation();
    } else if (known.incarnation != peer.incarnation() || known.address != peer.address()) {
      return Aborted(peer.task(), " was restarted (incarnation changed) since ", task_,
                     " heard of it in this session");
    }
  }
  return absl::OkStatus();
}

StatusOr<LinkId> WorkerSession::LinkTo(const std::string& task) {
  DataPlane* data_plane = context_->options.data_plane;
  if (data_plane == nullptr) return Unimplemented(task_, " has no data plane");
  MutexLock lock(mutex_);
  const auto found = peers_.find(task);
  if (found == peers_.end()) {
    return FailedPrecondition("a channel leads to ", task, ", which ", task_,
                              " does not know in this session");
  }
  Peer& peer = found->second;
  if (peer.link < 0) peer.link = data_plane->Link(task, peer.address, peer.incarnation);
  return peer.link;
}

void WorkerSession::RegisterPlan(const RegisterPlanRequest* request, Done done) {
  Status status;
  {
    MutexLock lock(mutex_);
    status = ended_;
    if (status.ok()) {
      const auto [entry, added] = plans_.try_emplace(request->plan());
      if (entry->second.plan == nullptr) {
        entry->second.waiting.push_back(std::move(done));
        if (!added) return;
        context_->options.environment.scheduler->Schedule([self = shared_from_this(), request] {
          // The request is there until the plan's waiting calls are answered.
          self->OnPlanCompiled(
              request->plan(),
              WorkerPlan::Create(
                  *request, self->task_,
                  [&](const std::string& task) { return self->LinkTo(task); }, self->context_));
        });
        return;
      }
    }
  }
  done(status);
}

void WorkerSession::OnPlanCompiled(uint64_t id, StatusOr<std::shared_ptr<WorkerPlan>> plan) {
  Status status = plan.ok() ? absl::OkStatus() : Annotate(plan.status(), task_);
  std::vector<Done> waiting;
  {
    MutexLock lock(mutex_);
    const auto entry = plans_.find(id);
    waiting = std::move(entry->second.waiting);
    if (status.ok() && !ended_.ok()) status = ended_;
    if (status.ok() && entry->second.dropped) {
      status = Aborted("plan ", id, " was deregistered from ", task_, " while it was compiled");
    }
    if (status.ok()) {
      entry->second.plan = *std::move(plan);
    } else {
      plans_.erase(entry);
    }
  }
  for (Done& done : waiting) done(status);
}

void WorkerSession::DeregisterPlan(uint64_t plan) {
  PlanEntry dropped;  // ends when the lock is free
  MutexLock lock(mutex_);
  const auto found = plans_.find(plan);
  if (found == plans_.end()) return;
  if (found->second.plan == nullptr) {
    found->second.dropped = true;
    return;
  }
  dropped = std::move(found->second);
  plans_.erase(found);
}

StatusOr<std::shared_ptr<const WorkerPlan>> WorkerSession::CheckStep(
    const WorkerRunStepRequest& request) const {
  if (!ended_.ok()) return ended_;
  if (request.step() < floor_) {
    return Aborted("step ", request.step(), " on ", task_, " is over and its reply is not kept");
  }
  const auto aborted = aborted_early_.find(request.step());
  if (aborted != aborted_early_.end()) return aborted->second;
  const auto plan = plans_.find(request.plan());
  if (plan == plans_.end() || plan->second.plan == nullptr) {
    return NotFound("plan ", request.plan(), " is not registered on ", task_);
  }
  return plan->second.plan;
}

void WorkerSession::RunStep(const WorkerRunStepRequest* request, WorkerRunStepResponse* response,
                            const CallOptions& options, CallDone done) {
  const uint64_t id = request->step();
  const auto caller = std::make_shared<Caller>();
  caller->response = response;
  caller->done = std::move(done);
  caller->cancellation = options.cancellation;
  if (options.cancellation != nullptr) {
    caller->id = options.cancellation->OnCancel(
        [weak = weak_from_this(), id, waiting = caller.get()](const Status&) {
          if (const auto self = weak.lock()) self->OnCallerGone(id, waiting);
        });
  }
  std::shared_ptr<WorkerStep> to_start;
  std::shared_ptr<const WorkerStepReply> reply;
  Steps dropped;
  {
    MutexLock lock(mutex_);
    RaiseFloor(request->ended_below(), dropped);
    const auto known = steps_.find(id);
    if (known != steps_.end()) {
      reply = known->second.reply;
      if (reply == nullptr) known->second.callers.push_back(caller);
    } else {
      StatusOr<std::shared_ptr<const WorkerPlan>> plan = CheckStep(*request);
      if (plan.ok() && options.cancellation != nullptr && options.cancellation->cancelled()) {
        plan = Cancelled("the call ended before step ", id, " began on ", task_);
      }
      if (plan.ok()) {
        to_start = std::make_shared<WorkerStep>(*std::move(plan), task_, id_, id, request->trace());
        StepEntry& entry = steps_[id];
        entry.step = to_start;
        entry.callers.push_back(caller);
        ++live_steps_;
      } else {
        auto refusal = std::make_shared<WorkerStepReply>();
        refusal->status = plan.status();
        reply = std::move(refusal);
      }
    }
  }
  Close(dropped, /*over=*/false);
  if (reply != nullptr) {
    Answer(*caller, *reply);
  } else if (to_start != nullptr) {
    to_start->Start(*request, [self = shared_from_this(), id](WorkerStepReply done_reply) {
      self->OnStepDone(id, std::move(done_reply));
    });
  }
}

void WorkerSession::Answer(Caller& caller, const WorkerStepReply& reply) {
  if (caller.cancellation != nullptr) caller.cancellation->Remove(caller.id);
  reply.CopyTo(caller.response);
  caller.done(absl::OkStatus());
}

// A step is aborted when all calls that wait for it have ended.
void WorkerSession::OnCallerGone(uint64_t step, const Caller* caller) {
  std::shared_ptr<WorkerStep> to_abort;
  {
    MutexLock lock(mutex_);
    const auto found = steps_.find(step);
    if (found == steps_.end()) return;
    std::vector<std::shared_ptr<Caller>>& callers = found->second.callers;
    const auto gone = std::find_if(callers.begin(), callers.end(),
                                   [&](const auto& other) { return other.get() == caller; });
    if (gone == callers.end()) return;
    const auto still_there = [&](const std::shared_ptr<Caller>& other) {
      return other.get() != caller &&
             (other->cancellation == nullptr || !other->cancellation->cancelled());
    };
    if (std::any_of(callers.begin(), callers.end(), still_there)) return;
    to_abort = found->second.step;
  }
  to_abort->Abort(Cancelled("the master's call of step ", step, " on ", task_, " ended"));
}

void WorkerSession::OnStepDone(uint64_t step, WorkerStepReply done_reply) {
  const auto reply = std::make_shared<const WorkerStepReply>(std::move(done_reply));
  std::vector<std::shared_ptr<Caller>> callers;
  Steps dropped;
  bool over;
  {
    MutexLock lock(mutex_);
    const auto found = steps_.find(step);
    StepEntry& entry = found->second;
    --live_steps_;
    callers = std::move(entry.callers);
    entry.callers.clear();
    entry.reply = reply;
    entry.reply_bytes = reply->fetched_bytes();
    kept_bytes_ += entry.reply_bytes;
    // A failed step has closed itself.
    entry.open = reply->status.ok() && !entry.step->plan()->channels().links().empty();
    if (entry.torn && reply->updates_started) entry.step->plan()->MarkTorn(step);
    if (!ended_.ok() || step < floor_) Forget(found, dropped);
    DropReplies(dropped);
    over = IsOver();
  }
  Close(dropped, over);
  for (const std::shared_ptr<Caller>& caller : callers) Answer(*caller, *reply);
}

void WorkerSession::Forget(Steps::iterator entry, Steps& dropped) {
  kept_bytes_ -= entry->second.reply_bytes;
  dropped.insert(steps_.extract(entry));
}

void WorkerSession::DropReplies(Steps& dropped) {
  const WorkerOptions& options = context_->options;
  for (auto entry = steps_.begin(); entry != steps_.end() && kept_bytes_ > options.kept_reply_bytes;
       ++entry) {
    if (entry->second.reply_bytes == 0) continue;
    auto outcome = std::make_shared<WorkerStepReply>();
    outcome->status = Aborted("step ", entry->first, " on ", task_,
                              " is over and its reply was too large to keep");
    outcome->updates_started = entry->second.reply->updates_started;
    entry->second.reply = std::move(outcome);
    kept_bytes_ -= std::exchange(entry->second.reply_bytes, 0);
  }
  auto entry = steps_.begin();
  while (entry != steps_.end() &&
         static_cast<int>(steps_.size()) - live_steps_ > options.kept_replies) {
    const auto next = std::next(entry);
    if (entry->second.reply != nullptr) {
      floor_ = std::max(floor_, entry->first + 1);
      Forget(entry, dropped);
    }
    entry = next;
  }
}

void WorkerSession::RaiseFloor(uint64_t floor, Steps& dropped) {
  if (floor <= floor_) return;
  floor_ = floor;
  aborted_early_.erase(aborted_early_.begin(), aborted_early_.lower_bound(floor));
  for (auto entry = steps_.begin(); entry != steps_.end() && entry->first < floor;) {
    const auto next = std::next(entry);
    if (entry->second.reply != nullptr) Forget(entry, dropped);
    entry = next;
  }
}

bool WorkerSession::IsOver() {
  if (ended_.ok() || live_steps_ > 0 || closed_) return false;
  closed_ = true;
  return true;
}

void WorkerSession::Close(const Steps& dropped, bool over) {
  DataPlane* data_plane = context_->options.data_plane;
  if (data_plane == nullptr) return;
  for (const auto& [step, entry] : dropped) {
    if (entry.open) data_plane->EndStep(id_, step);
  }
  if (over) data_plane->EndSession(id_);
}

void WorkerSession::AbortStep(uint64_t step, const Status& reason) {
  std::shared_ptr<WorkerStep> to_abort;
  {
    MutexLock lock(mutex_);
    const auto found = steps_.find(step);
    if (found == steps_.end()) {
      if (step < floor_ || !ended_.ok()) return;
      aborted_early_.emplace(step, reason);
      if (aborted_early_.size() > kMostEarlyAborts) aborted_early_.erase(aborted_early_.begin());
      return;
    }
    if (found->second.reply != nullptr) return;
    to_abort = found->second.step;
  }
  to_abort->Abort(reason);
}

void WorkerSession::MarkTorn(uint64_t step) {
  MutexLock lock(mutex_);
  const auto found = steps_.find(step);
  if (found == steps_.end()) return;
  StepEntry& entry = found->second;
  entry.torn = true;
  if (entry.reply != nullptr && entry.reply->updates_started) entry.step->plan()->MarkTorn(step);
}

void WorkerSession::EndBelow(uint64_t floor) {
  Steps dropped;
  {
    MutexLock lock(mutex_);
    RaiseFloor(floor, dropped);
  }
  Close(dropped, /*over=*/false);
}

void WorkerSession::End(const Status& reason) {
  std::vector<std::shared_ptr<WorkerStep>> running;
  std::map<uint64_t, PlanEntry> plans;
  Steps dropped;
  bool over;
  {
    MutexLock lock(mutex_);
    if (!ended_.ok()) return;
    ended_ = reason;
    for (auto entry = steps_.begin(); entry != steps_.end();) {
      const auto next = std::next(entry);
      if (entry->second.reply == nullptr) {
        running.push_back(entry->second.step);
      } else {
        Forget(entry, dropped);
      }
      entry = next;
    }
    // Those being compiled go when that is done: it reads their requests.
    for (auto plan = plans_.begin(); plan != plans_.end();) {
      const auto next = std::next(plan);
      if (plan->second.plan != nullptr) plans.insert(plans_.extract(plan));
      plan = next;
    }
    over = IsOver();
  }
  Close(dropped, over);
  for (const std::shared_ptr<WorkerStep>& step : running) step->Abort(reason);
}

void WorkerSession::Touch() {
  const int64_t now = context_->options.environment.clock->NowNanos();
  MutexLock lock(mutex_);
  last_touch_nanos_ = std::max(last_touch_nanos_, now);
}

int64_t WorkerSession::last_touch_nanos() const {
  MutexLock lock(mutex_);
  return last_touch_nanos_;
}

WorkerSession::Usage WorkerSession::usage() const {
  MutexLock lock(mutex_);
  return {static_cast<int>(plans_.size()), live_steps_,
          static_cast<int>(steps_.size()) - live_steps_};
}

}  // namespace millrace
