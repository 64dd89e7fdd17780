#ifndef CORE_BASE_DEADLINE_H_
#define CORE_BASE_DEADLINE_H_

#include <algorithm>
#include <chrono>

#include "absl/time/time.h"

namespace millrace {

// A time out that is running down, by the monotonic clock. For the few blocking calls of this
// folder; all else uses Timers.
class Deadline {
 public:
  explicit Deadline(absl::Duration timeout)
      : end_(Clock::now() +
             absl::ToChronoNanoseconds(std::clamp(timeout, absl::ZeroDuration(), kLongest))) {}

  // Never negative.
  absl::Duration left() const {
    return std::max(absl::FromChrono(end_ - Clock::now()), absl::ZeroDuration());
  }

 private:
  using Clock = std::chrono::steady_clock;
  // Stands for ever: beyond some centuries, time points overflow.
  static constexpr absl::Duration kLongest = absl::Hours(24 * 365 * 10);

  Clock::time_point end_;
};

}  // namespace millrace

#endif  // CORE_BASE_DEADLINE_H_
