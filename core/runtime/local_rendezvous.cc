#include "core/runtime/local_rendezvous.h"

#include <optional>
#include <utility>

namespace millrace {

struct LocalRendezvous::Slot {
  Mutex mutex;
  std::optional<Tensor> tensor ABSL_GUARDED_BY(mutex);  // sent, not yet received
  RecvDone waiting ABSL_GUARDED_BY(mutex);              // not null: received, not yet sent
  bool sent ABSL_GUARDED_BY(mutex) = false;
  bool received ABSL_GUARDED_BY(mutex) = false;
};

LocalRendezvous::LocalRendezvous(uint32_t num_channels)
    : slots_(std::make_unique<Slot[]>(num_channels)), num_channels_(num_channels) {}

LocalRendezvous::~LocalRendezvous() { Abort(Cancelled("the step has ended")); }

Status LocalRendezvous::Send(ChannelId channel, Tensor tensor) {
  if (channel >= num_channels_) {
    return InvalidArgument("there is no channel ", channel, " among ", num_channels_);
  }
  Slot& slot = slots_[channel];
  RecvDone done;
  {
    MutexLock lock(slot.mutex);
    if (slot.sent) return Internal("channel ", channel, " was sent to twice in one step");
    if (!is_aborted_.load(std::memory_order_acquire)) {
      slot.sent = true;
      if (!slot.waiting) {
        slot.tensor = std::move(tensor);
        return absl::OkStatus();
      }
      done = std::exchange(slot.waiting, nullptr);
    }
  }
  if (done) {
    std::move(done)(std::move(tensor));
    return absl::OkStatus();
  }
  MutexLock lock(mutex_);
  return aborted_;
}

void LocalRendezvous::RecvAsync(ChannelId channel, RecvDone done) {
  if (channel >= num_channels_) {
    std::move(done)(InvalidArgument("there is no channel ", channel, " among ", num_channels_));
    return;
  }
  Slot& slot = slots_[channel];
  std::optional<Tensor> tensor;
  bool twice = false;
  {
    MutexLock lock(slot.mutex);
    twice = slot.received;
    if (!twice && !is_aborted_.load(std::memory_order_acquire)) {
      slot.received = true;
      if (!slot.sent) {
        slot.waiting = std::move(done);
        return;
      }
      tensor = std::exchange(slot.tensor, std::nullopt);
    }
  }
  if (twice) {
    std::move(done)(Internal("channel ", channel, " was received from twice in one step"));
  } else if (tensor.has_value()) {
    std::move(done)(*std::move(tensor));
  } else {
    Status reason;
    {
      MutexLock lock(mutex_);
      reason = aborted_;
    }
    std::move(done)(std::move(reason));
  }
}

void LocalRendezvous::Abort(const Status& reason) {
  Status first;
  {
    MutexLock lock(mutex_);
    if (!aborted_.ok()) return;
    aborted_ = reason.ok() ? Cancelled("aborted without a reason") : reason;
    first = aborted_;
    is_aborted_.store(true, std::memory_order_release);
  }
  // A Recv that takes its slot's lock after this has must see the flag.
  for (uint32_t i = 0; i < num_channels_; ++i) {
    RecvDone done;
    std::optional<Tensor> unread;
    {
      MutexLock lock(slots_[i].mutex);
      done = std::exchange(slots_[i].waiting, nullptr);
      unread = std::exchange(slots_[i].tensor, std::nullopt);
    }
    if (done) std::move(done)(first);
  }
}

}  // namespace millrace
