#ifndef DISTRIBUTED_STEP_RENDEZVOUS_H_
#define DISTRIBUTED_STEP_RENDEZVOUS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/cancellation.h"
#include "core/base/mutex.h"
#include "core/framework/exchange.h"
#include "distributed/transport.h"

namespace millrace {

// The channels of a plan that start or end in this task, and where they lead. Made when the plan is
// registered, then only read by its steps.
class ChannelTable {
 public:
  // More would be a peer's mistake; the table is an array by channel.
  static constexpr ChannelId kMaxChannels = 1 << 22;
  static constexpr LinkId kHere = -1;

  // `to`: kHere, or the link of the task to which the channel leads. InvalidArgument for a channel
  // that is there or too large.
  Status AddOutgoing(ChannelId channel, LinkId to);
  // `from`: the link to the task where the channel starts.
  Status AddIncoming(ChannelId channel, LinkId from);

  // Where what is sent goes; null if the channel does not start here.
  const LinkId* Destination(ChannelId channel) const;
  // Its slot in a step's table; -1 if the channel does not end here.
  int Slot(ChannelId channel) const;
  int num_slots() const { return num_slots_; }
  // All tasks that a step exchanges tensors with, each once.
  const std::vector<LinkId>& links() const { return links_; }

 private:
  struct Entry {
    bool used = false;
    bool outgoing = false;
    LinkId link = kHere;
    int slot = -1;
  };
  StatusOr<Entry*> Add(ChannelId channel);
  void AddLink(LinkId link);

  std::vector<Entry> entries_;  // by channel
  std::vector<LinkId> links_;
  int num_slots_ = 0;
};

// Passes the tensors of one step between the devices of this task and to and from other tasks.
// Thread-safe.
class StepRendezvous final : public Rendezvous, public TensorSink {
 public:
  struct Received {
    ChannelId channel = 0;
    int64_t payload_bytes = 0;
    int64_t wire_bytes = 0;  // with frame headers
  };

  // All outlive the rendezvous; `data_plane` may be null if the table has no links. A lost link
  // cancels `cancellation`, if the step still waits for something.
  StepRendezvous(const ChannelTable& channels, uint64_t session, uint64_t step,
                 DataPlane* data_plane, Cancellation& cancellation);
  ~StepRendezvous() override;  // aborts what still waits

  Status Send(ChannelId channel, Tensor tensor) override;
  void RecvAsync(ChannelId channel, RecvDone done) override;
  void Abort(const Status& reason) override;

  void OnTensor(const MessageKey& key, Tensor tensor, int64_t wire_bytes) override;
  void OnLinkDown(const Status& reason) override;

  // OK while not aborted.
  Status abort_reason() const;
  // Whether all that comes from other tasks or devices is here: nothing is waited for any more.
  bool HasAllTensors() const;
  // What came from other tasks so far, as the transport counted it.
  std::vector<Received> TakeReceived();

 private:
  struct Slot {
    bool filled = false;  // the tensor came (and may have been taken)
    bool asked = false;   // RecvAsync was called
    Tensor tensor;
    RecvDone waiting;
  };

  // The tensor goes to its receiver, or waits for it. False if one came before, or after an abort.
  bool Deliver(int slot, Tensor tensor);

  const ChannelTable& channels_;
  const uint64_t session_;
  const uint64_t step_;
  DataPlane* const data_plane_;
  Cancellation& cancellation_;

  mutable Mutex mutex_;
  Status aborted_ ABSL_GUARDED_BY(mutex_);
  std::vector<Slot> slots_ ABSL_GUARDED_BY(mutex_);
  int missing_ ABSL_GUARDED_BY(mutex_);  // slots not filled
  std::vector<Received> received_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace millrace

#endif  // DISTRIBUTED_STEP_RENDEZVOUS_H_
