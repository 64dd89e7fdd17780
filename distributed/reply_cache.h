#ifndef DISTRIBUTED_REPLY_CACHE_H_
#define DISTRIBUTED_REPLY_CACHE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "core/base/cancellation.h"
#include "core/base/mutex.h"
#include "distributed/step_outcome.h"

namespace millrace {

struct ReplyCacheLimits {
  int replies = 64;               // kept whole
  int64_t bytes = 64 << 20;       // of those
  int64_t reply_bytes = 8 << 20;  // a larger one is not kept
  int outcomes = 16384;           // of which at least the status is remembered
};

// Makes each request of a session take effect at most once: a repeat joins the one that runs, or
// gets the reply that is kept. Made by std::make_shared. Thread-safe.
class ReplyCache : public std::enable_shared_from_this<ReplyCache> {
 public:
  using Answer = absl::AnyInvocable<void(StepOutcome)>;
  // Which of the calls it came by, and the client's id.
  using Key = std::pair<int, uint64_t>;

  explicit ReplyCache(ReplyCacheLimits limits) : limits_(limits) {}

  // A key that no client uses, for requests without an id. They are not kept.
  Key PrivateKey();

  // `answer` will run once, perhaps in this call, with the outcome of the request. If it gives a
  // value, the caller has the work to do: it calls Finish when done, and ends early when what was
  // returned is cancelled, as it is when the calls of all that wait for the request have ended.
  // `call`: of the caller, may be null; not used after `answer` has run.
  std::optional<Cancellation> Join(Key key, Cancellation* call, Answer answer);
  void Finish(Key key, StepOutcome outcome);

  // Cancels what runs.
  void CancelAll(const Status& reason);

  int kept_replies() const;
  int running() const;

 private:
  static constexpr int kPrivate = -1;
  struct Caller {
    Answer answer;
    Cancellation* call = nullptr;
    Cancellation::Id id = 0;
  };
  struct Entry {
    bool running = true;
    Cancellation stop;
    std::vector<std::shared_ptr<Caller>> callers;
    std::shared_ptr<const StepOutcome> kept;  // null: running, or dropped
    int64_t bytes = 0;
    Status status;  // of the outcome
    uint64_t step = 0;
  };

  void OnCallerGone(Key key, const Caller* caller);
  void Keep(Key key, Entry& entry, std::shared_ptr<const StepOutcome> outcome)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropKept(Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static StepOutcome OutcomeOf(const Entry& entry);

  const ReplyCacheLimits limits_;
  mutable Mutex mutex_;
  std::map<Key, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  std::deque<Key> kept_ ABSL_GUARDED_BY(mutex_);   // with their reply, oldest first
  std::deque<Key> ended_ ABSL_GUARDED_BY(mutex_);  // all that ended, oldest first
  int64_t kept_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t last_private_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace millrace

#endif  // DISTRIBUTED_REPLY_CACHE_H_
