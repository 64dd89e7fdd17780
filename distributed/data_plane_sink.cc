#include "distributed/data_plane_sink.h"

#include <utility>

namespace millrace {
namespace {

// The calls that this thread is in, innermost first.
struct Frame {
  const SinkGate* gate;
  const Frame* outer;
};
thread_local const Frame* innermost = nullptr;

}  // namespace

// One call to the sink, from its admission to its end. Holds no lock.
class SinkGate::Call {
 public:
  Call(SinkGate& gate, bool link_down) : gate_(gate), frame_{&gate, innermost} {
    MutexLock lock(gate_.mutex_);
    if (link_down && std::exchange(gate_.told_down_, true)) return;
    sink_ = gate_.sink_;
    if (sink_ == nullptr) return;
    ++gate_.calls_;
    innermost = &frame_;
  }
  ~Call() {
    if (sink_ == nullptr) return;
    innermost = frame_.outer;
    MutexLock lock(gate_.mutex_);
    --gate_.calls_;
    gate_.call_ended_.NotifyAll();
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  TensorSink* sink() const { return sink_; }  // null: not admitted

 private:
  SinkGate& gate_;
  const Frame frame_;
  TensorSink* sink_ = nullptr;
};

void SinkGate::Deliver(const MessageKey& key, Tensor tensor, int64_t wire_bytes) {
  const Call call(*this, /*link_down=*/false);
  if (call.sink() != nullptr) call.sink()->OnTensor(key, std::move(tensor), wire_bytes);
}

void SinkGate::TellDown(const Status& reason) {
  const Call call(*this, /*link_down=*/true);
  if (call.sink() != nullptr) call.sink()->OnLinkDown(reason);
}

void SinkGate::Close() {
  int own = 0;
  for (const Frame* frame = innermost; frame != nullptr; frame = frame->outer) {
    if (frame->gate == this) ++own;
  }
  MutexLock lock(mutex_);
  sink_ = nullptr;
  while (calls_ > own) call_ended_.Wait(mutex_);
}

}  // namespace millrace
