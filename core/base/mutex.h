#ifndef CORE_BASE_MUTEX_H_
#define CORE_BASE_MUTEX_H_

#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"

namespace millrace {

// std::mutex with the annotations that clang's -Wthread-safety checks. (absl::Mutex from a
// library that is not instrumented gives false races under ThreadSanitizer.)
class ABSL_LOCKABLE Mutex {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_.Lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

class CondVar {
 public:
  // REQUIRES: `mutex` is held. May wake up for no reason: call in a loop.
  void Wait(Mutex& mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // As Wait; false if `timeout` passed first.
  bool WaitFor(Mutex& mutex, absl::Duration timeout) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

// A gate that opens once. The only way in which code outside core/base blocks a thread, and only
// at the outermost API (a blocking twin of an asynchronous call).
class Notification {
 public:
  void Notify();
  bool HasBeenNotified() const;
  void Wait();
  // False if `timeout` passed first.
  bool WaitFor(absl::Duration timeout);

 private:
  mutable Mutex mutex_;
  CondVar condition_;
  bool notified_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace millrace

#endif  // CORE_BASE_MUTEX_H_
