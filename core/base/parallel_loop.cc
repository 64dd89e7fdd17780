#include "core/base/parallel_loop.h"

#include <algorithm>

#include "core/base/spin.h"

namespace millrace {
namespace {

// About as long as blocking and being woken would take.
constexpr int kSpins = 1000;

}  // namespace

ParallelLoop::ParallelLoop(int64_t n, int64_t grain, int helpers,
                           absl::FunctionRef<void(int64_t begin, int64_t end)> body)
    : n_(n), grain_(grain), blocks_((n - 1) / grain + 1), body_(body), helpers_(helpers) {}

bool ParallelLoop::ClaimHelper() {
  return claimed_.load(std::memory_order_relaxed) < blocks_ &&
         helpers_.load(std::memory_order_relaxed) > 0 &&
         helpers_.fetch_sub(1, std::memory_order_relaxed) > 0;
}

void ParallelLoop::RunBlocks() {
  int64_t ran = 0;
  while (true) {
    const int64_t block = claimed_.fetch_add(1, std::memory_order_relaxed);
    if (block >= blocks_) break;
    const int64_t begin = block * grain_;
    body_(begin, begin + std::min(grain_, n_ - begin));
    ++ran;
  }
  if (ran == 0) return;
  // Releases what the blocks wrote to whoever sees the sum.
  if (done_.fetch_add(ran, std::memory_order_acq_rel) + ran == blocks_) {
    MutexLock lock(mutex_);
    all_done_.NotifyAll();
  }
}

void ParallelLoop::WaitForAll() {
  for (int spin = 0; spin < kSpins; ++spin) {
    if (done_.load(std::memory_order_acquire) == blocks_) return;
    SpinPause();
  }
  MutexLock lock(mutex_);
  while (done_.load(std::memory_order_acquire) != blocks_) all_done_.Wait(mutex_);
}

}  // namespace millrace
