#ifndef CORE_BASE_PARALLEL_LOOP_H_
#define CORE_BASE_PARALLEL_LOOP_H_

#include <atomic>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "core/base/mutex.h"

namespace millrace {

// One ParallelFor under way, inside ThreadPool. Its caller and its helpers claim blocks from one
// counter. Shared by them all, as a helper may come when the caller is long gone: it finds no
// block left and does not touch `body`.
class ParallelLoop {
 public:
  // REQUIRES: n > 0, grain > 0. `body` lives until WaitForAll has returned.
  ParallelLoop(int64_t n, int64_t grain, int helpers,
               absl::FunctionRef<void(int64_t begin, int64_t end)> body);

  int64_t blocks() const { return blocks_; }

  // True, at most `helpers` times in all, if one more helper should be called in. Each participant
  // calls in others, so that a thousand threads are reached in ten steps and a busy pool is
  // not filled with helpers that come too late.
  bool ClaimHelper();
  // Runs blocks until all are claimed.
  void RunBlocks();
  // Waits until all have been run. REQUIRES: RunBlocks has returned in this thread, so that the
  // only blocks to wait for are those that others are in the midst of.
  void WaitForAll();

 private:
  const int64_t n_;
  const int64_t grain_;
  const int64_t blocks_;
  const absl::FunctionRef<void(int64_t begin, int64_t end)> body_;
  std::atomic<int> helpers_;
  alignas(64) std::atomic<int64_t> claimed_{0};  // may pass blocks_ by one for each participant
  alignas(64) std::atomic<int64_t> done_{0};
  Mutex mutex_;
  CondVar all_done_;
};

}  // namespace millrace

#endif  // CORE_BASE_PARALLEL_LOOP_H_
