#ifndef DISTRIBUTED_DATA_PLANE_CORE_H_
#define DISTRIBUTED_DATA_PLANE_CORE_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/base/mutex.h"
#include "distributed/data_plane.h"
#include "distributed/data_plane_receiver.h"
#include "distributed/data_plane_sender.h"
#include "distributed/data_plane_steps.h"

namespace millrace {

// All state of a data plane, under one lock. Streams and timers may outlive the plane itself; they
// share this, and find it shut down then.
class DataPlaneCore : public std::enable_shared_from_this<DataPlaneCore> {
 public:
  explicit DataPlaneCore(StreamDataPlaneOptions options);

  // What StreamDataPlane does.
  LinkId AddLink(const std::string& task, const std::string& address, uint64_t incarnation);
  void Push(LinkId link, const MessageKey& key, Tensor tensor);
  Status BeginStep(const StepId& step, TensorSink* sink, std::vector<LinkId> links);
  void EndStep(const StepId& step);
  void EndSession(uint64_t session);
  std::vector<LinkCounters> Counters() const;
  StreamDataPlane::Usage usage() const;
  std::shared_ptr<FrameStream::Handler> Accept(std::shared_ptr<FrameStream> stream);
  // Closes all streams; after it returns no sink is called and the environment is not used.
  void Shutdown();

 private:
  class Turn;
  class OutboundHandler;
  class InboundHandler;

  // A stream that we open, and what goes over it. Tries are numbered: what a stream of an earlier
  // try, or its timer, has to say is not heard any more.
  struct Link {
    enum class State { kIdle, kConnecting, kOpen };
    Link(LinkId id, const StreamDataPlaneOptions& options)
        : id(id), sender(options.limits.small_tensor_bytes, options.limits.chunk_bytes) {}

    const LinkId id;
    std::string task;
    std::string address;
    uint64_t incarnation = 0;
    TensorSender sender;
    State state = State::kIdle;
    uint64_t attempt = 0;     // which state != kIdle came from
    Timers::Id timeout = 0;   // of this attempt, while it connects
    uint64_t generation = 0;  // of the stream
    std::shared_ptr<FrameStream> stream;
    bool hello_sent = false;
    bool writing = false;
    int tries = 0;              // of this attempt
    Status last_error;          // of this attempt
    uint64_t down_ordinal = 0;  // steps up to this one were told that the link is down
    LinkCounters counters;      // of the sender: wire bytes only; received: of streams that ended
  };
  // A stream that a peer opened.
  struct Inbound {
    Inbound(uint64_t id, std::shared_ptr<FrameStream> stream,
            const TensorReceiver::Options& options)
        : id(id), stream(std::move(stream)), receiver(options) {}

    const uint64_t id;
    const std::shared_ptr<FrameStream> stream;
    TensorReceiver receiver;
    bool closed = false;  // what still comes is not heard
    bool greeted = false;
    bool hello_due = false;
    bool writing = false;
    Hello peer;
    uint64_t opened_at_ordinal = 0;  // steps up to this one began before it opened
    LinkCounters counters;           // what was received
  };

  // Sending: data_plane_outbound.cc.
  void BeginAttempt(Link& link, Turn& turn) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Connect(LinkId link, uint64_t generation) ABSL_LOCKS_EXCLUDED(mutex_);
  void Retry(LinkId link, uint64_t attempt) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnConnectTimeout(LinkId link, uint64_t attempt) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnOutboundClosed(LinkId link, uint64_t generation, const Status& status)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void LinkDown(Link& link, const Status& reason, Turn& turn) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Pump(Link& link, Turn& turn) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The link if its stream is still that one, else null.
  Link* Current(LinkId link, uint64_t generation) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Hello OwnHello(uint64_t expected_incarnation) const;

  // Receiving: data_plane_inbound.cc.
  static void AddInbound(const LinkCounters& counters, LinkCounters& sum);
  void CloseInbound(uint64_t id, const Status& reason) ABSL_LOCKS_EXCLUDED(mutex_);
  void Pump(Inbound& inbound, Turn& turn) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GrantAndPump(Inbound& inbound, Turn& turn) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Deliver(StepRecord& record, const MessageKey& key, Tensor tensor, Turn& turn)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The step cannot complete: tells its sink, or whoever begins it.
  void FailStep(const StepId& step, const Status& reason, Turn& turn)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives up what waits for a step that has not begun.
  void DropWaiting(const StepId& step, StepRecord& record, Turn& turn)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A step has ended: what is queued for it in both directions goes.
  void DropStep(const StepId& step, std::unique_ptr<StepRecord> record, Turn& turn)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReleaseEarly(StepRecord& record, Turn& turn) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StopTimeout(Link& link) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ArmExpiry(absl::Duration delay) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Duration UnknownStepLimit() const;
  void ExpireUnknownSteps() ABSL_LOCKS_EXCLUDED(mutex_);
  std::string PeerName(const Inbound& inbound) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Link* LinkTo(uint64_t incarnation) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const StreamDataPlaneOptions options_;

  mutable Mutex mutex_;
  bool shut_down_ ABSL_GUARDED_BY(mutex_) = false;
  int connecting_ ABSL_GUARDED_BY(mutex_) = 0;  // calls of the factory in progress
  CondVar connect_ended_;
  std::vector<std::unique_ptr<Link>> links_ ABSL_GUARDED_BY(mutex_);  // by id
  // The first link to each incarnation of a task.
  absl::flat_hash_map<uint64_t, Link*> link_to_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, std::shared_ptr<Inbound>> inbounds_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_inbound_ ABSL_GUARDED_BY(mutex_) = 0;
  StepTable steps_ ABSL_GUARDED_BY(mutex_);
  Timers::Id expiry_ ABSL_GUARDED_BY(mutex_) = 0;  // 0: not armed
};

// Holds the lock of a core while it lives; what must happen without that lock is noted meanwhile
// and done when the turn ends.
class ABSL_SCOPED_LOCKABLE DataPlaneCore::Turn {
 public:
  explicit Turn(DataPlaneCore& core) ABSL_EXCLUSIVE_LOCK_FUNCTION(core.mutex_);
  ~Turn() ABSL_UNLOCK_FUNCTION();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  // For `dropped` parameters.
  std::vector<Tensor> dropped;

  void Deliver(std::shared_ptr<SinkGate> gate, const MessageKey& key, Tensor tensor,
               int64_t wire_bytes);
  void TellDown(std::shared_ptr<SinkGate> gate, const Status& reason);
  void CloseGate(std::shared_ptr<SinkGate> gate);
  void Write(std::shared_ptr<FrameStream> stream, Message message);
  void Close(std::shared_ptr<FrameStream> stream, const Status& reason);
  void Connect(LinkId link, uint64_t generation);

 private:
  struct Delivery {
    std::shared_ptr<SinkGate> gate;
    MessageKey key;
    Tensor tensor;
    int64_t wire_bytes;
  };

  DataPlaneCore& core_;
  std::vector<Delivery> deliveries_;
  std::vector<std::pair<std::shared_ptr<SinkGate>, Status>> downs_;
  std::vector<std::shared_ptr<SinkGate>> gates_;
  std::vector<std::pair<std::shared_ptr<FrameStream>, Message>> writes_;
  std::vector<std::pair<std::shared_ptr<FrameStream>, Status>> closes_;
  std::vector<std::pair<LinkId, uint64_t>> connects_;
};

}  // namespace millrace

#endif  // DISTRIBUTED_DATA_PLANE_CORE_H_
