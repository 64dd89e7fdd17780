#include "core/base/cancellation.h"

#include <atomic>
#include <map>
#include <thread>
#include <utility>

#include "core/base/mutex.h"

namespace millrace {

struct Cancellation::State {
  std::atomic<bool> cancelled{false};  // set under `mutex`, after `reason`
  Mutex mutex;
  CondVar callback_ended;
  absl::Status reason ABSL_GUARDED_BY(mutex);
  Id next_id ABSL_GUARDED_BY(mutex) = 1;
  // Not yet begun, in the order in which they run.
  std::map<Id, Callback> callbacks ABSL_GUARDED_BY(mutex);
  Id running ABSL_GUARDED_BY(mutex) = 0;  // on `runner`; 0: none
  std::thread::id runner ABSL_GUARDED_BY(mutex);
};

Cancellation::Cancellation() : state_(std::make_shared<State>()) {}

bool Cancellation::Cancel(absl::Status reason) {
  if (reason.ok()) reason = absl::CancelledError("cancelled without a reason");
  // A callback may destroy this object.
  const std::shared_ptr<State> state = state_;
  {
    MutexLock lock(state->mutex);
    if (state->cancelled.load(std::memory_order_relaxed)) return false;
    state->reason = reason;
    state->runner = std::this_thread::get_id();
    state->cancelled.store(true, std::memory_order_release);
  }
  // One at a time, so that Remove can still take out those whose turn has not come.
  while (true) {
    Callback callback;
    {
      MutexLock lock(state->mutex);
      state->running = 0;
      state->callback_ended.NotifyAll();
      auto first = state->callbacks.begin();
      if (first == state->callbacks.end()) return true;
      state->running = first->first;
      callback = std::move(first->second);
      state->callbacks.erase(first);
    }
    callback(reason);
    // `callback` and what it holds end here, before Remove is told.
  }
}

bool Cancellation::cancelled() const { return state_->cancelled.load(std::memory_order_acquire); }

absl::Status Cancellation::reason() const {
  MutexLock lock(state_->mutex);
  return state_->reason;
}

Cancellation::Id Cancellation::OnCancel(Callback callback) {
  absl::Status reason;
  {
    MutexLock lock(state_->mutex);
    if (!state_->cancelled.load(std::memory_order_relaxed)) {
      const Id id = state_->next_id++;
      state_->callbacks.emplace(id, std::move(callback));
      return id;
    }
    reason = state_->reason;
  }
  callback(reason);
  return 0;
}

void Cancellation::Remove(Id id) {
  Callback removed;  // ends after the lock: what it holds may call back
  MutexLock lock(state_->mutex);
  const auto found = state_->callbacks.find(id);
  if (found != state_->callbacks.end()) {
    removed = std::move(found->second);
    state_->callbacks.erase(found);
    return;
  }
  if (id == 0 || state_->runner == std::this_thread::get_id()) return;
  while (state_->running == id) state_->callback_ended.Wait(state_->mutex);
}

}  // namespace millrace
