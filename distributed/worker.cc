#include "distributed/worker.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "core/base/mutex.h"
#include "core/base/process.h"
#include "core/framework/resource.h"
#include "distributed/device_proto.h"
#include "distributed/worker_session.h"

namespace millrace {
namespace {

// Of sessions that ended: a late call must not bring them back.
constexpr size_t kMostTombstones = 4096;

template <typename Response>
void Answer(const Status& status, Response* response, CallDone& done) {
  SetStatus(status, response->mutable_status());
  done(absl::OkStatus());
}

}  // namespace

class Worker::Impl : public std::enable_shared_from_this<Worker::Impl> {
 public:
  explicit Impl(WorkerOptions options) : context_(std::make_shared<WorkerContext>()) {
    context_->options = std::move(options);
    name_ = context_->options.task.empty() ? "this task" : context_->options.task;
  }

  // The context, for a call that is meant for this life of the task.
  StatusOr<std::shared_ptr<WorkerContext>> Enter(uint64_t incarnation) const {
    MR_ASSIGN_OR_RETURN(std::shared_ptr<WorkerContext> context, Enter());
    if (incarnation == context->options.incarnation) return context;
    return Aborted(name_, " was restarted (incarnation changed): what it held for this session, ",
                   "variables included, is gone; open a new session");
  }

  StatusOr<std::shared_ptr<WorkerContext>> Enter() const {
    MutexLock lock(mutex_);
    if (context_ == nullptr) return Unavailable(name_, " is shutting down");
    return context_;
  }

  StatusOr<std::shared_ptr<WorkerSession>> FindSession(uint64_t incarnation, uint64_t id) const {
    MR_RETURN_IF_ERROR(Enter(incarnation).status());
    std::shared_ptr<WorkerSession> session;
    {
      MutexLock lock(mutex_);
      const auto found = sessions_.find(id);
      if (found == sessions_.end()) {
        return Aborted(name_, " does not know the session: it was closed, or its master was ",
                       "silent for too long");
      }
      session = found->second;
    }
    session->Touch();
    return session;
  }

  Status GetStatus(const GetStatusRequest& request, GetStatusResponse* response) const {
    MR_ASSIGN_OR_RETURN(const std::shared_ptr<WorkerContext> context, Enter());
    const WorkerOptions& options = context->options;
    response->set_incarnation(options.incarnation);
    response->set_protocol_version(kProtocolVersion);
    response->set_build_version(options.build_version);
    response->set_pid(options.pid);
    for (const Device* device : options.devices) {
      DeviceToProto(device->info(), response->add_device());
    }
    if (request.protocol_version() == kProtocolVersion) return absl::OkStatus();
    return FailedPrecondition(name_, " speaks protocol ", kProtocolVersion, " (build ",
                              options.build_version, "), its caller ", request.protocol_version(),
                              " (build ", request.build_version(), ")");
  }

  Status CreateSession(const CreateWorkerSessionRequest& request) {
    MR_ASSIGN_OR_RETURN(std::shared_ptr<WorkerContext> context, Enter(request.incarnation()));
    if (request.session() == 0) return InvalidArgument("a session without an incarnation");
    std::shared_ptr<WorkerSession> session;
    {
      MutexLock lock(mutex_);
      if (context_ == nullptr) return Unavailable(name_, " is shutting down");
      if (request.epoch() < epoch_ && request.epoch() != 0) {
        return Aborted(name_, " has seen epoch ", epoch_, ": a master of epoch ", request.epoch(),
                       " may not use it any more");
      }
      epoch_ = std::max(epoch_, request.epoch());
      if (std::find(ended_.begin(), ended_.end(), request.session()) != ended_.end()) {
        return Aborted(name_, " has ended the session");
      }
      std::shared_ptr<WorkerSession>& entry = sessions_[request.session()];
      if (entry == nullptr) {
        entry = std::make_shared<WorkerSession>(context, request.session(), request.task());
        ArmLease();
      }
      session = entry;
    }
    if (session->task() != request.task()) {
      return InvalidArgument(name_, " is called ", session->task(), " in the session, not ",
                             request.task());
    }
    session->Touch();
    return session->AddPeers(request);
  }

  Status DeleteSession(const DeleteWorkerSessionRequest& request) {
    MR_RETURN_IF_ERROR(Enter(request.incarnation()).status());
    EndSession(request.session(), Cancelled("the session was closed"));
    return absl::OkStatus();
  }

