#ifndef DISTRIBUTED_TRANSPORT_H_
#define DISTRIBUTED_TRANSPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/framework/tensor.h"

// The data plane: how tensors go from task to task. No protobuf around tensor bytes. The producer
// pushes when the tensor exists: a small one within the peer's eager window, several to a frame; a
// large one announces itself and goes chunk by chunk against credit, which the receiver gives once
// the step is known and memory is there. So memory on both sides is bounded, and nothing queued
// behind a large tensor waits for it.
namespace millrace {

// Which tensor of which step. Steps rise within a session; `frame` is the call frame of a function
// body (0 outside).
struct MessageKey {
  uint64_t session = 0;  // the session's incarnation: random, never reused
  uint64_t step = 0;
  uint32_t frame = 0;
  uint32_t channel = 0;
};

// What one step receives. Calls come from the transport's threads, never after EndStep returned.
class TensorSink {
 public:
  virtual ~TensorSink() = default;
  // `wire_bytes`: of the frames that carried it, headers and payload.
  virtual void OnTensor(const MessageKey& key, Tensor tensor, int64_t wire_bytes) = 0;
  // The link to a task that this step uses is gone (named in the status); the step cannot complete.
  virtual void OnLinkDown(const Status& reason) = 0;
};

using LinkId = int32_t;

struct LinkCounters {
  std::string peer;  // "/job:worker/task:1"
  int64_t tensors_sent = 0;
  int64_t payload_bytes_sent = 0;
  int64_t wire_bytes_sent = 0;  // with headers
  int64_t tensors_received = 0;
  int64_t payload_bytes_received = 0;
  int64_t wire_bytes_received = 0;
  int64_t buffered_bytes = 0;  // received, not yet taken by a step; bounded by the eager window
};

struct DataPlaneOptions {
  int64_t small_tensor_bytes = 64 << 10;  // at most: pushed without credit
  int64_t eager_window_bytes = 4 << 20;  // of small tensors that the receiver has not taken, a link
  int64_t chunk_bytes = 1 << 20;         // of a large tensor's frames
  int64_t credit_window_bytes = 8 << 20;  // of large tensors in flight, a link
  int64_t unknown_step_seconds = 60;      // how long frames of an unknown step are kept
};

// Thread-safe. One per task.
class DataPlane {
 public:
  virtual ~DataPlane() = default;

  // A link to the task at `address`, connected when first used; the same for equal arguments.
  // `incarnation` is the peer's: a stream to another one is refused with Aborted.
  virtual LinkId Link(const std::string& task, const std::string& address,
                      uint64_t incarnation) = 0;

  // Sends; never blocks. The tensor is held, unchanged, until it is sent or its step ends. Failures
  // reach the sinks of the link's steps. Each key at most once.
  virtual void Push(LinkId link, const MessageKey& key, Tensor tensor) = 0;

  // From now on tensors of the step are delivered to `sink`, those that came early at once, and
  // large ones get credit. `links`: what the step sends to or receives from.
  virtual Status BeginStep(uint64_t session, uint64_t step, TensorSink* sink,
                           std::vector<LinkId> links) = 0;
  // Drops what is queued for the step in both directions. Later frames of it are dropped by
  // watermark. Once it returns the sink is not called any more.
  virtual void EndStep(uint64_t session, uint64_t step) = 0;
  // Ends every step of the session, and forgets it.
  virtual void EndSession(uint64_t session) = 0;

  virtual std::vector<LinkCounters> Counters() const = 0;
};

}  // namespace millrace

#endif  // DISTRIBUTED_TRANSPORT_H_
