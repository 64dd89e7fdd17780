#include "core/base/simulation.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "core/base/checked_math.h"
#include "core/base/file.h"

namespace millrace {
namespace {

// 2020-01-01 00:00:00 UTC: every simulated world begins then.
constexpr int64_t kWallMicrosAtStart = 1'577'836'800'000'000;

uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Splitmix64.
class Stream {
 public:
  explicit Stream(uint64_t seed) : state_(seed) {}
  uint64_t Next() { return Mix(state_ += 0x9e3779b97f4a7c15u); }
  // Uniform in [0, n), with an error below n / 2^64.
  uint64_t Below(uint64_t n) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(Next()) * n) >> 64);
  }

 private:
  uint64_t state_;
};

}  // namespace

class Simulation::Impl final : public Scheduler, public Timers, public Clock, public Entropy {
 public:
  explicit Impl(uint64_t seed)
      : choices_(Mix(seed)),
        // A stream of its own: a component that draws one number more changes no other order.
        entropy_(Mix(~seed)),
        files_(NewMemoryFileSystem()),
        environment_{this, this, this, this, files_.get()} {}

  // What tasks hold may call back as it ends, so this goes on until nothing is left.
  ~Impl() override {
    while (!ready_.empty() || !timers_.empty()) {
      std::exchange(ready_, {}).clear();
      std::exchange(timers_, {}).clear();
    }
  }

  void Schedule(Task task) override { ready_.push_back({++last_sequence_, std::move(task)}); }
  int parallelism() const override { return 1; }

  Id After(absl::Duration delay, Task task) override {
    const Id id = ++last_timer_;
    const int64_t due = Later(delay);
    due_[id] = due;
    timers_.emplace(std::pair(due, id), std::move(task));
    return id;
  }

  bool Cancel(Id id) override {
    const auto found = due_.find(id);
    if (found == due_.end()) return false;
    const auto timer = timers_.find(std::pair(found->second, id));
    due_.erase(found);
    const Task cancelled = std::move(timer->second);  // ends when the maps are whole again
    timers_.erase(timer);
    return true;
  }

  int64_t NowNanos() const override { return now_; }
  int64_t WallMicros() const override { return kWallMicrosAtStart + now_ / 1000; }
  uint64_t Next() override { return entropy_.Next(); }

  const Environment& environment() const { return environment_; }
  int64_t tasks_run() const { return tasks_run_; }
  uint64_t trace_hash() const { return trace_hash_; }

  bool RunUntil(absl::FunctionRef<bool()> done, absl::Duration limit) {
    const int64_t end = Later(limit);
    while (!done()) {
      if (!ready_.empty()) {
        RunOne();
      } else if (timers_.empty()) {
        return false;
      } else if (timers_.begin()->first.first > end) {
        now_ = end;
        return false;
      } else {
        MoveToNextTimer();
      }
    }
    return true;
  }

  void RunFor(absl::Duration duration) {
    const int64_t end = Later(duration);
    RunUntil([] { return false; }, duration);
    if (duration != absl::InfiniteDuration()) now_ = end;
  }

 private:
  struct Ready {
    uint64_t sequence;  // the how-manieth task that was ever scheduled
    Task task;
  };

  int64_t Later(absl::Duration delay) const {
    const int64_t nanos = std::max<int64_t>(absl::ToInt64Nanoseconds(delay), 0);
    int64_t due;
    return CheckedAdd(now_, nanos, &due) ? due : std::numeric_limits<int64_t>::max();
  }

  void RunOne() {
    const size_t chosen = choices_.Below(ready_.size());
    std::swap(ready_[chosen], ready_.back());
    Ready next = std::move(ready_.back());
    ready_.pop_back();
    ++tasks_run_;
    trace_hash_ = Mix(trace_hash_ ^ Mix(next.sequence) ^ static_cast<uint64_t>(now_));
    next.task();
  }

  // Also those due at the same time become ready: any of them may be first.
  void MoveToNextTimer() {
    now_ = timers_.begin()->first.first;
    while (!timers_.empty() && timers_.begin()->first.first == now_) {
      Task task = std::move(timers_.begin()->second);
      due_.erase(timers_.begin()->first.second);
      timers_.erase(timers_.begin());
      Schedule(std::move(task));
    }
  }

  Stream choices_;
  Stream entropy_;
  const std::unique_ptr<FileSystem> files_;
  const Environment environment_;

  int64_t now_ = 0;
  uint64_t last_sequence_ = 0;
  Id last_timer_ = 0;
  std::vector<Ready> ready_;
  std::map<std::pair<int64_t, Id>, Task> timers_;  // by due time
  std::map<Id, int64_t> due_;
  int64_t tasks_run_ = 0;
  uint64_t trace_hash_ = 0;
};

Simulation::Simulation(uint64_t seed) : impl_(std::make_unique<Impl>(seed)) {}
Simulation::~Simulation() = default;

const Environment& Simulation::environment() const { return impl_->environment(); }

bool Simulation::RunUntil(absl::FunctionRef<bool()> done, absl::Duration limit) {
  return impl_->RunUntil(done, limit);
}

void Simulation::RunFor(absl::Duration duration) { impl_->RunFor(duration); }

int64_t Simulation::tasks_run() const { return impl_->tasks_run(); }
uint64_t Simulation::trace_hash() const { return impl_->trace_hash(); }

}  // namespace millrace
