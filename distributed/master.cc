#include "distributed/master.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/graph/graph_def.h"
#include "distributed/device_proto.h"
#include "distributed/inventory.h"
#include "distributed/master_session.h"
#include "distributed/task_call.h"

namespace millrace {
namespace {

using Tasks = std::vector<std::pair<std::string, std::string>>;  // name, address

constexpr absl::Duration kResetTimeout = absl::Seconds(10);
constexpr size_t kMostCreateRequests = 1024;

template <typename Response>
void Answer(const Status& status, Response* response, CallDone& done) {
  SetStatus(status, response->mutable_status());
  done(absl::OkStatus());
}

bool MatchesFilters(const std::string& task,
                    const google::protobuf::RepeatedPtrField<std::string>& filters) {
  if (filters.empty()) return true;
  const StatusOr<DeviceName> name = DeviceName::Parse(task);
  return std::any_of(filters.begin(), filters.end(), [&](const std::string& filter) {
    StatusOr<DeviceName> pattern = DeviceName::Parse(filter);
    if (!pattern.ok() || !name.ok()) return false;
    pattern->type.reset();
    pattern->index.reset();
    return name->Matches(*pattern);
  });
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
        ListInto((*session)->devices(), (*session)->absent_tasks(),
                 (*session)->options().own_task, response);
      }
      return Answer(session.status(), response, done);
    }
    const MasterOptions& options = (*context)->options;
    const std::string own_task = OwnTask(options.cluster, options).value_or(options.task);
    (*context)->directory.Gather(
        TasksOf(options.cluster, own_task), own_task, options.inventory_bound,
        [context = *context, own_task, response,
         done = std::move(done)](Inventory inventory) mutable {
          std::vector<DeviceInfo> devices;
          std::vector<std::string> absent;
          for (const auto& [task, life] : inventory.present) {
            devices.insert(devices.end(), life.devices.begin(), life.devices.end());
          }
          for (const auto& [task, reason] : inventory.absent) absent.push_back(task);
          ListInto(devices, absent, own_task, response);
          Answer(absl::OkStatus(), response, done);
        });
  }

  void Reset(const ResetRequest* request, ResetResponse* response, CallDone done) {
    const StatusOr<std::shared_ptr<MasterContext>> context = Enter();
    if (!context.ok()) return Answer(context.status(), response, done);
    const MasterOptions& options = (*context)->options;
    ClusterSpec cluster = options.cluster;
    std::string own_task = OwnTask(cluster, options).value_or(options.task);
    if (!request->session_handle().empty()) {
      const StatusOr<std::shared_ptr<MasterSession>> session = Find(request->session_handle());
      if (!session.ok()) return Answer(session.status(), response, done);
      cluster = (*session)->options().cluster;
      own_task = (*session)->options().own_task;
    }
    Tasks tasks = TasksOf(cluster, own_task);
    std::erase_if(tasks, [&](const auto& task) {
      return !MatchesFilters(task.first, request->device_filters());
    });
    (*context)->directory.Gather(
        std::move(tasks), own_task, options.inventory_bound,
        [context = *context, request, response, done = std::move(done)](
            Inventory inventory) mutable {
          ResetPresent(std::move(context), inventory, *request, response, std::move(done));
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

  static StatusOr<ClusterSpec> ClusterOf(const SessionSettings& settings,
                                         const MasterOptions& options) {
    if (settings.cluster().empty()) return options.cluster;
    StatusOr<ClusterSpec> cluster = ClusterSpec::Parse(settings.cluster());
    if (!cluster.ok()) return Annotate(cluster.status(), "the session's cluster");
    return cluster;
  }

  // What the cluster calls the master's own task.
  static StatusOr<std::string> OwnTask(const ClusterSpec& cluster, const MasterOptions& options) {
    if (cluster.empty()) return options.task;
    bool has_name = false;
    for (const auto& [task, address] : cluster.Tasks()) {
      if (!options.address.empty() && address == options.address) return task;
      has_name = has_name || task == options.task;
    }
    if (has_name) return options.task;
    return InvalidArgument("the cluster ", cluster.ToString(), " has no task that is this master: ",
                           options.task, options.address.empty() ? "" : ", which listens at ",
                           options.address);
  }

  static Tasks TasksOf(const ClusterSpec& cluster, const std::string& own_task) {
    if (cluster.empty()) return {{own_task, ""}};
    return cluster.Tasks();
  }

  static StatusOr<PlannerOptions> PlannerOf(const SessionSettings& settings,
                                            const std::string& own_task,
                                            const MasterOptions& options) {
    PlannerOptions planner = options.planner;
    planner.placer.soft_placement =
        planner.placer.soft_placement || settings.soft_placement();
    if (settings.policy().empty()) {
      if (planner.placer.default_device == DeviceName()) {
        MR_ASSIGN_OR_RETURN(planner.placer.default_device, DeviceName::Parse(own_task));
      }
      return planner;
    }
    planner.placer.default_device = DeviceName();
    planner.policy = nullptr;
    const auto found = options.policies.find(settings.policy());
    if (found != options.policies.end()) {
      planner.policy = found->second;
    } else if (settings.policy() != "round_robin") {
      std::set<std::string> names = {"round_robin"};
      for (const auto& [name, policy] : options.policies) names.insert(name);
      return InvalidArgument("there is no placement policy '", settings.policy(), "'; there is ",
                             absl::StrJoin(names, ", "));
    }
    return planner;
  }

  void Create(const std::shared_ptr<MasterContext>& context, const CreateSessionRequest& request,
              const std::shared_ptr<Creation>& creation) {
    StatusOr<ClusterSpec> cluster = ClusterOf(request.settings(), context->options);
    if (!cluster.ok()) return Settle(request, *creation, cluster.status());
    const StatusOr<std::string> own_task = OwnTask(*cluster, context->options);
    if (!own_task.ok()) return Settle(request, *creation, own_task.status());
    StatusOr<PlannerOptions> planner = PlannerOf(request.settings(), *own_task, context->options);
    if (!planner.ok()) return Settle(request, *creation, planner.status());
    auto graph = std::make_shared<Graph>(context->options.ops);
    if (Status status = ImportGraphDef(request.graph_def(), *graph); !status.ok()) {
      return Settle(request, *creation, Annotate(status, name_));
    }
    MasterSession::Options options;
    Entropy& entropy = *context->options.environment.entropy;
    while (options.id == 0) options.id = entropy.Next();
    options.handle = absl::StrFormat("%016x%016x", entropy.Next(), entropy.Next());
    options.settings = request.settings();
    options.own_task = *own_task;
    Tasks tasks = TasksOf(*cluster, *own_task);
    options.cluster = *std::move(cluster);
    options.planner = *std::move(planner);
    options.idle_lease = request.settings().idle_lease_seconds() > 0
                             ? absl::Seconds(request.settings().idle_lease_seconds())
                             : context->options.idle_lease;
    const auto session =
        std::make_shared<MasterSession>(context, std::move(options), std::move(graph));
    context->directory.Gather(
        std::move(tasks), *own_task, context->options.inventory_bound,
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

  static void ResetPresent(std::shared_ptr<MasterContext> context, const Inventory& inventory,
                           const ResetRequest& request, ResetResponse* response, CallDone done) {
    struct Resetting {
      std::shared_ptr<MasterContext> context;
      ResetResponse* response;
      CallDone done;
      Mutex mutex;
      size_t left ABSL_GUARDED_BY(mutex) = 1;
      Status error ABSL_GUARDED_BY(mutex);

      void Answered(const Status& status) {
        Status outcome;
        {
          MutexLock lock(mutex);
          if (!status.ok() && error.ok()) error = status;
          if (--left > 0) return;
          outcome = error;
        }
        Answer(outcome, response, done);
      }
    };
    const auto resetting = std::make_shared<Resetting>();
    resetting->context = std::move(context);
    resetting->response = response;
    resetting->done = std::move(done);
    {
      MutexLock lock(resetting->mutex);
      resetting->left += inventory.present.size();
      for (const auto& [task, reason] : inventory.absent) {
        // Where nobody listens there is nothing to drop; who is silent may still hold variables.
        if (reason.code() == absl::StatusCode::kUnavailable) continue;
        if (resetting->error.ok()) resetting->error = Annotate(reason, StrCat("reset of ", task));
      }
    }
    for (const auto& [task, life] : inventory.present) {
      WorkerResetRequest reset;
      reset.set_incarnation(life.incarnation);
      *reset.mutable_container() = request.container();
      CallTask(life.worker, task, &WorkerInterface::Reset, std::move(reset), kResetTimeout,
               Cancellation(), [resetting](const Status& status, WorkerResetResponse&) {
                 resetting->Answered(status);
               });
    }
    resetting->Answered(absl::OkStatus());
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
      CloseSession(handle, Aborted("the session was idle for more than ",
                                   absl::FormatDuration(lease)),
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
  const StatusOr<std::shared_ptr<MasterSession>> session = impl_->Find(request->session_handle());
  if (!session.ok()) return Answer(session.status(), response, done);
  const StatusOr<int64_t> version = (*session)->Extend(*request);
  if (version.ok()) response->set_new_graph_version(*version);
  Answer(version.status(), response, done);
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
  const StatusOr<std::shared_ptr<MasterSession>> session = impl_->Find(request->session_handle());
  if (!session.ok()) return Answer(session.status(), response, done);
  Answer((*session)->Describe(request->step_handle(), response), response, done);
}

void Master::CloseSession(const CloseSessionRequest* request, CloseSessionResponse* response,
                          const CallOptions&, CallDone done) {
  impl_->CloseSession(request->session_handle(), Cancelled("the session was closed"),
                      [response, done = std::move(done)]() mutable {
                        Answer(absl::OkStatus(), response, done);
                      });
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
