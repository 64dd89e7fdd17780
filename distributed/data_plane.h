#ifndef DISTRIBUTED_DATA_PLANE_H_
#define DISTRIBUTED_DATA_PLANE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "core/base/scheduler.h"
#include "core/framework/allocator.h"
#include "distributed/frame_stream.h"
#include "distributed/transport.h"

namespace millrace {

struct StreamDataPlaneOptions {
  // What follows is not owned and outlives the data plane (and the tensors, for the allocator).
  Environment environment;                  // timers and clock
  FrameStreamFactory* streams = nullptr;    // opens links
  Allocator* allocator = &HostAllocator();  // of what is received; better a pooled one

  uint64_t incarnation = 0;   // of this task
  std::string task;           // what this task calls itself, for peers' messages; may be ""
  std::string build_version;  // told to peers, who may differ in it
  // Refused connections are tried again for so long before the link counts as down.
  absl::Duration connect_timeout = absl::Seconds(10);
  DataPlaneOptions limits;
};

// The data plane over streams of messages (gRPC's, or simulated ones): frame.h is what it speaks.
// It has no threads: work is done in the caller's, in the streams' and in the timers'. Thread-safe.
//
// Each link sends over a stream that it opens itself; what a peer sends comes over streams that the
// peer opens and a server gives to Accept. A link that went down fails the steps that use it, and
// is opened again by the first Push of a step that began later.
class StreamDataPlane : public DataPlane, public FrameStreamAcceptor {
 public:
  static std::unique_ptr<StreamDataPlane> Create(StreamDataPlaneOptions options);

  // Everything that is held at this moment, over all links and streams.
  struct Usage {
    int64_t steps = 0;               // begun, or of which something came
    int64_t queued_tensors = 0;      // to be sent: waiting or in part
    int64_t queued_bytes = 0;        // of those
    int64_t eager_used = 0;          // of peers' windows
    int64_t eager_held = 0;          // of our windows, by what came and was not taken
    int64_t eager_unsent = 0;        // of our windows: free, but the peer has not heard of it yet
    int64_t credit_outstanding = 0;  // granted to peers, not come
    int64_t offers = 0;              // of peers, not complete
    int64_t early_bytes = 0;         // of small tensors whose step has not begun
  };
  virtual Usage usage() const = 0;
};

}  // namespace millrace

#endif  // DISTRIBUTED_DATA_PLANE_H_
