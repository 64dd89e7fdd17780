#ifndef DISTRIBUTED_DATA_PLANE_STEPS_H_
#define DISTRIBUTED_DATA_PLANE_STEPS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "core/base/status.h"
#include "core/framework/tensor.h"
#include "distributed/data_plane_sink.h"
#include "distributed/transport.h"

namespace millrace {

struct StepId {
  uint64_t session = 0;
  uint64_t step = 0;

  StepId() = default;
  StepId(uint64_t session, uint64_t step) : session(session), step(step) {}
  explicit StepId(const MessageKey& key) : session(key.session), step(key.step) {}
  friend auto operator<=>(const StepId&, const StepId&) = default;
};

// A step that has begun here, or of which something came before it began.
struct StepRecord {
  // Came before the step began; holds window of the stream that it came over.
  struct Early {
    MessageKey key;
    Tensor tensor;
    uint64_t stream = 0;
    int64_t cost = 0;
    int64_t wire_bytes = 0;
  };

  std::shared_ptr<SinkGate> gate;  // null: not begun
  uint64_t ordinal = 0;            // how-manieth step that began; 0: not begun
  std::vector<LinkId> links;
  absl::flat_hash_set<uint64_t> seen;  // (frame, channel) of all that came, against repeats
  std::vector<Early> early;
  int64_t waiting_offers = 0;  // that came before the step began
  int64_t first_seen_nanos = 0;
  // Not OK: something of it was dropped before it began, so that it cannot complete.
  Status lost;

  bool begun() const { return gate != nullptr; }
  // Whether it stands for nothing: no sink, nothing that waits, nothing to remember.
  bool idle() const { return !begun() && early.empty() && waiting_offers == 0 && lost.ok(); }
  // False if the key came before.
  bool See(const MessageKey& key) {
    return seen.insert(uint64_t{key.frame} << 32 | key.channel).second;
  }
  bool Uses(LinkId link) const;
};

// All steps that this task knows of, and which have ended. Not thread-safe.
//
// Ended steps of a session are those below a floor and some above it. A gap in the steps (they may
// run on other tasks only) keeps the floor down until there are too many above it; then it rises
// over the gap, and a step in the gap counts as ended unless it is known.
class StepTable {
 public:
  bool Ended(const StepId& id) const;
  // Null if unknown.
  StepRecord* Find(const StepId& id);
  // REQUIRES: !Ended(id).
  StepRecord& FindOrAdd(const StepId& id, int64_t now_nanos);
  // The record, now begun, with what came early still in it. Errors: it has begun or ended before.
  StatusOr<StepRecord*> Begin(const StepId& id, TensorSink* sink, std::vector<LinkId> links);
  // Marks it as ended; gives back its record if it was known.
  std::unique_ptr<StepRecord> End(const StepId& id);
  // Ends all steps of the session, and refuses it from now on.
  std::vector<std::pair<StepId, std::unique_ptr<StepRecord>>> EndSession(uint64_t session);
  // Drops the record of a step if it is idle.
  void ForgetIfIdle(const StepId& id);
  // A step that has not begun lost something: this is kept until it begins, ends, or too many have.
  void MarkLost(const StepId& id, const Status& reason);

  void ForEach(absl::FunctionRef<void(const StepId&, StepRecord&)> visit);
  void ForEach(absl::FunctionRef<void(const StepId&, const StepRecord&)> visit) const;
  uint64_t last_ordinal() const { return last_ordinal_; }
  // Of steps now known.
  int64_t size() const;

 private:
  struct Session {
    uint64_t floor = 0;        // steps below have ended, unless known
    std::set<uint64_t> ended;  // not below the floor
    std::map<uint64_t, std::unique_ptr<StepRecord>> steps;
  };

  void Forget(const StepId& id);

  absl::flat_hash_map<uint64_t, Session> sessions_;
  absl::flat_hash_set<uint64_t> ended_sessions_;
  std::deque<uint64_t> ended_order_;  // oldest first
  std::deque<StepId> lost_;           // oldest first; may name steps that are gone
  uint64_t last_ordinal_ = 0;
};

}  // namespace millrace

#endif  // DISTRIBUTED_DATA_PLANE_STEPS_H_
