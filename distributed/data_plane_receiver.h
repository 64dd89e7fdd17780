#ifndef DISTRIBUTED_DATA_PLANE_RECEIVER_H_
#define DISTRIBUTED_DATA_PLANE_RECEIVER_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/framework/allocator.h"
#include "core/framework/tensor.h"
#include "distributed/data_plane_steps.h"
#include "distributed/frame.h"

namespace millrace {

// Memory for the bytes of a tensor that is on its way. Strings, which can only be checked when all
// bytes are there, land in a tensor of bytes that they adopt then.
StatusOr<Tensor> AllocateLanding(Allocator& allocator, const TensorHeader& header);
// The tensor that has landed; InvalidArgument if the bytes are not what the header says.
StatusOr<Tensor> FinishLanding(const TensorHeader& header, Tensor landing);

// What one peer may send over one stream, and what has come of its large tensors. No thread, no
// stream: the data plane holds its lock around every call, except that it copies a chunk between
// Land and Landed without it. An error means that the peer breaks the rules.
//
// The peer may have `eager_window` bytes of small tensors and offers outstanding, and of large ones
// what was granted: at most `credit_window` bytes in all that have not come.
class TensorReceiver {
 public:
  struct Options {
    int64_t eager_window = 0;
    int64_t credit_window = 0;
    int64_t chunk = 0;  // granted at once; at most the credit window
    Allocator* allocator = nullptr;
  };
  struct Arrived {
    TensorHeader header;
    Tensor tensor;
    int64_t wire_bytes = 0;  // of its offer and its chunks
  };
  struct Failed {
    TensorHeader header;
    Status status;
  };

  explicit TensorReceiver(const Options& options) : options_(options) {}

  // A small tensor, or an offer, of that cost came; then it was taken or dropped.
  Status Charge(int64_t cost);
  void Release(int64_t cost);

  // An offer came (and was charged). It waits without memory until its step begins.
  Status AddOffer(const TensorHeader& header, uint64_t offer, bool step_has_begun);
  // An offer came (and was charged) that nobody wants.
  Status AddRefused(const TensorHeader& header, uint64_t offer);
  void BeginStep(const StepId& step);
  // True if there were offers of the step. They are refused, their memory given back in `dropped`.
  bool DropStep(const StepId& step, std::vector<Tensor>& dropped);

  // Where the chunk's bytes go: a tensor that shares the memory, or an invalid one if they are no
  // longer wanted.
  StatusOr<Tensor> Land(uint64_t offer, uint64_t offset, uint64_t size);
  // They are there. The tensor if it is whole now.
  StatusOr<std::optional<Arrived>> Landed(uint64_t offer, uint64_t size,
                                          std::vector<Tensor>& dropped);
  // The sender gives the offer up. Its step if that has not begun.
  StatusOr<std::optional<StepId>> End(uint64_t offer, std::vector<Tensor>& dropped);

  // Grants what the window allows, in turn. Offers for which there is no memory are refused and
  // told in `failed`.
  void Grant(std::vector<Failed>& failed);

  // Adds windows and refusals that the peer should hear of now.
  void Fill(MessageBuilder& builder);

  // The steps of all offers that are not refused.
  std::vector<StepId> steps() const;
  void Clear(std::vector<Tensor>& dropped);

  int64_t eager_held() const { return eager_held_; }
  int64_t eager_unsent() const { return eager_unsent_; }
  int64_t credit_outstanding() const { return credit_outstanding_; }
  int64_t offers() const { return static_cast<int64_t>(offers_.size()); }

 private:
  enum class State { kWaiting, kActive, kRefused };
  struct Offer {
    TensorHeader header;
    State state = State::kWaiting;
    Tensor landing;  // valid once something was granted
    uint64_t granted = 0;
    uint64_t received = 0;
    int64_t wire_bytes = 0;  // of all frames so far
  };
  using Offers = std::map<uint64_t, Offer>;

  Status Add(const TensorHeader& header, uint64_t offer, State state);
  void Refuse(uint64_t id, Offer& offer, std::vector<Tensor>& dropped);
  void Erase(Offers::iterator offer);

  const Options options_;
  int64_t eager_held_ = 0;          // charged, not released
  int64_t eager_unsent_ = 0;        // released, of which the peer has not heard
  int64_t credit_outstanding_ = 0;  // granted, not received
  uint64_t last_offer_ = 0;
  Offers offers_;
  std::deque<uint64_t> active_;  // that want more credit; may name offers that are gone
  std::vector<std::pair<uint64_t, uint64_t>> credits_;  // offer, bytes; not yet told
  std::vector<uint64_t> refusals_;                      // not yet told
};

}  // namespace millrace

#endif  // DISTRIBUTED_DATA_PLANE_RECEIVER_H_
