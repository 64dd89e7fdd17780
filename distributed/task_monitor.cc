#include "distributed/task_monitor.h"

#include <algorithm>

#include "distributed/task_call.h"

namespace millrace {

class TaskMonitor::WatchImpl final : public TaskWatch {
 public:
  WatchImpl(std::shared_ptr<TaskMonitor> monitor, TaskLife life, uint64_t session)
      : monitor_(std::move(monitor)), life_(std::move(life)), session_(session) {}
  ~WatchImpl() override { monitor_->Forget(key(), session_); }

  const TaskLife& life() const override { return life_; }
  Cancellation down() const override { return monitor_->Down(key()); }

 private:
  Key key() const { return {life_.address, life_.incarnation}; }

  const std::shared_ptr<TaskMonitor> monitor_;
  const TaskLife life_;
  const uint64_t session_;
};

std::shared_ptr<TaskWatch> TaskMonitor::Watch(const TaskLife& life, uint64_t session,
                                              std::function<uint64_t()> ended_below) {
  {
    const Key key(life.address, life.incarnation);
    MutexLock lock(mutex_);
    Entry& entry = entries_[key];
    if (entry.sessions.empty()) {
      entry.life = life;
      entry.last_answer_nanos = environment_.clock->NowNanos();
      entry.number = ++last_number_;
      BeatAfter(key, entry, options_.period);
    }
    entry.sessions.emplace(session, std::move(ended_below));
  }
  return std::make_shared<WatchImpl>(shared_from_this(), life, session);
}

int TaskMonitor::num_watched() const {
  MutexLock lock(mutex_);
  return static_cast<int>(entries_.size());
}

void TaskMonitor::Forget(const Key& key, uint64_t session) {
  Entry ended;  // goes when the lock is free: it may hold the last reference to its worker
  std::function<uint64_t()> forgotten;
  MutexLock lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  const auto watch = entry.sessions.find(session);
  if (watch == entry.sessions.end()) return;
  forgotten = std::move(watch->second);
  entry.sessions.erase(watch);
  if (!entry.sessions.empty()) return;
  if (entry.timer != 0) environment_.timers->Cancel(entry.timer);
  ended = std::move(entry);
  entries_.erase(found);
}

Cancellation TaskMonitor::Down(const Key& key) const {
  MutexLock lock(mutex_);
  const auto found = entries_.find(key);
  return found == entries_.end() ? Cancellation() : found->second.down;
}

TaskMonitor::Entry* TaskMonitor::Find(const Key& key, uint64_t number) {
  const auto found = entries_.find(key);
  return found != entries_.end() && found->second.number == number ? &found->second : nullptr;
}

void TaskMonitor::BeatAfter(const Key& key, Entry& entry, absl::Duration delay) {
  entry.timer =
      environment_.timers->After(delay, [weak = weak_from_this(), key, number = entry.number] {
        if (const std::shared_ptr<TaskMonitor> self = weak.lock()) self->Beat(key, number);
      });
}

void TaskMonitor::Beat(const Key& key, uint64_t number) {
  HeartbeatRequest request;
  std::vector<std::function<uint64_t()>> floors;
  std::shared_ptr<WorkerInterface> worker;
  std::string task;
  absl::Duration timeout;
  {
    MutexLock lock(mutex_);
    Entry* found = Find(key, number);
    if (found == nullptr) return;
    Entry& entry = *found;
    entry.timer = 0;
    request.set_incarnation(entry.life.incarnation);
    for (const auto& [session, ended_below] : entry.sessions) {
      request.add_session(session);
      floors.push_back(ended_below);
    }
    worker = entry.life.worker;
    task = entry.life.task;
    const auto silent = absl::Nanoseconds(environment_.clock->NowNanos() - entry.last_answer_nanos);
    // While it is down there is time.
    timeout = entry.down.cancelled() ? options_.silence
                                     : std::max(options_.silence - silent, absl::Milliseconds(1));
  }
  for (const std::function<uint64_t()>& floor : floors) request.add_ended_below(floor());
  CallTask(std::move(worker), std::move(task), &WorkerInterface::Heartbeat, std::move(request),
           timeout, Cancellation(),
           [self = shared_from_this(), key, number](const Status& status, HeartbeatResponse&) {
             self->OnAnswer(key, number, status);
           });
}

void TaskMonitor::OnAnswer(const Key& key, uint64_t number, const Status& status) {
  Cancellation down;
  Status reason;
  {
    MutexLock lock(mutex_);
    Entry* found = Find(key, number);
    if (found == nullptr) return;
    Entry& entry = *found;
    const int64_t now = environment_.clock->NowNanos();
    if (status.ok()) {
      entry.last_answer_nanos = now;
      if (entry.down.cancelled()) entry.down = Cancellation();
      BeatAfter(key, entry, options_.period);
      return;
    }
    down = entry.down;
    if (status.code() == absl::StatusCode::kAborted) {
      reason = status;  // it was restarted: no more heartbeats, it is down for ever
    } else {
      const auto silent = absl::Nanoseconds(now - entry.last_answer_nanos);
      if (silent >= options_.silence) {
        reason = Unavailable(entry.life.task, " (", entry.life.address, ") has not answered for ",
                             absl::FormatDuration(options_.silence), ": ", status.message());
      }
      const absl::Duration left = options_.silence - silent;
      BeatAfter(key, entry,
                left > absl::ZeroDuration() ? std::min(options_.period, left) : options_.period);
    }
  }
  // Once, and with no lock held: it ends calls.
  if (!reason.ok()) down.Cancel(reason);
}

}  // namespace millrace
