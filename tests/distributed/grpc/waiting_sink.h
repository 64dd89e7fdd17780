#ifndef TESTS_DISTRIBUTED_GRPC_WAITING_SINK_H_
#define TESTS_DISTRIBUTED_GRPC_WAITING_SINK_H_

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "distributed/transport.h"

namespace millrace {

// Keeps what a step gets, for a test's thread that waits for it.
class WaitingSink : public TensorSink {
 public:
  void OnTensor(const MessageKey& key, Tensor tensor, int64_t /*wire_bytes*/) override {
    MutexLock lock(mutex_);
    tensors_[key.channel] = std::move(tensor);
    changed_.NotifyAll();
  }
  void OnLinkDown(const Status& reason) override {
    MutexLock lock(mutex_);
    downs_.push_back(reason);
    changed_.NotifyAll();
  }

  // False after a minute.
  bool WaitForTensors(size_t count) {
    return WaitFor([&]()
                       ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return tensors_.size() >= count; });
  }
  bool WaitForDown() {
    return WaitFor([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !downs_.empty(); });
  }
  std::map<uint32_t, Tensor> TakeTensors() {
    MutexLock lock(mutex_);
    return std::exchange(tensors_, {});
  }
  std::vector<Status> downs() {
    MutexLock lock(mutex_);
    return downs_;
  }

 private:
  bool WaitFor(const std::function<bool()>& holds) {
    MutexLock lock(mutex_);
    for (int seconds = 0; !holds(); ++seconds) {
      if (seconds == 60) return false;
      // Woken early by each change; so this counts no less than seconds of silence.
      if (changed_.WaitFor(mutex_, absl::Seconds(1))) --seconds;
    }
    return true;
  }

  Mutex mutex_;
  CondVar changed_;
  std::map<uint32_t, Tensor> tensors_ ABSL_GUARDED_BY(mutex_);  // by channel
  std::vector<Status> downs_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace millrace

#endif  // TESTS_DISTRIBUTED_GRPC_WAITING_SINK_H_
