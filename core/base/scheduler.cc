#include "core/base/scheduler.h"

#include <algorithm>

namespace millrace {

void Scheduler::ParallelFor(int64_t n, int64_t grain,
                            absl::FunctionRef<void(int64_t begin, int64_t end)> body) {
  grain = std::max<int64_t>(grain, 1);
  for (int64_t begin = 0; begin < n;) {
    const int64_t end = begin + std::min(grain, n - begin);
    body(begin, end);
    begin = end;
  }
}

}  // namespace millrace
