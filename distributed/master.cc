#include "distributed/master.h"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/graph/graph_def.h"
#include "distributed/device_proto.h"
#include "distributed/inventory.h"
#include "distributed/master_session.h"
#include "distributed/reset_tasks.h"
#include "distributed/session_setup.h"

namespace millrace {
namespace {

constexpr size_t kMostCreateRequests = 1024;

template <typename Response>
void Answer(const Status& status, Response* response, CallDone& done) {
  SetStatus(status, response->mutable_status());
  done(absl::OkStatus());
}

}  // namespace

class Master::Impl : public std::enable_shared_from_this<Master::Impl> {
 public:
  explicit Impl(MasterOptions options)
      : name_(options.task.empty() ? "this master" : options.task),
        context_(std::make_shared<MasterContext>(std::move(options))) {}

  StatusOr<std::shared_ptr<MasterContext>> Enter() const {
    MutexLock lock(mutex_);
    if (context_ == nullptr) return Unavailable(name_, " is shutting down");
    return context_;
  }

  StatusOr<std::shared_ptr<MasterSession>> Find(const std::string& handle) const {
    std::shared_ptr<MasterSession> session;
    {
      MutexLock lock(mutex_);
      if (context_ == nullptr) return Unavailable(name_, " is shutting down");
      const auto found = sessions_.find(handle);
      if (found == sessions_.end()) {
        return Aborted("session '", handle, "' is not known to ", name_,
                       ": it was closed, was idle for too long, or the master was restarted");
      }
      session = found->second;
    }
    session->Touch();
    return session;
  }

  void CreateSession(const CreateSessionRequest* request, CreateSessionResponse* response,
                     CallDone done) {
    const StatusOr<std::shared_ptr<MasterContext>> context = Enter();
    if (!context.ok()) return Answer(context.status(), response, done);
    const std::string& id = request->request_id();
    auto creation = std::make_shared<Creation>();
    creation->waiting.emplace_back(response, std::move(done));
    if (!id.empty()) {
      std::shared_ptr<Creation> earlier;
      {
        MutexLock lock(mutex_);
        const auto [found, added] = creations_.try_emplace(id, creation);
        if (!added) earlier = found->second;
        if (earlier != nullptr && !earlier->settled) {
          earlier->waiting.push_back(std::move(creation->waiting[0]));
          return;
        }
      }
      if (earlier != nullptr) {
        earlier->Fill(response);
        creation->waiting[0].second(absl::OkStatus());
        return;
      }
    }
    (*context)->options.environment.scheduler->Schedule(
        [self = shared_from_this(), context = *context, request, creation] {
          self->Create(context, *request, creation);
        });
  }

  // Answers with what `work` gives; it takes long, so not on the caller's thread.
  template <typename Request, typename Response>
  void Work(const Request* request, Response* response, CallDone done,
            absl::AnyInvocable<Status(MasterSession&)> work) {
    const StatusOr<std::shared_ptr<MasterContext>> context = Enter();
    const StatusOr<std::shared_ptr<MasterSession>> session = Find(request->session_handle());
    if (!session.ok()) return Answer(session.status(), response, done);
    if (!context.ok()) return Answer(context.status(), response, done);
    (*context)->options.environment.scheduler->Schedule(
        [session = *session, response, done = std::move(done), work = std::move(work)]() mutable {
          Answer(work(*session), response, done);
        });
  }

  void CloseSession(const std::string& handle, const Status& reason,
                    absl::AnyInvocable<void()> done) {
    std::shared_ptr<MasterSession> session;
    {
      MutexLock lock(mutex_);
      const auto found = sessions_.find(handle);
      if (found != sessions_.end()) {
        session = std::move(found->second);
        sessions_.erase(found);
      }
    }
    if (session == nullptr) return done();
    session->End(reason, std::move(done));
  }

