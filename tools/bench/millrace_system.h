#ifndef TOOLS_BENCH_MILLRACE_SYSTEM_H_
#define TOOLS_BENCH_MILLRACE_SYSTEM_H_

#include "core/base/scheduler.h"
#include "tools/bench/step_run.h"

namespace millrace::bench {

// Times `run` on this runtime.
StatusOr<StepTimes> TimeMillrace(const StepRun& run, const Clock& clock);

}  // namespace millrace::bench

#endif  // TOOLS_BENCH_MILLRACE_SYSTEM_H_
