#include "python_free_api/prefetch.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "core/base/mutex.h"

namespace millrace {
namespace {

// An element and where the source is after it.
struct Made {
  StatusOr<std::optional<Element>> element;
  DatasetPosition after;

  bool IsLast() const { return !element.ok() || !element->has_value(); }
};

// Shared with the scheduler's task, which may begin after the iterator is gone.
class Queue {
 public:
  Queue(std::unique_ptr<DatasetIterator> source, int depth)
      : depth_(static_cast<size_t>(std::max(depth, 1))), source_(std::move(source)) {}

  // The next element, made here unless one is ready or on its way.
  Made Take() {
    MutexLock lock(mutex_);
    while (ready_.empty() && in_use_) changed_.Wait(mutex_);
    if (ready_.empty()) MakeOne();
    Made made = ready_.front();
    if (!made.IsLast()) ready_.pop_front();
    return made;
  }

  // Whether to schedule a task that calls Fill.
  bool WantsTask() {
    MutexLock lock(mutex_);
    if (scheduled_ || !HasRoom()) return false;
    scheduled_ = true;
    return true;
  }

  void Fill() {
    MutexLock lock(mutex_);
    while (!in_use_ && HasRoom()) MakeOne();
    scheduled_ = false;
  }

  // Waits for what is being made; nothing is made afterwards.
  void Close() {
    MutexLock lock(mutex_);
    closed_ = true;
    while (in_use_) changed_.Wait(mutex_);
    source_.reset();
  }

 private:
  bool HasRoom() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !closed_ && ready_.size() < depth_ && (ready_.empty() || !ready_.back().IsLast());
  }

  // The lock is not held while the source works.
  void MakeOne() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    in_use_ = true;
    mutex_.Unlock();
    StatusOr<std::optional<Element>> element = source_->Next();
    const DatasetPosition after = source_->position();
    mutex_.Lock();
    in_use_ = false;
    ready_.push_back({std::move(element), after});
    changed_.NotifyAll();
  }

  const size_t depth_;
  std::unique_ptr<DatasetIterator> source_;  // of whoever has set in_use_
  Mutex mutex_;
  CondVar changed_;
  std::deque<Made> ready_ ABSL_GUARDED_BY(mutex_);
  bool in_use_ ABSL_GUARDED_BY(mutex_) = false;
  bool scheduled_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

class PrefetchingIterator final : public DatasetIterator {
 public:
  PrefetchingIterator(std::unique_ptr<DatasetIterator> source, int elements, Scheduler& scheduler)
      : scheduler_(scheduler), position_(source->position()) {
    queue_ = std::make_shared<Queue>(std::move(source), elements);
    MakeAhead();
  }
  ~PrefetchingIterator() override { queue_->Close(); }

  StatusOr<std::optional<Element>> Next() override {
    Made made = queue_->Take();
    MakeAhead();
    position_ = made.after;
    return std::move(made.element);
  }
  DatasetPosition position() const override { return position_; }

 private:
  void MakeAhead() {
    if (queue_->WantsTask()) scheduler_.Schedule([queue = queue_] { queue->Fill(); });
  }

  Scheduler& scheduler_;
  std::shared_ptr<Queue> queue_;
  DatasetPosition position_;
};

}  // namespace

std::unique_ptr<DatasetIterator> PrefetchIterator(std::unique_ptr<DatasetIterator> source,
                                                  int elements, Scheduler& scheduler) {
  return std::make_unique<PrefetchingIterator>(std::move(source), elements, scheduler);
}

}  // namespace millrace
