#ifndef DISTRIBUTED_FRAME_STREAM_H_
#define DISTRIBUTED_FRAME_STREAM_H_

#include <memory>
#include <string>

#include "absl/types/span.h"
#include "core/base/status.h"
#include "distributed/frame.h"

namespace millrace {

// One end of a connection that carries messages both ways, whole and in order, or breaks. All that
// the data plane knows of gRPC (or of a simulated network). Thread-safe; nothing blocks.
class FrameStream {
 public:
  // Hears of one stream. Calls may come from within Write and Close, so no lock may be held there.
  class Handler {
   public:
    virtual ~Handler() = default;
    // One at a time. The pieces, end to end, are one message; they are good during the call.
    virtual void OnMessage(absl::Span<const absl::string_view> pieces) = 0;
    // The last Write is done: another may come, and its bytes are no longer needed.
    virtual void OnWritten() = 0;
    // The stream has ended, here or there. Exactly once, and the last call; never overlaps another.
    // The opener gets the status that the other side closed with; else Unavailable.
    virtual void OnClosed(const Status& status) = 0;
  };

  virtual ~FrameStream() = default;
  // REQUIRES: none is being written. Dropped if the stream has ended.
  virtual void Write(Message message) = 0;
  // Ends the stream; OnClosed follows. The accepting side's reason reaches the opener.
  virtual void Close(const Status& reason) = 0;
};

class FrameStreamFactory {
 public:
  virtual ~FrameStreamFactory() = default;
  // Opens a stream to whoever listens at `address`, one try; writes may begin at once. The handler
  // is kept until its OnClosed, which tells, too, that nobody listens.
  virtual std::shared_ptr<FrameStream> Connect(const std::string& address,
                                               std::shared_ptr<FrameStream::Handler> handler) = 0;
};

// Who takes the streams that peers open. Thread-safe.
class FrameStreamAcceptor {
 public:
  virtual ~FrameStreamAcceptor() = default;
  // Returns the handler, to be kept until its OnClosed.
  virtual std::shared_ptr<FrameStream::Handler> Accept(std::shared_ptr<FrameStream> stream) = 0;
};

}  // namespace millrace

#endif  // DISTRIBUTED_FRAME_STREAM_H_