  void ListDevices(const ListDevicesRequest* request, ListDevicesResponse* response,
                   CallDone done) {
    const StatusOr<std::shared_ptr<MasterContext>> context = Enter();
    if (!context.ok()) return Answer(context.status(), response, done);
    if (!request->session_handle().empty()) {
      const StatusOr<std::shared_ptr<MasterSession>> session = Find(request->session_handle());
      if (session.ok()) {
        ListInto((*session)->devices(), (*session)->absent_tasks(), (*session)->options().own_task,
                 response);
      }
      return Answer(session.status(), response, done);
    }
    const MasterOptions& options = (*context)->options;
    const StatusOr<SessionSetup> setup = MakeSessionSetup(SessionSettings(), options);
    if (!setup.ok()) return Answer(setup.status(), response, done);
    (*context)->directory.Gather(setup->tasks, setup->own_task, options.inventory_bound,
                                 [context = *context, own_task = setup->own_task, response,
                                  done = std::move(done)](Inventory inventory) mutable {
                                   std::vector<DeviceInfo> devices;
                                   std::vector<std::string> absent;
                                   for (const auto& [task, life] : inventory.present) {
                                     devices.insert(devices.end(), life.devices.begin(),
                                                    life.devices.end());
                                   }
                                   for (const auto& [task, reason] : inventory.absent)
                                     absent.push_back(task);
                                   ListInto(devices, absent, own_task, response);
                                   Answer(absl::OkStatus(), response, done);
                                 });
  }

  void Reset(const ResetRequest* request, ResetResponse* response, CallDone done) {
    const StatusOr<std::shared_ptr<MasterContext>> context = Enter();
    if (!context.ok()) return Answer(context.status(), response, done);
    SessionSettings settings;
    if (!request->session_handle().empty()) {
      const StatusOr<std::shared_ptr<MasterSession>> session = Find(request->session_handle());
      if (!session.ok()) return Answer(session.status(), response, done);
      settings = (*session)->options().settings;
    }
    StatusOr<SessionSetup> setup = MakeSessionSetup(settings, (*context)->options);
    if (!setup.ok()) return Answer(setup.status(), response, done);
    const std::vector<std::string> filters(request->device_filters().begin(),
                                           request->device_filters().end());
    std::erase_if(setup->tasks,
                  [&](const auto& task) { return !MatchesFilters(task.first, filters); });
    (*context)->directory.Gather(
        std::move(setup->tasks), setup->own_task, (*context)->options.inventory_bound,
        [context = *context, request, response,
         done = std::move(done)](const Inventory& inventory) mutable {
          ResetTasks(inventory, {request->container().begin(), request->container().end()},
                     [context, response, done = std::move(done)](const Status& status) mutable {
                       Answer(status, response, done);
                     });
        });
  }

  void Shutdown(absl::AnyInvocable<void()> drained) {
    std::shared_ptr<MasterContext> context;
    std::map<std::string, std::shared_ptr<MasterSession>> sessions;
    Timers::Id timer;
    {
      MutexLock lock(mutex_);
      context = std::move(context_);
      context_ = nullptr;
      sessions.swap(sessions_);
      timer = std::exchange(lease_timer_, 0);
    }
    if (context == nullptr) return;
    if (timer != 0) context->options.environment.timers->Cancel(timer);
    context->drained = std::move(drained);
    for (const auto& [handle, session] : sessions) {
      session->End(Cancelled(name_, " is shutting down"), [session = session] {});
    }
  }

  Usage usage() const {
    std::vector<std::shared_ptr<MasterSession>> sessions;
    {
      MutexLock lock(mutex_);
      for (const auto& [handle, session] : sessions_) sessions.push_back(session);
    }
    Usage sum;
    for (const std::shared_ptr<MasterSession>& session : sessions) {
      const Usage usage = session->usage();
      sum.sessions += usage.sessions;
      sum.plans += usage.plans;
      sum.live_steps += usage.live_steps;
      sum.kept_replies += usage.kept_replies;
    }
    return sum;
  }

 private:
  // A CreateSession, for those who repeat it.
  struct Creation {
    std::vector<std::pair<CreateSessionResponse*, CallDone>> waiting;
    bool settled = false;
    Status status;
    std::string handle;
    int64_t version = 0;

    void Fill(CreateSessionResponse* response) const {
      SetStatus(status, response->mutable_status());
      response->set_session_handle(handle);
      response->set_graph_version(version);
    }
  };

