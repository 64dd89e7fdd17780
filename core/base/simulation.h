#ifndef CORE_BASE_SIMULATION_H_
#define CORE_BASE_SIMULATION_H_

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "core/base/scheduler.h"

namespace millrace {

// A whole world on the caller's thread: scheduler, timers, clock and entropy, driven by one seed.
// Among the tasks that could run next one is drawn at random; time moves only when none can.
// The same seed gives the same run. Not thread-safe: everything runs inside Run*().
//
//   Simulation world(/*seed=*/7);
//   world.environment().scheduler->Schedule([&] { ... });
//   bool done = world.RunUntil([&] { return finished; }, absl::Seconds(60));
class Simulation {
 public:
  explicit Simulation(uint64_t seed);
  ~Simulation();

  // Its `files` is an in-memory file system.
  const Environment& environment() const;

  // Runs tasks and timers until `done()` holds (true), or nothing is left to run or `limit` of
  // virtual time has passed (false).
  bool RunUntil(absl::FunctionRef<bool()> done, absl::Duration limit);
  // Runs until no task is ready and no timer is due within `duration` of virtual time.
  void RunFor(absl::Duration duration);

  // Tasks run so far, and a hash over the order in which they ran: equal for equal seeds.
  int64_t tasks_run() const;
  uint64_t trace_hash() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace millrace

#endif  // CORE_BASE_SIMULATION_H_
