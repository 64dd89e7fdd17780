#include "distributed/step_coordinator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "distributed/task_call.h"

namespace millrace {
namespace {

constexpr absl::Duration kAbortTimeout = absl::Seconds(2);

}  // namespace

StepCoordinator::StepCoordinator(std::shared_ptr<MasterPlan> plan, StepCoordinatorOptions options)
    : plan_(std::move(plan)), options_(std::move(options)) {}

void StepCoordinator::Start(std::vector<WorkerRunStepRequest> requests, Cancellation stop,
                            absl::AnyInvocable<void(StepOutcome)> replied,
                            absl::AnyInvocable<void()> ended) {
  const size_t parts = plan_->parts().size();
  const size_t fetches = plan_->signature().fetches.size();
  stop_ = stop;
  {
    MutexLock lock(mutex_);
    replied_ = std::move(replied);
    ended_ = std::move(ended);
    tasks_.resize(parts);
    left_ = parts;
    outcome_.step = options_.step;
    outcome_.fetches.resize(fetches);
    fetched_.resize(fetches);
    if (parts > 0 && options_.timeout != absl::InfiniteDuration()) {
      timeout_timer_ =
          options_.environment.timers->After(options_.timeout, [weak = weak_from_this()] {
            if (const std::shared_ptr<StepCoordinator> self = weak.lock()) self->OnTimeout();
          });
    }
  }
  if (parts == 0) {
    OnAllAnswered();
    return;
  }
  const Cancellation::Id id = stop.OnCancel([weak = weak_from_this()](const Status& reason) {
    const std::shared_ptr<StepCoordinator> self = weak.lock();
    if (self != nullptr) self->Fail(reason, self->options_.cancel_grace);
  });
  {
    MutexLock lock(mutex_);
    stop_id_ = id;
  }
  for (size_t i = 0; i < parts; ++i) WatchTask(i);
  for (size_t i = 0; i < parts; ++i) {
    const TaskWatch& watch = *part(i).watch;
    CallTask(watch.life().worker, part(i).task, &WorkerInterface::RunStep, std::move(requests[i]),
             absl::InfiniteDuration(), watch.down(),
             [self = shared_from_this(), i](const Status& status, WorkerRunStepResponse& response) {
               self->OnAnswer(i, status, response);
             });
  }
}

void StepCoordinator::WatchTask(size_t index) {
  Cancellation down = part(index).watch->down();
  const Cancellation::Id id = down.OnCancel([weak = weak_from_this()](const Status& reason) {
    const std::shared_ptr<StepCoordinator> self = weak.lock();
    if (self != nullptr) self->Fail(reason, self->options_.error_grace);
  });
  MutexLock lock(mutex_);
  tasks_[index].down = down;
  tasks_[index].down_id = id;
}

void StepCoordinator::OnAnswer(size_t index, const Status& status,
                               WorkerRunStepResponse& response) {
  bool first_error = false;
  bool all_answered = false;
  {
    MutexLock lock(mutex_);
    Task& task = tasks_[index];
    task.answered = true;
    task.updated = response.updates_started();
    if (status.ok()) {
      TakeResponse(index, response);
    } else if (cause_.ok()) {
      // In the same breath as the count: whoever answers last must see it.
      cause_ = status;
      first_error = true;
    }
    all_answered = --left_ == 0;
  }
  if (all_answered) {
    OnAllAnswered();
  } else if (first_error) {
    EndOthers(options_.error_grace);
  }
}

void StepCoordinator::TakeResponse(size_t index, WorkerRunStepResponse& response) {
  for (IndexedTensor& fetch : *response.mutable_fetch()) {
    const int number = fetch.index();
    if (number < 0 || number >= static_cast<int>(fetched_.size()) || fetched_[number]) {
      if (cause_.ok()) {
        cause_ = Internal(part(index).task, " sent a fetch with the number ", number,
                          " that it should not have");
      }
      return;
    }
    fetched_[number] = true;
    outcome_.fetches[number] = std::move(*fetch.mutable_tensor());
  }
  for (DeviceStepStats& device : *response.mutable_step_stats()->mutable_dev_stats()) {
    *outcome_.stats.add_dev_stats() = std::move(device);
  }
  received_.insert(received_.end(), response.received().begin(), response.received().end());
}

void StepCoordinator::OnTimeout() {
  std::vector<std::string> busy;
  {
    MutexLock lock(mutex_);
    timeout_timer_ = 0;
    for (size_t i = 0; i < tasks_.size(); ++i) {
      if (!tasks_[i].answered) busy.push_back(part(i).task);
    }
  }
  Fail(DeadlineExceeded("step ", options_.step, " took longer than its timeout of ",
                        absl::FormatDuration(options_.timeout),
                        "; still at it: ", absl::StrJoin(busy, ", ")),
       options_.cancel_grace);
}

void StepCoordinator::Fail(const Status& cause, absl::Duration grace) {
  {
    MutexLock lock(mutex_);
    if (left_ == 0 || !cause_.ok()) return;
    cause_ = cause;
  }
  EndOthers(grace);
}

void StepCoordinator::EndOthers(absl::Duration grace) {
  std::vector<size_t> busy;
  Status cause;
  {
    MutexLock lock(mutex_);
    if (left_ == 0) return;
    cause = cause_;
    for (size_t i = 0; i < tasks_.size(); ++i) {
      if (!tasks_[i].answered) busy.push_back(i);
    }
    grace_timer_ = options_.environment.timers->After(grace, [weak = weak_from_this()] {
      if (const std::shared_ptr<StepCoordinator> self = weak.lock()) self->Reply();
    });
  }
  for (const size_t i : busy) SendAbort(i, cause, /*torn=*/false, [] {});
}

void StepCoordinator::SendAbort(size_t index, const Status& reason, bool torn,
                                absl::AnyInvocable<void()> done) {
  const TaskWatch& watch = *part(index).watch;
  AbortStepRequest request;
  request.set_incarnation(watch.life().incarnation);
  request.set_session(options_.session);
  request.set_step(options_.step);
  request.set_torn(torn);
  SetStatus(reason, request.mutable_reason());
  CallTask(watch.life().worker, part(index).task, &WorkerInterface::AbortStep, std::move(request),
           kAbortTimeout, watch.down(),
           [done = std::move(done)](const Status&, AbortStepResponse&) mutable { done(); });
}

void StepCoordinator::OnAllAnswered() {
  Timers::Id timeout_timer;
  Timers::Id grace_timer;
  Cancellation::Id stop_id;
  std::vector<std::pair<Cancellation, Cancellation::Id>> downs;
  std::vector<size_t> torn;
  std::vector<ChannelCount> received;
  Status cause;
  {
    MutexLock lock(mutex_);
    timeout_timer = std::exchange(timeout_timer_, 0);
    grace_timer = std::exchange(grace_timer_, 0);
    stop_id = std::exchange(stop_id_, 0);
    for (const Task& task : tasks_) downs.emplace_back(task.down, task.down_id);
    for (size_t i = 0; i < fetched_.size() && cause_.ok(); ++i) {
      if (!fetched_[i]) {
        cause_ = Internal("no task sent the fetch '", plan_->signature().fetches[i], "'");
      }
    }
    cause = cause_;
    received = std::move(received_);
    if (!cause.ok()) {
      const auto updating =
          std::count_if(plan_->parts().begin(), plan_->parts().end(),
                        [](const MasterPlan::Part& part) { return part.updates; });
      for (size_t i = 0; i < tasks_.size(); ++i) {
        if (tasks_[i].updated) torn.push_back(i);
      }
      const bool all = static_cast<std::ptrdiff_t>(torn.size()) == updating;
      if (options_.independent_updates || all) torn.clear();
    }
    marks_left_ = torn.size();
  }
  if (timeout_timer != 0) options_.environment.timers->Cancel(timeout_timer);
  if (grace_timer != 0) options_.environment.timers->Cancel(grace_timer);
  stop_.Remove(stop_id);
  for (auto& [down, id] : downs) down.Remove(id);
  if (cause.ok()) plan_->Count(received);
  for (const size_t i : torn) {
    SendAbort(i, cause, /*torn=*/true, [self = shared_from_this()] {
      {
        MutexLock lock(self->mutex_);
        if (--self->marks_left_ > 0) return;
      }
      self->Reply();
      self->End();
    });
  }
  if (torn.empty()) {
    Reply();
    End();
  }
}

void StepCoordinator::Reply() {
  absl::AnyInvocable<void(StepOutcome)> replied;
  StepOutcome outcome;
  {
    MutexLock lock(mutex_);
    if (!replied_) return;
    replied = std::exchange(replied_, nullptr);
    outcome = std::move(outcome_);
    outcome.status = cause_;
    if (!cause_.ok()) outcome.fetches.clear();
  }
  replied(std::move(outcome));
}

void StepCoordinator::End() {
  absl::AnyInvocable<void()> ended;
  {
    MutexLock lock(mutex_);
    ended = std::move(ended_);
  }
  ended();
}

}  // namespace millrace
