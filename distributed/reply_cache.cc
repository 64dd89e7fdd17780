#include "distributed/reply_cache.h"

#include <algorithm>

namespace millrace {

ReplyCache::Key ReplyCache::PrivateKey() {
  MutexLock lock(mutex_);
  return {kPrivate, ++last_private_};
}

std::optional<Cancellation> ReplyCache::Join(Key key, Cancellation* call, Answer answer) {
  const auto caller = std::make_shared<Caller>();
  caller->answer = std::move(answer);
  caller->call = call;
  if (call != nullptr) {
    caller->id = call->OnCancel([weak = weak_from_this(), key, gone = caller.get()](const Status&) {
      if (const std::shared_ptr<ReplyCache> self = weak.lock()) self->OnCallerGone(key, gone);
    });
  }
  std::shared_ptr<const StepOutcome> kept;
  {
    MutexLock lock(mutex_);
    const auto [found, added] = entries_.try_emplace(key);
    Entry& entry = found->second;
    if (entry.running) {
      entry.callers.push_back(caller);
      if (!added) return std::nullopt;
      Cancellation stop = entry.stop;
      // It may have ended before it was among the callers.
      const bool gone = call != nullptr && call->cancelled();
      if (!gone) return stop;
    } else {
      kept = entry.kept != nullptr ? entry.kept
                                   : std::make_shared<const StepOutcome>(OutcomeOf(entry));
    }
  }
  if (kept == nullptr) {
    OnCallerGone(key, caller.get());
    MutexLock lock(mutex_);
    return entries_[key].stop;
  }
  if (call != nullptr) call->Remove(caller->id);
  caller->answer(*kept);
  return std::nullopt;
}

void ReplyCache::OnCallerGone(Key key, const Caller* caller) {
  Cancellation stop;
  {
    MutexLock lock(mutex_);
    const auto found = entries_.find(key);
    if (found == entries_.end() || !found->second.running) return;
    const std::vector<std::shared_ptr<Caller>>& callers = found->second.callers;
    bool is_one = false;
    for (const std::shared_ptr<Caller>& other : callers) {
      is_one = is_one || other.get() == caller;
      if (other.get() == caller) continue;
      if (other->call == nullptr || !other->call->cancelled()) return;
    }
    if (!is_one) return;
    stop = found->second.stop;
  }
  stop.Cancel(Cancelled("the client's call ended before the step did"));
}

void ReplyCache::Finish(Key key, StepOutcome outcome) {
  std::vector<std::shared_ptr<Caller>> callers;
  std::shared_ptr<const StepOutcome> kept;
  {
    MutexLock lock(mutex_);
    const auto found = entries_.find(key);
    if (found == entries_.end() || !found->second.running) return;
    Entry& entry = found->second;
    entry.running = false;
    callers = std::move(entry.callers);
    entry.callers.clear();
    if (key.first == kPrivate) {
      entries_.erase(found);
    } else {
      entry.status = outcome.status;
      entry.step = outcome.step;
      entry.bytes = outcome.fetched_bytes();
      if (entry.bytes <= limits_.reply_bytes) {
        kept = std::make_shared<const StepOutcome>(std::move(outcome));
      }
      Keep(key, entry, kept);
    }
  }
  for (size_t i = 0; i < callers.size(); ++i) {
    Caller& caller = *callers[i];
    if (caller.call != nullptr) caller.call->Remove(caller.id);
    if (kept != nullptr) {
      caller.answer(*kept);
    } else if (i + 1 < callers.size()) {
      caller.answer(outcome);
    } else {
      caller.answer(std::move(outcome));
    }
  }
}

void ReplyCache::Keep(Key key, Entry& entry, std::shared_ptr<const StepOutcome> outcome) {
  ended_.push_back(key);
  if (outcome != nullptr) {
    entry.kept = std::move(outcome);
    kept_.push_back(key);
    kept_bytes_ += entry.bytes;
  }
  while (static_cast<int>(kept_.size()) > limits_.replies || kept_bytes_ > limits_.bytes) {
    DropKept(entries_[kept_.front()]);
    kept_.pop_front();
  }
  if (static_cast<int>(ended_.size()) > limits_.outcomes) {
    const auto oldest = entries_.find(ended_.front());
    // Without its reply by now, unless the limits are odd.
    if (oldest->second.kept != nullptr) {
      DropKept(oldest->second);
      std::erase(kept_, ended_.front());
    }
    entries_.erase(oldest);
    ended_.pop_front();
  }
}

void ReplyCache::DropKept(Entry& entry) {
  entry.kept = nullptr;
  kept_bytes_ -= std::exchange(entry.bytes, 0);
}

StepOutcome ReplyCache::OutcomeOf(const Entry& entry) {
  StepOutcome outcome;
  outcome.step = entry.step;
  outcome.status = entry.status;
  if (entry.status.ok()) {
    outcome.status =
        Aborted("step ", entry.step, " took effect, but its reply is not kept any more");
  }
  return outcome;
}

void ReplyCache::CancelAll(const Status& reason) {
  std::vector<Cancellation> running;
  {
    MutexLock lock(mutex_);
    for (const auto& [key, entry] : entries_) {
      if (entry.running) running.push_back(entry.stop);
    }
  }
  for (Cancellation& stop : running) stop.Cancel(reason);
}

int ReplyCache::kept_replies() const {
  MutexLock lock(mutex_);
  return static_cast<int>(kept_.size());
}

int ReplyCache::running() const {
  MutexLock lock(mutex_);
  return static_cast<int>(entries_.size() - ended_.size());
}

}  // namespace millrace
