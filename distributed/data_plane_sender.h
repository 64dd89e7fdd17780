#ifndef DISTRIBUTED_DATA_PLANE_SENDER_H_
#define DISTRIBUTED_DATA_PLANE_SENDER_H_

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "core/base/status.h"
#include "core/framework/tensor.h"
#include "distributed/data_plane_steps.h"
#include "distributed/frame.h"

namespace millrace {

// What one task has yet to send to another, and in which order it goes. No thread, no stream: the
// data plane holds its lock around every call and writes what Fill puts together. What is dropped
// is given back in `dropped`, to end outside that lock.
//
// Small tensors and offers go in the order of Push, within the peer's eager window. Chunks of the
// offered ones go in turn, within the credit of each. Messages with the first alternate with those
// that hold one chunk, so a small tensor waits for one chunk at most.
class TensorSender {
 public:
  TensorSender(int64_t small_tensor_bytes, int64_t chunk_bytes)
      : small_tensor_bytes_(small_tensor_bytes), chunk_bytes_(chunk_bytes) {}

  // A new stream: everything of the peer's window is free. Nothing is filled in before.
  Status Open(int64_t eager_window);

  void Push(const MessageKey& key, Tensor tensor);
  // True if there was something of the step.
  bool DropStep(const StepId& step, std::vector<Tensor>& dropped);
  // The stream is gone, and with it all that was to go over it.
  void Clear(std::vector<Tensor>& dropped);

  Status OnCredit(uint64_t offer, uint64_t bytes);
  Status OnRelease(uint64_t bytes);
  void OnRefuse(uint64_t offer, std::vector<Tensor>& dropped);

  // Adds the next message's frames; none if there is nothing that may go now.
  void Fill(MessageBuilder& builder);

  int64_t tensors_sent() const { return tensors_sent_; }
  int64_t payload_bytes_sent() const { return payload_bytes_sent_; }
  int64_t eager_used() const { return eager_used_; }
  int64_t queued_tensors() const { return static_cast<int64_t>(waiting_.size() + offers_.size()); }
  int64_t queued_bytes() const;

 private:
  struct Waiting {
    TensorHeader header;
    Tensor tensor;
  };
  struct Offer {
    TensorHeader header;
    Tensor tensor;
    uint64_t granted = 0;
    uint64_t sent = 0;
  };

  bool FillAnnouncements(MessageBuilder& builder);
  void FillChunk(MessageBuilder& builder);

  const int64_t small_tensor_bytes_;
  const int64_t chunk_bytes_;

  int64_t eager_window_ = 0;  // 0: not open
  int64_t eager_used_ = 0;
  uint64_t next_offer_ = 1;  // goes on over streams, so that no late frame can hit another offer
  bool chunk_is_next_ = false;
  std::deque<Waiting> waiting_;
  std::map<uint64_t, Offer> offers_;  // announced, not sent in full
  std::deque<uint64_t> ready_;        // with credit left; may name offers that are gone
  std::vector<uint64_t> ends_;

  int64_t tensors_sent_ = 0;
  int64_t payload_bytes_sent_ = 0;
};

}  // namespace millrace

#endif  // DISTRIBUTED_DATA_PLANE_SENDER_H_
