#include "core/base/mutex.h"

#include <algorithm>
#include <chrono>

#include "core/base/deadline.h"

namespace millrace {
namespace {

// Beyond some centuries, time points of std::chrono overflow. Who waits does so in a loop.
constexpr absl::Duration kLongestWait = absl::Hours(24 * 365);

}  // namespace

void CondVar::Wait(Mutex& mutex) {
  std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
  condition_.wait(lock);
  lock.release();  // the caller holds it still
}

bool CondVar::WaitFor(Mutex& mutex, absl::Duration timeout) {
  std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
  const std::cv_status status =
      condition_.wait_for(lock, absl::ToChronoNanoseconds(std::min(timeout, kLongestWait)));
  lock.release();
  return status == std::cv_status::no_timeout;
}

void Notification::Notify() {
  MutexLock lock(mutex_);
  notified_ = true;
  // Under the lock: a waiter may destroy this object as soon as it sees `notified_`.
  condition_.NotifyAll();
}

bool Notification::HasBeenNotified() const {
  MutexLock lock(mutex_);
  return notified_;
}

void Notification::Wait() {
  MutexLock lock(mutex_);
  while (!notified_) condition_.Wait(mutex_);
}

bool Notification::WaitFor(absl::Duration timeout) {
  const Deadline deadline(timeout);
  MutexLock lock(mutex_);
  while (!notified_) {
    const absl::Duration left = deadline.left();
    if (left == absl::ZeroDuration()) return false;
    condition_.WaitFor(mutex_, left);
  }
  return true;
}

}  // namespace millrace
