#include "distributed/step_rendezvous.h"

#include <algorithm>

namespace millrace {

StatusOr<ChannelTable::Entry*> ChannelTable::Add(ChannelId channel) {
  if (channel >= kMaxChannels) {
    return InvalidArgument("channel ", channel, ": a program has at most ", kMaxChannels);
  }
  if (channel >= entries_.size()) entries_.resize(channel + 1);
  Entry& entry = entries_[channel];
  if (entry.used) return InvalidArgument("channel ", channel, " is there twice");
  entry.used = true;
  return &entry;
}

void ChannelTable::AddLink(LinkId link) {
  if (std::find(links_.begin(), links_.end(), link) == links_.end()) links_.push_back(link);
}

Status ChannelTable::AddOutgoing(ChannelId channel, LinkId to) {
  MR_ASSIGN_OR_RETURN(Entry * entry, Add(channel));
  entry->outgoing = true;
  entry->link = to;
  if (to == kHere) {
    entry->slot = num_slots_++;
  } else {
    AddLink(to);
  }
  return absl::OkStatus();
}

Status ChannelTable::AddIncoming(ChannelId channel, LinkId from) {
  MR_ASSIGN_OR_RETURN(Entry * entry, Add(channel));
  entry->slot = num_slots_++;
  AddLink(from);
  return absl::OkStatus();
}

const LinkId* ChannelTable::Destination(ChannelId channel) const {
  if (channel >= entries_.size() || !entries_[channel].outgoing) return nullptr;
  return &entries_[channel].link;
}

int ChannelTable::Slot(ChannelId channel) const {
  return channel < entries_.size() ? entries_[channel].slot : -1;
}

StepRendezvous::StepRendezvous(const ChannelTable& channels, uint64_t session, uint64_t step,
                               DataPlane* data_plane, Cancellation& cancellation)
    : channels_(channels),
      session_(session),
      step_(step),
      data_plane_(data_plane),
      cancellation_(cancellation),
      slots_(channels.num_slots()),
      missing_(channels.num_slots()) {}

StepRendezvous::~StepRendezvous() { Abort(Cancelled("step ", step_, " has ended")); }

Status StepRendezvous::Send(ChannelId channel, Tensor tensor) {
  const LinkId* to = channels_.Destination(channel);
  if (to == nullptr) return Internal("channel ", channel, " does not start in this task");
  if (*to == ChannelTable::kHere) {
    if (Deliver(channels_.Slot(channel), std::move(tensor))) return absl::OkStatus();
    MutexLock lock(mutex_);
    return aborted_.ok() ? Internal("channel ", channel, " was sent to twice") : aborted_;
  }
  {
    MutexLock lock(mutex_);
    if (!aborted_.ok()) return aborted_;
  }
  MessageKey key;
  key.session = session_;
  key.step = step_;
  key.channel = channel;
  data_plane_->Push(*to, key, std::move(tensor));
  return absl::OkStatus();
}

void StepRendezvous::RecvAsync(ChannelId channel, RecvDone done) {
  const int index = channels_.Slot(channel);
  StatusOr<Tensor> result = Internal("channel ", channel, " does not end in this task");
  if (index >= 0) {
    MutexLock lock(mutex_);
    Slot& slot = slots_[index];
    if (!aborted_.ok()) {
      result = aborted_;
    } else if (slot.asked) {
      result = Internal("channel ", channel, " is received twice");
    } else if (slot.asked = true; slot.filled) {
      result = std::move(slot.tensor);
    } else {
      slot.waiting = std::move(done);
      return;
    }
  }
  done(std::move(result));
}

bool StepRendezvous::Deliver(int slot, Tensor tensor) {
  RecvDone receiver;
  {
    MutexLock lock(mutex_);
    Slot& place = slots_[slot];
    if (!aborted_.ok() || place.filled) return false;
    place.filled = true;
    --missing_;
    if (place.asked) {
      receiver = std::exchange(place.waiting, nullptr);
    } else {
      place.tensor = std::move(tensor);
      return true;
    }
  }
  // May end the step, and with it this object: nothing after it.
  receiver(std::move(tensor));
  return true;
}

void StepRendezvous::Abort(const Status& reason) {
  std::vector<RecvDone> receivers;
  std::vector<Slot> dropped;  // their tensors go when the lock is free
  Status aborted;
  {
    MutexLock lock(mutex_);
    if (!aborted_.ok()) return;
    aborted_ = reason.ok() ? Internal("aborted without a reason") : reason;
    aborted = aborted_;
    for (Slot& slot : slots_) {
      if (slot.waiting) receivers.push_back(std::exchange(slot.waiting, nullptr));
    }
    dropped.swap(slots_);
    slots_.resize(dropped.size());
  }
  for (RecvDone& receiver : receivers) receiver(aborted);
}

void StepRendezvous::OnTensor(const MessageKey& key, Tensor tensor, int64_t wire_bytes) {
  const int slot = channels_.Slot(key.channel);
  // A channel between devices of this task takes nothing from outside.
  if (slot < 0 || channels_.Destination(key.channel) != nullptr) return;
  {
    MutexLock lock(mutex_);
    received_.push_back({key.channel, static_cast<int64_t>(tensor.byte_size()), wire_bytes});
  }
  Deliver(slot, std::move(tensor));
}

void StepRendezvous::OnLinkDown(const Status& reason) {
  // What this task needs has come: its part can end well, whatever becomes of the others.
  if (HasAllTensors()) return;
  // The cancellation outlives this object; after Abort nothing of this object may be touched.
  Cancellation cancellation = cancellation_;
  Abort(reason);
  cancellation.Cancel(reason);
}

Status StepRendezvous::abort_reason() const {
  MutexLock lock(mutex_);
  return aborted_;
}

bool StepRendezvous::HasAllTensors() const {
  MutexLock lock(mutex_);
  return missing_ == 0;
}

std::vector<StepRendezvous::Received> StepRendezvous::TakeReceived() {
  MutexLock lock(mutex_);
  return std::exchange(received_, {});
}

}  // namespace millrace
