#ifndef DISTRIBUTED_DATA_PLANE_SINK_H_
#define DISTRIBUTED_DATA_PLANE_SINK_H_

#include "core/base/mutex.h"
#include "distributed/transport.h"

namespace millrace {

// Lets calls through to a step's sink until it is closed. Thread-safe.
class SinkGate {
 public:
  explicit SinkGate(TensorSink* sink) : sink_(sink) {}

  // Nothing happens once closed.
  void Deliver(const MessageKey& key, Tensor tensor, int64_t wire_bytes);
  // The first time only.
  void TellDown(const Status& reason);

  // After it returns no call is in progress, except those from within which it was itself called.
  void Close();

 private:
  class Call;

  Mutex mutex_;
  CondVar call_ended_;
  TensorSink* sink_ ABSL_GUARDED_BY(mutex_);  // null: closed
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
  bool told_down_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace millrace

#endif  // DISTRIBUTED_DATA_PLANE_SINK_H_