  void Create(const std::shared_ptr<MasterContext>& context, const CreateSessionRequest& request,
              const std::shared_ptr<Creation>& creation) {
    StatusOr<SessionSetup> setup = MakeSessionSetup(request.settings(), context->options);
    if (!setup.ok()) return Settle(request, *creation, setup.status());
    auto graph = std::make_shared<Graph>(context->options.ops);
    if (Status status = ImportGraphDef(request.graph_def(), *graph); !status.ok()) {
      return Settle(request, *creation, Annotate(status, name_));
    }
    MasterSession::Options options;
    Entropy& entropy = *context->options.environment.entropy;
    while (options.id == 0) options.id = entropy.Next();
    options.handle = absl::StrFormat("%016x%016x", entropy.Next(), entropy.Next());
    options.settings = request.settings();
    options.own_task = setup->own_task;
    options.planner = std::move(setup->planner);
    options.idle_lease = request.settings().idle_lease_seconds() > 0
                             ? absl::Seconds(request.settings().idle_lease_seconds())
                             : context->options.idle_lease;
    const auto session =
        std::make_shared<MasterSession>(context, std::move(options), std::move(graph));
    context->directory.Gather(
        std::move(setup->tasks), setup->own_task, context->options.inventory_bound,
        [self = shared_from_this(), session, creation, &request](Inventory inventory) {
          self->OnInventory(session, creation, request, std::move(inventory));
        });
  }

  void OnInventory(const std::shared_ptr<MasterSession>& session,
                   const std::shared_ptr<Creation>& creation, const CreateSessionRequest& request,
                   Inventory inventory) {
    if (inventory.present.empty()) {
      const auto& [task, reason] = *inventory.absent.begin();
      return Settle(request, *creation,
                    Unavailable("no task of the cluster answers; ", task, ": ", reason.message()));
    }
    session->Init(std::move(inventory));
    const std::string& handle = session->options().handle;
    {
      MutexLock lock(mutex_);
      creation->handle = handle;
      creation->version = session->graph_version();
      if (context_ != nullptr) {
        sessions_[handle] = session;
        ArmLease(*context_);
      }
    }
    const Status still_here = Enter().status();
    if (!still_here.ok()) session->End(still_here, [session] {});
    Settle(request, *creation, still_here);
  }

  void Settle(const CreateSessionRequest& request, Creation& creation, const Status& status) {
    std::vector<std::pair<CreateSessionResponse*, CallDone>> waiting;
    {
      MutexLock lock(mutex_);
      creation.settled = true;
      creation.status = status;
      waiting.swap(creation.waiting);
      if (!request.request_id().empty()) {
        created_.push_back(request.request_id());
        if (created_.size() > kMostCreateRequests) {
          creations_.erase(created_.front());
          created_.pop_front();
        }
      }
    }
    for (auto& [response, done] : waiting) {
      creation.Fill(response);
      done(absl::OkStatus());
    }
  }

  static void ListInto(const std::vector<DeviceInfo>& devices,
                       const std::vector<std::string>& absent, const std::string& own_task,
                       ListDevicesResponse* response) {
    for (const DeviceInfo& device : devices) {
      const bool own = device.name.TaskString() == own_task;
      DeviceToProto(device, own ? response->add_local_device() : response->add_remote_device());
    }
    for (const std::string& task : absent) response->add_absent_task(task);
  }

  // Looks four times in the shortest lease; only while there are sessions.
  void ArmLease(const MasterContext& context) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (lease_timer_ != 0 || sessions_.empty()) return;
    absl::Duration shortest = absl::InfiniteDuration();
    for (const auto& [handle, session] : sessions_) {
      shortest = std::min(shortest, session->options().idle_lease);
    }
    const absl::Duration period = std::max(shortest / 4, absl::Milliseconds(10));
    lease_timer_ = context.options.environment.timers->After(period, [weak = weak_from_this()] {
      if (const std::shared_ptr<Impl> self = weak.lock()) self->CheckLeases();
    });
  }

  void CheckLeases() {
    const StatusOr<std::shared_ptr<MasterContext>> context = Enter();
    if (!context.ok()) return;
    const int64_t now = (*context)->options.environment.clock->NowNanos();
    std::vector<std::pair<std::string, absl::Duration>> idle;
    {
      MutexLock lock(mutex_);
      lease_timer_ = 0;
      for (const auto& [handle, session] : sessions_) {
        const absl::Duration lease = session->options().idle_lease;
        if (session->IsIdleSince(now - absl::ToInt64Nanoseconds(lease))) {
          idle.emplace_back(handle, lease);
        }
      }
      ArmLease(**context);
    }
    for (const auto& [handle, lease] : idle) {
      CloseSession(handle,
                   Aborted("the session was idle for more than ", absl::FormatDuration(lease)),
                   [] {});
    }
  }

