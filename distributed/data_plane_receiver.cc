#include "distributed/data_plane_receiver.h"

#include <algorithm>

#include "core/framework/bool_bytes.h"

namespace millrace {

StatusOr<Tensor> AllocateLanding(Allocator& allocator, const TensorHeader& header) {
  if (header.dtype == DType::kInvalid) return Tensor();
  if (header.dtype != DType::kString) {
    return Tensor::Allocate(allocator, header.dtype, header.shape);
  }
  MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Create({static_cast<int64_t>(header.size)}));
  return Tensor::Allocate(allocator, DType::kUint8, shape);
}

StatusOr<Tensor> FinishLanding(const TensorHeader& header, Tensor landing) {
  if (header.dtype == DType::kBool) NormalizeBools(landing);
  if (header.dtype != DType::kString) return landing;
  void* const bytes = landing.mutable_raw_data();
  Tensor strings = Tensor::Adopt(DType::kString, header.shape, bytes, header.size,
                                 [kept = std::move(landing)] {});
  if (!strings.valid()) return InvalidArgument("the offsets of a tensor of strings are wrong");
  return strings;
}

Status TensorReceiver::Charge(int64_t cost) {
  if (cost > options_.eager_window - eager_held_ - eager_unsent_) {
    return InvalidArgument("the eager window of ", options_.eager_window, " bytes is overrun");
  }
  eager_held_ += cost;
  return absl::OkStatus();
}

void TensorReceiver::Release(int64_t cost) {
  eager_held_ -= cost;
  eager_unsent_ += cost;
}

Status TensorReceiver::Add(const TensorHeader& header, uint64_t id, State state) {
  if (id <= last_offer_) return InvalidArgument("offer ", id, " after offer ", last_offer_);
  if (header.size == 0) return InvalidArgument("an offer of no bytes");
  last_offer_ = id;
  offers_[id] = Offer{header, state, Tensor(), 0, 0, OfferFrameSize(header)};
  return absl::OkStatus();
}

Status TensorReceiver::AddOffer(const TensorHeader& header, uint64_t id, bool step_has_begun) {
  MR_RETURN_IF_ERROR(Add(header, id, step_has_begun ? State::kActive : State::kWaiting));
  if (step_has_begun) active_.push_back(id);
  return absl::OkStatus();
}

Status TensorReceiver::AddRefused(const TensorHeader& header, uint64_t id) {
  MR_RETURN_IF_ERROR(Add(header, id, State::kRefused));
  refusals_.push_back(id);
  return absl::OkStatus();
}

void TensorReceiver::BeginStep(const StepId& step) {
  for (auto& [id, offer] : offers_) {
    if (offer.state != State::kWaiting || StepId(offer.header.key) != step) continue;
    offer.state = State::kActive;
    active_.push_back(id);
  }
}

bool TensorReceiver::DropStep(const StepId& step, std::vector<Tensor>& dropped) {
  bool any = false;
  for (auto& [id, offer] : offers_) {
    if (offer.state == State::kRefused || StepId(offer.header.key) != step) continue;
    Refuse(id, offer, dropped);
    any = true;
  }
  return any;
}

// The offer stays until END or its last granted byte comes: only then is its credit free.
void TensorReceiver::Refuse(uint64_t id, Offer& offer, std::vector<Tensor>& dropped) {
  offer.state = State::kRefused;
  dropped.push_back(std::move(offer.landing));
  refusals_.push_back(id);
}

StatusOr<Tensor> TensorReceiver::Land(uint64_t id, uint64_t offset, uint64_t size) {
  const auto found = offers_.find(id);
  if (found == offers_.end()) return InvalidArgument("a chunk of the unknown offer ", id);
  const Offer& offer = found->second;
  if (offset != offer.received || size > offer.granted - offer.received) {
    return InvalidArgument("a chunk of ", size, " bytes at ", offset, " of offer ", id, ", where ",
                           offer.received, " bytes came of ", offer.granted, " granted");
  }
  return offer.state == State::kActive ? offer.landing : Tensor();
}