  Status DeregisterPlan(const DeregisterPlanRequest& request) {
    MR_ASSIGN_OR_RETURN(const std::shared_ptr<WorkerSession> session,
                        FindSession(request.incarnation(), request.session()));
    session->DeregisterPlan(request.plan());
    return absl::OkStatus();
  }

  Status AbortStep(const AbortStepRequest& request) {
    MR_ASSIGN_OR_RETURN(const std::shared_ptr<WorkerSession> session,
                        FindSession(request.incarnation(), request.session()));
    Status reason = ToStatus(request.reason());
    if (reason.ok()) reason = Cancelled("step ", request.step(), " was aborted by the master");
    session->AbortStep(request.step(), reason);
    if (request.torn()) session->MarkTorn(request.step());
    return absl::OkStatus();
  }

  Status Heartbeat(const HeartbeatRequest& request, HeartbeatResponse* response) {
    MR_ASSIGN_OR_RETURN(const std::shared_ptr<WorkerContext> context, Enter(request.incarnation()));
    for (int i = 0; i < request.session_size(); ++i) {
      std::shared_ptr<WorkerSession> session;
      {
        MutexLock lock(mutex_);
        const auto found = sessions_.find(request.session(i));
        if (found == sessions_.end()) continue;
        session = found->second;
      }
      session->Touch();
      if (i < request.ended_below_size()) session->EndBelow(request.ended_below(i));
    }
    response->set_live_steps(usage().live_steps);
    if (context->options.data_plane != nullptr) {
      int64_t buffered = 0;
      for (const LinkCounters& link : context->options.data_plane->Counters()) {
        buffered += link.buffered_bytes;
      }
      response->set_buffered_bytes(buffered);
    }
    response->set_resident_bytes(ResidentBytes());
    return absl::OkStatus();
  }

  Status Reset(const WorkerResetRequest& request) {
    MR_ASSIGN_OR_RETURN(const std::shared_ptr<WorkerContext> context, Enter(request.incarnation()));
    const std::vector<std::string> containers(request.container().begin(),
                                              request.container().end());
    for (Device* device : context->options.devices) device->resources().Reset(containers);
    return absl::OkStatus();
  }

  void Shutdown(absl::AnyInvocable<void()> drained) {
    std::shared_ptr<WorkerContext> context;
    std::vector<uint64_t> sessions;
    Timers::Id timer;
    {
      MutexLock lock(mutex_);
      context = std::move(context_);
      for (const auto& [id, session] : sessions_) sessions.push_back(id);
      timer = std::exchange(lease_timer_, 0);
    }
    if (context == nullptr) return;
    if (timer != 0) context->options.environment.timers->Cancel(timer);
    context->drained = std::move(drained);
    for (const uint64_t id : sessions) EndSession(id, Cancelled(name_, " is shutting down"));
  }

  Usage usage() const {
    std::vector<std::shared_ptr<WorkerSession>> sessions;
    {
      MutexLock lock(mutex_);
      for (const auto& [id, session] : sessions_) sessions.push_back(session);
      // Ended, but perhaps not over.
      for (const std::weak_ptr<WorkerSession>& ending : ending_) {
        if (std::shared_ptr<WorkerSession> session = ending.lock()) {
          sessions.push_back(std::move(session));
        }
      }
    }
    Usage usage;
    for (const std::shared_ptr<WorkerSession>& session : sessions) {
      const WorkerSession::Usage own = session->usage();
      usage.plans += own.plans;
      usage.live_steps += own.live_steps;
      usage.kept_replies += own.kept_replies;
    }
    MutexLock lock(mutex_);
    usage.sessions = static_cast<int>(sessions_.size());
    return usage;
  }

 private:
  void EndSession(uint64_t id, const Status& reason) {
    std::shared_ptr<WorkerSession> session;
    {
      MutexLock lock(mutex_);
      ended_.push_back(id);
      if (ended_.size() > kMostTombstones) ended_.pop_front();
      const auto found = sessions_.find(id);
      if (found == sessions_.end()) return;
      session = std::move(found->second);
      sessions_.erase(found);
      std::erase_if(ending_, [](const auto& ending) { return ending.expired(); });
      ending_.push_back(session);
    }
    session->End(reason);
  }

  // Looks four times a lease; only while there are sessions.
  void ArmLease() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (lease_timer_ != 0) return;
    const WorkerOptions& options = context_->options;
    lease_timer_ =
        options.environment.timers->After(options.idle_lease / 4, [weak = weak_from_this()] {
          if (const std::shared_ptr<Impl> self = weak.lock()) self->CheckLeases();
        });
  }

