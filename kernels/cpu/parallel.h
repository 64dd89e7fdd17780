#ifndef KERNELS_CPU_PARALLEL_H_
#define KERNELS_CPU_PARALLEL_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "core/framework/kernel.h"

// How CPU kernels split their work. Where the cuts are depends on sizes alone, so that results are
// bit-equal for every number of threads.
namespace millrace {

// Elements of cheap elementwise work that are worth a task: some 10 microseconds.
inline constexpr int64_t kElementsPerTask = 32768;
// For functions of some tens of instructions, like exp.
inline constexpr int64_t kHeavyElementsPerTask = 8192;

// ParallelFor on the kernel's pool that costs nothing where one block holds all.
inline void ParallelRange(KernelContext& context, int64_t n, int64_t grain,
                          absl::FunctionRef<void(int64_t begin, int64_t end)> body) {
  if (n <= 0) return;
  if (n <= grain) {
    body(0, n);
  } else {
    context.pool().ParallelFor(n, grain, body);
  }
}

// Runs body(0)..body(blocks-1), perhaps on several threads. If some fail: the status of the lowest.
Status ParallelBlocks(KernelContext& context, int64_t blocks,
                      absl::FunctionRef<Status(int64_t block)> body);

// How many items of `cost_per_item` (any unit) make a block of at least `cost_per_block`; at least
// 1 item, and so many that there are no more than `max_blocks` blocks.
int64_t ItemsPerBlock(int64_t items, double cost_per_item, double cost_per_block,
                      int64_t max_blocks);

inline int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace millrace

#endif  // KERNELS_CPU_PARALLEL_H_
