#include <sys/random.h>
#include <time.h>

#include <cerrno>
#include <random>
#include <utility>

#include "core/base/file.h"
#include "core/base/host_timers.h"
#include "core/base/thread_pool.h"

namespace millrace {
namespace {

class HostClock final : public Clock {
 public:
  int64_t NowNanos() const override {
    const timespec now = Read(CLOCK_MONOTONIC);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  }
  int64_t WallMicros() const override {
    const timespec now = Read(CLOCK_REALTIME);
    return int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
  }

 private:
  static timespec Read(clockid_t id) {
    timespec now = {};
    clock_gettime(id, &now);
    return now;
  }
};

class HostEntropy final : public Entropy {
 public:
  uint64_t Next() override {
    uint64_t bits = 0;
    ssize_t got;
    do {
      got = getrandom(&bits, sizeof(bits), 0);
    } while (got < 0 && errno == EINTR);
    if (got == sizeof(bits)) return bits;
    // A kernel or sandbox without the call.
    std::random_device device;
    return (uint64_t{device()} << 32) | device();
  }
};

}  // namespace

class HostEnvironment::Impl {
 public:
  explicit Impl(ThreadPool::Options options)
      : files_(NewHostFileSystem()), timers_(clock_), pool_(std::move(options)) {
    timers_.Start(pool_);
    environment_.scheduler = &pool_;
    environment_.timers = &timers_;
    environment_.clock = &clock_;
    environment_.entropy = &entropy_;
    environment_.files = files_.get();
  }
  // Timers first, so that no more tasks come; then the pool runs what it has, and those tasks may
  // still use everything here.
  ~Impl() { timers_.Stop(); }

  const Environment& environment() const { return environment_; }

 private:
  HostClock clock_;
  HostEntropy entropy_;
  const std::unique_ptr<FileSystem> files_;
  HostTimers timers_;
  Environment environment_;
  ThreadPool pool_;
};

HostEnvironment::HostEnvironment(ThreadPool::Options options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}
HostEnvironment::~HostEnvironment() = default;

const Environment& HostEnvironment::environment() const { return impl_->environment(); }

}  // namespace millrace