  void CheckLeases() {
    const StatusOr<std::shared_ptr<WorkerContext>> context = Enter();
    if (!context.ok()) return;
    const WorkerOptions& options = (*context)->options;
    const int64_t oldest =
        options.environment.clock->NowNanos() - absl::ToInt64Nanoseconds(options.idle_lease);
    std::vector<uint64_t> silent;
    {
      MutexLock lock(mutex_);
      lease_timer_ = 0;
      for (const auto& [id, session] : sessions_) {
        if (session->last_touch_nanos() < oldest) silent.push_back(id);
      }
      if (context_ != nullptr && silent.size() < sessions_.size()) ArmLease();
    }
    for (const uint64_t id : silent) {
      EndSession(id, Aborted("the session's master was silent for more than ",
                             absl::FormatDuration(options.idle_lease)));
    }
  }

  std::string name_;
  mutable Mutex mutex_;
  std::shared_ptr<WorkerContext> context_ ABSL_GUARDED_BY(mutex_);  // null: shut down
  std::map<uint64_t, std::shared_ptr<WorkerSession>> sessions_ ABSL_GUARDED_BY(mutex_);
  std::deque<uint64_t> ended_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<WorkerSession>> ending_ ABSL_GUARDED_BY(mutex_);
  uint64_t epoch_ ABSL_GUARDED_BY(mutex_) = 0;
  Timers::Id lease_timer_ ABSL_GUARDED_BY(mutex_) = 0;
};

Worker::Worker(WorkerOptions options) : impl_(std::make_shared<Impl>(std::move(options))) {}

Worker::~Worker() { impl_->Shutdown(nullptr); }

void Worker::Shutdown(absl::AnyInvocable<void()> drained) { impl_->Shutdown(std::move(drained)); }

Worker::Usage Worker::usage() const { return impl_->usage(); }

void Worker::GetStatus(const GetStatusRequest* request, GetStatusResponse* response,
                       const CallOptions&, CallDone done) {
  Answer(impl_->GetStatus(*request, response), response, done);
}

void Worker::CreateSession(const CreateWorkerSessionRequest* request,
                           CreateWorkerSessionResponse* response, const CallOptions&,
                           CallDone done) {
  Answer(impl_->CreateSession(*request), response, done);
}

void Worker::DeleteSession(const DeleteWorkerSessionRequest* request,
                           DeleteWorkerSessionResponse* response, const CallOptions&,
                           CallDone done) {
  Answer(impl_->DeleteSession(*request), response, done);
}

void Worker::RegisterPlan(const RegisterPlanRequest* request, RegisterPlanResponse* response,
                          const CallOptions&, CallDone done) {
  const StatusOr<std::shared_ptr<WorkerSession>> session =
      impl_->FindSession(request->incarnation(), request->session());
  if (!session.ok()) {
    Answer(session.status(), response, done);
    return;
  }
  (*session)->RegisterPlan(request,
                           [response, done = std::move(done)](const Status& status) mutable {
                             Answer(status, response, done);
                           });
}

void Worker::DeregisterPlan(const DeregisterPlanRequest* request, DeregisterPlanResponse* response,
                            const CallOptions&, CallDone done) {
  Answer(impl_->DeregisterPlan(*request), response, done);
}

void Worker::RunStep(const WorkerRunStepRequest* request, WorkerRunStepResponse* response,
                     const CallOptions& options, CallDone done) {
  const StatusOr<std::shared_ptr<WorkerSession>> session =
      impl_->FindSession(request->incarnation(), request->session());
  if (!session.ok()) {
    Answer(session.status(), response, done);
    return;
  }
  (*session)->RunStep(request, response, options, std::move(done));
}

void Worker::AbortStep(const AbortStepRequest* request, AbortStepResponse* response,
                       const CallOptions&, CallDone done) {
  Answer(impl_->AbortStep(*request), response, done);
}

void Worker::Heartbeat(const HeartbeatRequest* request, HeartbeatResponse* response,
                       const CallOptions&, CallDone done) {
  Answer(impl_->Heartbeat(*request, response), response, done);
}

void Worker::Reset(const WorkerResetRequest* request, WorkerResetResponse* response,
                   const CallOptions&, CallDone done) {
  Answer(impl_->Reset(*request), response, done);
}

}  // namespace millrace
