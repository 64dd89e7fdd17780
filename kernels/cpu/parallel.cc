#include "kernels/cpu/parallel.h"

#include <algorithm>
#include <cmath>

#include "core/base/mutex.h"

namespace millrace {

Status ParallelBlocks(KernelContext& context, int64_t blocks,
                      absl::FunctionRef<Status(int64_t block)> body) {
  if (blocks == 1) return body(0);
  Mutex mutex;
  Status first;
  int64_t failed = blocks;
  context.pool().ParallelFor(blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      Status status = body(block);
      if (status.ok()) continue;
      MutexLock lock(mutex);
      if (block < failed) {
        failed = block;
        first = std::move(status);
      }
    }
  });
  return first;
}

int64_t ItemsPerBlock(int64_t items, double cost_per_item, double cost_per_block,
                      int64_t max_blocks) {
  if (items <= 1) return 1;
  const double wanted = std::ceil(cost_per_block / std::max(cost_per_item, 1e-9));
  const auto by_cost = static_cast<int64_t>(std::min(wanted, static_cast<double>(items)));
  const int64_t at_least = std::max({int64_t{1}, by_cost, CeilDiv(items, max_blocks)});
  // Blocks of nearly equal size instead of a small last one.
  return CeilDiv(items, CeilDiv(items, at_least));
}

}  // namespace millrace