  const std::string name_;
  mutable Mutex mutex_;
  std::shared_ptr<MasterContext> context_ ABSL_GUARDED_BY(mutex_);  // null: shut down
  std::map<std::string, std::shared_ptr<MasterSession>> sessions_ ABSL_GUARDED_BY(mutex_);
  // By the client's request id. What they hold changes under `mutex_` until they are settled.
  std::map<std::string, std::shared_ptr<Creation>> creations_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::string> created_ ABSL_GUARDED_BY(mutex_);  // settled, oldest first
  Timers::Id lease_timer_ ABSL_GUARDED_BY(mutex_) = 0;
};

Master::Master(MasterOptions options) : impl_(std::make_shared<Impl>(std::move(options))) {}

Master::~Master() { impl_->Shutdown(nullptr); }

void Master::Shutdown(absl::AnyInvocable<void()> drained) { impl_->Shutdown(std::move(drained)); }

Master::Usage Master::usage() const { return impl_->usage(); }

void Master::CreateSession(const CreateSessionRequest* request, CreateSessionResponse* response,
                           const CallOptions&, CallDone done) {
  impl_->CreateSession(request, response, std::move(done));
}

void Master::ExtendSession(const ExtendSessionRequest* request, ExtendSessionResponse* response,
                           const CallOptions&, CallDone done) {
  impl_->Work(request, response, std::move(done), [request, response](MasterSession& session) {
    const StatusOr<int64_t> version = session.Extend(*request);
    if (version.ok()) response->set_new_graph_version(*version);
    return version.status();
  });
}

void Master::RunStep(const RunStepRequest* request, RunStepResponse* response,
                     const CallOptions& options, CallDone done) {
  const StatusOr<std::shared_ptr<MasterSession>> session = impl_->Find(request->session_handle());
  if (session.ok()) return (*session)->RunStep(request, response, options, std::move(done));
  response->set_status_code(static_cast<int>(session.status().code()));
  response->set_status_error_message(std::string(session.status().message()));
  done(request->store_errors_in_response_body() ? absl::OkStatus() : session.status());
}

void Master::Prepare(const PrepareRequest* request, PrepareResponse* response, const CallOptions&,
                     CallDone done) {
  const StatusOr<std::shared_ptr<MasterSession>> session = impl_->Find(request->session_handle());
  if (!session.ok()) return Answer(session.status(), response, done);
  (*session)->Prepare(request, response, std::move(done));
}

void Master::RunPrepared(const RunPreparedRequest* request, RunPreparedResponse* response,
                         const CallOptions& options, CallDone done) {
  const StatusOr<std::shared_ptr<MasterSession>> session = impl_->Find(request->session_handle());
  if (!session.ok()) return Answer(session.status(), response, done);
  (*session)->RunPrepared(request, response, options, std::move(done));
}

void Master::DescribeStep(const DescribeStepRequest* request, DescribeStepResponse* response,
                          const CallOptions&, CallDone done) {
  impl_->Work(request, response, std::move(done), [request, response](MasterSession& session) {
    return session.Describe(request->step_handle(), response);
  });
}

void Master::CloseSession(const CloseSessionRequest* request, CloseSessionResponse* response,
                          const CallOptions&, CallDone done) {
  impl_->CloseSession(
      request->session_handle(), Cancelled("the session was closed"),
      [response, done = std::move(done)]() mutable { Answer(absl::OkStatus(), response, done); });
}

void Master::ListDevices(const ListDevicesRequest* request, ListDevicesResponse* response,
                         const CallOptions&, CallDone done) {
  impl_->ListDevices(request, response, std::move(done));
}

void Master::Reset(const ResetRequest* request, ResetResponse* response, const CallOptions&,
                   CallDone done) {
  impl_->Reset(request, response, std::move(done));
}

}  // namespace millrace