StatusOr<std::optional<TensorReceiver::Arrived>> TensorReceiver::Landed(
    uint64_t id, uint64_t size, std::vector<Tensor>& dropped) {
  const auto found = offers_.find(id);
  if (found == offers_.end()) return std::nullopt;  // cleared meanwhile
  Offer& offer = found->second;
  offer.received += size;
  offer.wire_bytes += ChunkFrameSize(size);
  credit_outstanding_ -= static_cast<int64_t>(size);
  if (offer.received < offer.header.size) return std::nullopt;
  const bool wanted = offer.state == State::kActive;
  Arrived arrived{offer.header, std::move(offer.landing), offer.wire_bytes};
  Erase(found);
  if (!wanted) {
    dropped.push_back(std::move(arrived.tensor));
    return std::nullopt;
  }
  MR_ASSIGN_OR_RETURN(arrived.tensor, FinishLanding(arrived.header, std::move(arrived.tensor)));
  return arrived;
}

StatusOr<std::optional<StepId>> TensorReceiver::End(uint64_t id, std::vector<Tensor>& dropped) {
  const auto found = offers_.find(id);
  if (found == offers_.end()) return InvalidArgument("END of the unknown offer ", id);
  std::optional<StepId> step;
  if (found->second.state == State::kWaiting) step.emplace(found->second.header.key);
  dropped.push_back(std::move(found->second.landing));
  Erase(found);
  return step;
}

void TensorReceiver::Erase(Offers::iterator offer) {
  credit_outstanding_ -= static_cast<int64_t>(offer->second.granted - offer->second.received);
  offers_.erase(offer);
  Release(kFrameOverhead);
}

void TensorReceiver::Grant(std::vector<Failed>& failed) {
  while (!active_.empty()) {
    const uint64_t id = active_.front();
    const auto found = offers_.find(id);
    if (found == offers_.end() || found->second.state != State::kActive) {
      active_.pop_front();
      continue;
    }
    Offer& offer = found->second;
    const uint64_t bytes =
        std::min(static_cast<uint64_t>(options_.chunk), offer.header.size - offer.granted);
    if (credit_outstanding_ + static_cast<int64_t>(bytes) > options_.credit_window) return;
    active_.pop_front();
    if (!offer.landing.valid()) {
      StatusOr<Tensor> landing = AllocateLanding(*options_.allocator, offer.header);
      if (!landing.ok()) {
        failed.push_back({offer.header, landing.status()});
        offer.state = State::kRefused;
        refusals_.push_back(id);
        continue;
      }
      offer.landing = *std::move(landing);
    }
    offer.granted += bytes;
    credit_outstanding_ += static_cast<int64_t>(bytes);
    credits_.emplace_back(id, bytes);
    if (offer.granted < offer.header.size) active_.push_back(id);
  }
}

void TensorReceiver::Fill(MessageBuilder& builder) {
  for (uint64_t id : refusals_) builder.AddRefuse(id);
  for (size_t i = 0; i < credits_.size();) {
    const uint64_t id = credits_[i].first;
    uint64_t bytes = 0;
    for (; i < credits_.size() && credits_[i].first == id; ++i) bytes += credits_[i].second;
    builder.AddCredit(id, bytes);
  }
  refusals_.clear();
  credits_.clear();
  // A quarter of the window may lie here, as that holds up nobody: a small tensor takes a half at
  // most. Unless something else holds window, perhaps for long.
  const bool pressing =
      eager_unsent_ > 0 && (eager_held_ > 0 || eager_unsent_ >= options_.eager_window / 4);
  if (pressing || (eager_unsent_ > 0 && !builder.empty())) {
    builder.AddRelease(static_cast<uint64_t>(eager_unsent_));
    eager_unsent_ = 0;
  }
}

std::vector<StepId> TensorReceiver::steps() const {
  std::vector<StepId> steps;
  for (const auto& [id, offer] : offers_) {
    if (offer.state != State::kRefused) steps.emplace_back(offer.header.key);
  }
  return steps;
}

void TensorReceiver::Clear(std::vector<Tensor>& dropped) {
  for (auto& [id, offer] : offers_) dropped.push_back(std::move(offer.landing));
  offers_.clear();
  active_.clear();
  credits_.clear();
  refusals_.clear();
  eager_held_ = eager_unsent_ = credit_outstanding_ = 0;
}

}  // namespace millrace
