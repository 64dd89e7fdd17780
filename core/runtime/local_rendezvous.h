#ifndef CORE_RUNTIME_LOCAL_RENDEZVOUS_H_
#define CORE_RUNTIME_LOCAL_RENDEZVOUS_H_

#include <memory>
#include <vector>

#include "core/base/mutex.h"
#include "core/framework/exchange.h"

namespace millrace {

// The table of one step's channels within one process: a slot a channel, no hashing.
class LocalRendezvous final : public Rendezvous {
 public:
  explicit LocalRendezvous(uint32_t num_channels);
  ~LocalRendezvous() override;  // aborts what still waits

  Status Send(ChannelId channel, Tensor tensor) override;
  void RecvAsync(ChannelId channel, RecvDone done) override;
  void Abort(const Status& reason) override;

 private:
  struct Slot;
  std::vector<std::unique_ptr<Slot>> slots_;
  Mutex mutex_;
  Status aborted_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace millrace

#endif  // CORE_RUNTIME_LOCAL_RENDEZVOUS_H_
