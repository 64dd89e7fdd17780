#ifndef CORE_RUNTIME_LOCAL_RENDEZVOUS_H_
#define CORE_RUNTIME_LOCAL_RENDEZVOUS_H_

#include <atomic>
#include <memory>

#include "core/base/mutex.h"
#include "core/framework/exchange.h"

namespace millrace {

// The table of one step's channels within one process: a slot with a lock of its own a channel, no
// hashing. `done` of a Recv runs in the Send (or Abort) that ends it, with no lock held.
class LocalRendezvous final : public Rendezvous {
 public:
  explicit LocalRendezvous(uint32_t num_channels);
  ~LocalRendezvous() override;  // aborts what still waits

  Status Send(ChannelId channel, Tensor tensor) override;
  void RecvAsync(ChannelId channel, RecvDone done) override;
  void Abort(const Status& reason) override;

 private:
  struct Slot;
  std::unique_ptr<Slot[]> slots_;
  const uint32_t num_channels_;
  Mutex mutex_;
  Status aborted_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> is_aborted_{false};  // set after `aborted_`, before slots are drained
};

}  // namespace millrace

#endif  // CORE_RUNTIME_LOCAL_RENDEZVOUS_H_
