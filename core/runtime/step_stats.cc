#include "core/runtime/step_stats.h"

#include <utility>

namespace millrace {

StepStatsCollector::StepStatsCollector(int64_t epoch_micros, int64_t nanos)
    : offset_nanos_(epoch_micros * 1000 - nanos) {}

void StepStatsCollector::OnKernel(const DeviceName& device, const Node& node, int64_t ready_nanos,
                                  int64_t start_nanos, int64_t end_nanos, int64_t output_bytes) {
  KernelEvent event;
  event.device = device.ToString();
  event.node = node.name();
  event.op = node.op().name();
  event.ready_micros = (ready_nanos + offset_nanos_) / 1000;
  event.start_micros = (start_nanos + offset_nanos_) / 1000;
  event.end_micros = (end_nanos + offset_nanos_) / 1000;
  event.output_bytes = output_bytes;
  if (node.op().Has(Trait::kSend) || node.op().Has(Trait::kRecv)) {
    event.channel = node.attrs().GetOr<int64_t>("channel", -1);
  }
  MutexLock lock(mutex_);
  events_.push_back(std::move(event));
}

std::vector<KernelEvent> StepStatsCollector::Take() {
  MutexLock lock(mutex_);
  return std::exchange(events_, {});
}

}  // namespace millrace
