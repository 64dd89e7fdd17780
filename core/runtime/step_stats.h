#ifndef CORE_RUNTIME_STEP_STATS_H_
#define CORE_RUNTIME_STEP_STATS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/framework/exchange.h"
#include "core/graph/graph.h"

namespace millrace {

// The one hook for statistics of a step. Calls come from many threads at once. A step without an
// observer reads no clock.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  // A kernel ran from start to end (monotonic nanoseconds of the task's clock).
  virtual void OnKernel(const DeviceName& device, const Node& node, int64_t ready_nanos,
                        int64_t start_nanos, int64_t end_nanos, int64_t output_bytes) = 0;
};

// What a traced step did on one task; the wire form is StepStats (core/framework/step_stats.proto).
struct KernelEvent {
  std::string device;
  std::string node;
  std::string op;
  int64_t ready_micros = 0;  // since the Unix epoch
  int64_t start_micros = 0;
  int64_t end_micros = 0;
  int64_t output_bytes = 0;
  int64_t channel = -1;  // of Send and Recv
};

// Collects KernelEvents. Thread-safe.
class StepStatsCollector final : public StepObserver {
 public:
  // `epoch_micros`: wall time at monotonic `nanos`, to relate tasks to each other.
  StepStatsCollector(int64_t epoch_micros, int64_t nanos);
  void OnKernel(const DeviceName& device, const Node& node, int64_t ready_nanos,
                int64_t start_nanos, int64_t end_nanos, int64_t output_bytes) override;
  std::vector<KernelEvent> Take();

 private:
  const int64_t offset_nanos_;
  Mutex mutex_;
  std::vector<KernelEvent> events_ ABSL_GUARDED_BY(mutex_);
};

// Chrome's trace event format (JSON): a process a task; lanes of a device, as many as kernels
// overlapped there, so that no two events of a lane do; flow arrows from each Send to its Recv by
// channel.
std::string ChromeTrace(absl::Span<const KernelEvent> events);

}  // namespace millrace

#endif  // CORE_RUNTIME_STEP_STATS_H_
