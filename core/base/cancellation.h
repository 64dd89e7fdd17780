#ifndef CORE_BASE_CANCELLATION_H_
#define CORE_BASE_CANCELLATION_H_

#include <cstdint>
#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"

namespace millrace {

// Tells one piece of work (a step, a call) to stop, with the reason. Copies share one state.
// Thread-safe. The first Cancel wins; later ones do nothing.
class Cancellation {
 public:
  using Callback = absl::AnyInvocable<void(const absl::Status& reason)>;
  using Id = uint64_t;  // never 0

  Cancellation();

  // REQUIRES: !reason.ok(). Runs the callbacks in this call, each once, with no lock held.
  // True if this call was the first.
  bool Cancel(absl::Status reason);
  bool cancelled() const;
  // OK while not cancelled.
  absl::Status reason() const;

  // Registers `callback`; runs it now, in this call, if already cancelled (and returns 0).
  Id OnCancel(Callback callback);
  // After it returns, the callback has run to its end or never will. No effect for 0 or an unknown
  // id. May be called from within the callback itself (returns at once then).
  void Remove(Id id);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace millrace

#endif  // CORE_BASE_CANCELLATION_H_
