#include "distributed/data_plane_sender.h"

#include <algorithm>
#include <utility>

namespace millrace {
namespace {

// Frames are gathered up to about so many bytes of headers and of payloads.
constexpr size_t kGatherBytes = size_t{256} << 10;

}  // namespace

Status TensorSender::Open(int64_t eager_window) {
  // Half of it must hold an offer, and then some.
  if (eager_window < 8 * kFrameOverhead) {
    return InvalidArgument("an eager window of ", eager_window, " bytes is too small");
  }
  eager_window_ = eager_window;
  return absl::OkStatus();
}

void TensorSender::Push(const MessageKey& key, Tensor tensor) {
  waiting_.push_back({TensorHeader::Of(key, tensor), std::move(tensor)});
}

bool TensorSender::DropStep(const StepId& step, std::vector<Tensor>& dropped) {
  bool any = false;
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    if (StepId(it->header.key) == step) {
      dropped.push_back(std::move(it->tensor));
      it = waiting_.erase(it);
      any = true;
    } else {
      ++it;
    }
  }
  for (auto it = offers_.begin(); it != offers_.end();) {
    if (StepId(it->second.header.key) == step) {
      dropped.push_back(std::move(it->second.tensor));
      ends_.push_back(it->first);
      it = offers_.erase(it);
      any = true;
    } else {
      ++it;
    }
  }
  return any;
}

void TensorSender::Clear(std::vector<Tensor>& dropped) {
  for (Waiting& waiting : waiting_) dropped.push_back(std::move(waiting.tensor));
  for (auto& [id, offer] : offers_) dropped.push_back(std::move(offer.tensor));
  waiting_.clear();
  offers_.clear();
  ready_.clear();
  ends_.clear();
  eager_window_ = 0;
  eager_used_ = 0;
  chunk_is_next_ = false;
}

Status TensorSender::OnCredit(uint64_t id, uint64_t bytes) {
  const auto found = offers_.find(id);
  if (found == offers_.end()) return absl::OkStatus();  // its step has ended meanwhile
  Offer& offer = found->second;
  if (bytes > offer.header.size - offer.granted) {
    return InvalidArgument("a credit of ", bytes, " bytes for offer ", id, ", which has ",
                           offer.header.size - offer.granted, " left");
  }
  const bool had_credit = offer.granted > offer.sent;
  offer.granted += bytes;
  if (!had_credit && bytes > 0) ready_.push_back(id);
  return absl::OkStatus();
}

Status TensorSender::OnRelease(uint64_t bytes) {
  if (bytes > static_cast<uint64_t>(eager_used_)) {
    return InvalidArgument("a release of ", bytes, " bytes, of ", eager_used_, " in use");
  }
  eager_used_ -= static_cast<int64_t>(bytes);
  return absl::OkStatus();
}

void TensorSender::OnRefuse(uint64_t id, std::vector<Tensor>& dropped) {
  const auto found = offers_.find(id);
  if (found == offers_.end()) return;  // sent in full, or ended by END
  dropped.push_back(std::move(found->second.tensor));
  offers_.erase(found);
  ends_.push_back(id);
}

void TensorSender::Fill(MessageBuilder& builder) {
  if (eager_window_ == 0) return;
  for (uint64_t id : ends_) builder.AddEnd(id);
  ends_.clear();
  while (!ready_.empty() && !offers_.contains(ready_.front())) ready_.pop_front();
  const bool announced = !(chunk_is_next_ && !ready_.empty()) && FillAnnouncements(builder);
  if (!announced && !ready_.empty()) FillChunk(builder);
  chunk_is_next_ = announced;
}

bool TensorSender::FillAnnouncements(MessageBuilder& builder) {
  bool any = false;
  while (!waiting_.empty() && builder.payload_size() < kGatherBytes &&
         builder.header_size() < kGatherBytes) {
    Waiting& next = waiting_.front();
    const auto size = static_cast<int64_t>(next.header.size);
    // At most half of the window, so that what the receiver has yet to release leaves room.
    const bool small = size <= small_tensor_bytes_ && size + kFrameOverhead <= eager_window_ / 2;
    const int64_t cost = kFrameOverhead + (small ? size : 0);
    if (eager_used_ + cost > eager_window_) break;
    eager_used_ += cost;
    if (small) {
      ++tensors_sent_;
      payload_bytes_sent_ += size;
      builder.AddTensor(next.header, std::move(next.tensor));
    } else {
      const uint64_t id = next_offer_++;
      builder.AddOffer(next.header, id);
      offers_.emplace(id, Offer{next.header, std::move(next.tensor)});
    }
    waiting_.pop_front();
    any = true;
  }
  return any;
}

void TensorSender::FillChunk(MessageBuilder& builder) {
  const uint64_t id = ready_.front();
  ready_.pop_front();
  const auto found = offers_.find(id);  // there: see Fill
  Offer& offer = found->second;
  const uint64_t size = std::min(static_cast<uint64_t>(chunk_bytes_), offer.granted - offer.sent);
  builder.AddChunk(id, offer.sent, size, offer.tensor);
  offer.sent += size;
  payload_bytes_sent_ += static_cast<int64_t>(size);
  if (offer.sent == offer.header.size) {
    ++tensors_sent_;
    offers_.erase(found);  // the message keeps the tensor
  } else if (offer.granted > offer.sent) {
    ready_.push_back(id);
  }
}

int64_t TensorSender::queued_bytes() const {
  uint64_t bytes = 0;
  for (const Waiting& waiting : waiting_) bytes += waiting.header.size;
  for (const auto& [id, offer] : offers_) bytes += offer.header.size - offer.sent;
  return static_cast<int64_t>(bytes);
}

}  // namespace millrace
