#include "distributed/session_plans.h"

#include <algorithm>

#include "distributed/task_call.h"

namespace millrace {
namespace {

constexpr absl::Duration kCleanUpTimeout = absl::Seconds(2);

// An absent task that a node asks for, while no device of a present one would do.
struct AbsentRequest {
  std::string node;
  std::string request;
  std::string task;
};

std::vector<AbsentRequest> FindAbsentRequests(const Graph& graph, const StepSignature& signature,
                                              absl::Span<const DeviceInfo> devices,
                                              const std::map<std::string, Status>& absent) {
  std::vector<AbsentRequest> found;
  const StatusOr<PrunedGraph> pruned = Prune(graph, signature);
  if (!pruned.ok()) return found;
  std::map<std::string, bool> checked;  // by request: the same few stand at many nodes
  for (NodeId id = 0; id < pruned->graph.num_ids(); ++id) {
    if (!pruned->graph.IsLive(id)) continue;
    const Node& node = *pruned->graph.node(id);
    if (node.requested_device().empty()) continue;
    if (!checked.emplace(node.requested_device(), true).second) continue;
    const StatusOr<DeviceName> request = DeviceName::Parse(node.requested_device());
    if (!request.ok()) continue;
    const bool there = std::any_of(devices.begin(), devices.end(), [&](const DeviceInfo& device) {
      return device.name.Matches(*request);
    });
    if (there) continue;
    for (const auto& [task, reason] : absent) {
      const StatusOr<DeviceName> name = DeviceName::Parse(task);
      if (!name.ok()) continue;
      DeviceName place;  // the request without its device
      place.job = request->job;
      place.task = request->task;
      if ((place.job || place.task) && name->Matches(place)) {
        found.push_back({node.name(), node.requested_device(), task});
      }
    }
  }
  return found;
}

}  // namespace

// A plan on its way to the workers.
struct SessionPlans::Registration {
  std::shared_ptr<MasterPlan> plan;
  std::set<std::string> tasks;
  Mutex mutex;
  size_t left ABSL_GUARDED_BY(mutex) = 0;
  Status error ABSL_GUARDED_BY(mutex);
};

SessionPlans::SessionPlans(std::shared_ptr<MasterContext> context, Options options,
                           Inventory inventory)
    : context_(std::move(context)),
      options_(std::move(options)),
      inventory_(std::move(inventory)) {}

void SessionPlans::Prepare(std::shared_ptr<const Graph> graph, const StepSignature& signature,
                           bool keep, Done done) {
  StatusOr<std::shared_ptr<MasterPlan>> result = std::shared_ptr<MasterPlan>();
  {
    MutexLock lock(mutex_);
    if (!ended_.ok()) {
      result = ended_;
    } else {
      const auto [found, added] = entries_.try_emplace(signature.Key());
      Entry& entry = found->second;
      entry.keep = entry.keep || keep;
      entry.last_use = ++uses_;
      if (entry.plan != nullptr) {
        if (keep) kept_[entry.plan->id()] = entry.plan;
        result = entry.plan;
      } else {
        entry.waiting.push_back(std::move(done));
        if (!added) return;
        context_->options.environment.scheduler->Schedule(
            [self = shared_from_this(), graph = std::move(graph), signature] {
              self->Plan(graph, signature, /*retried=*/false);
            });
        return;
      }
    }
  }
  done(std::move(result));
}

void SessionPlans::Plan(std::shared_ptr<const Graph> graph, const StepSignature& signature,
                        bool retried) {
  PlannerOptions planner = options_.planner;
  uint64_t id;
  {
    MutexLock lock(mutex_);
    id = ++last_plan_;
    for (const auto& [name, decision] : pins_) planner.placer.pinned.emplace(name, decision);
  }
  StatusOr<PlannedStep> planned =
      PlanStep(*graph, signature, devices(), *context_->options.kernels, planner);
  if (!planned.ok()) {
    if (LookForAbsent(graph, signature, retried)) return;
    return Settle(signature.Key(), planned.status());
  }
  planned->report.absent_tasks = absent_tasks();
  {
    MutexLock lock(mutex_);
    pins_.merge(PinsOf(planned->placed, planned->report.decisions));
  }
  StatusOr<std::shared_ptr<MasterPlan>> plan = MasterPlan::Create(
      id, *std::move(planned), *graph, [this](const std::string& task) { return WatchOf(task); });
  if (!plan.ok()) return Settle(signature.Key(), plan.status());
  Register(*std::move(plan));
}

bool SessionPlans::LookForAbsent(std::shared_ptr<const Graph> graph, const StepSignature& signature,
                                 bool retried) {
  std::map<std::string, Status> absent;
  {
    MutexLock lock(mutex_);
    absent = inventory_.absent;
  }
  const std::vector<AbsentRequest> requests =
      FindAbsentRequests(*graph, signature, devices(), absent);
  if (requests.empty()) return false;
  if (retried) {
    const AbsentRequest& first = requests[0];
    const Status& reason = absent[first.task];
    Settle(signature.Key(), Unavailable("node '", first.node, "' is to run on ", first.request,
                                        ", but ", first.task, " is absent: ", reason.message()));
    return true;
  }
  // They may have started since the session looked.
  std::map<std::string, std::string> wanted;
  {
    MutexLock lock(mutex_);
    for (const AbsentRequest& request : requests) {
      wanted[request.task] = inventory_.addresses[request.task];
    }
  }
  context_->directory.Gather(
      {wanted.begin(), wanted.end()}, options_.own_task, context_->options.inventory_bound,
      [self = shared_from_this(), graph = std::move(graph), signature](Inventory found) {
        {
          MutexLock lock(self->mutex_);
          for (const auto& [task, life] : found.present) {
            self->inventory_.present.emplace(task, life);
            self->inventory_.absent.erase(task);
          }
          for (const auto& [task, reason] : found.absent) self->inventory_.absent[task] = reason;
        }
        self->context_->options.environment.scheduler->Schedule(
            [self, graph, signature] { self->Plan(graph, signature, /*retried=*/true); });
      });
  return true;
}

StatusOr<std::shared_ptr<TaskWatch>> SessionPlans::WatchOf(const std::string& task) {
  MutexLock lock(mutex_);
  if (!ended_.ok()) return ended_;
  const auto life = inventory_.present.find(task);
  if (life == inventory_.present.end())
    return Internal("the plan uses ", task, ", which is absent");
  SessionTask& known = tasks_[task];
  if (known.watch == nullptr) {
    known.watch = context_->monitor->Watch(life->second, options_.session, options_.ended_below);
    known.peers.insert(task);
  }
  return known.watch;
}

void SessionPlans::Register(std::shared_ptr<MasterPlan> plan) {
  const auto registration = std::make_shared<Registration>();
  registration->plan = plan;
  const size_t parts = plan->parts().size();
  for (const MasterPlan::Part& part : plan->parts()) registration->tasks.insert(part.task);
  if (parts == 0) return Settle(plan->signature().Key(), plan);
  {
    MutexLock lock(registration->mutex);
    registration->left = parts;
  }
  for (size_t i = 0; i < parts; ++i) {
    bool known;
    {
      MutexLock lock(mutex_);
      const SessionTask& task = tasks_[plan->parts()[i].task];
      known = task.created && std::includes(task.peers.begin(), task.peers.end(),
                                            registration->tasks.begin(), registration->tasks.end());
    }
    if (known) {
      RegisterWithWorker(registration, i);
    } else {
      CreateOnWorker(registration, i);
    }
  }
}

void SessionPlans::CreateOnWorker(const std::shared_ptr<Registration>& registration, size_t part) {
  const MasterPlan::Part& to = registration->plan->parts()[part];
  CreateWorkerSessionRequest request;
  request.set_incarnation(to.watch->life().incarnation);
  request.set_session(options_.session);
  request.set_task(to.task);
  for (const MasterPlan::Part& other : registration->plan->parts()) {
    Peer* peer = request.add_peer();
    peer->set_task(other.task);
    peer->set_address(other.watch->life().address);
    peer->set_incarnation(other.watch->life().incarnation);
  }
  {
    // Before it is sent: if the session ends meanwhile, this worker is told.
    MutexLock lock(mutex_);
    tasks_[to.task].created = true;
  }
  CallTask(to.watch->life().worker, to.task, &WorkerInterface::CreateSession, std::move(request),
           context_->options.connect_bound, to.watch->down(),
           [self = shared_from_this(), registration, part](const Status& status,
                                                           CreateWorkerSessionResponse&) {
             if (!status.ok()) return self->OnRegistered(registration, part, status);
             {
               MutexLock lock(self->mutex_);
               const std::string& task = registration->plan->parts()[part].task;
               self->tasks_[task].peers.insert(registration->tasks.begin(),
                                               registration->tasks.end());
             }
             self->RegisterWithWorker(registration, part);
           });
}

void SessionPlans::RegisterWithWorker(const std::shared_ptr<Registration>& registration,
                                      size_t part) {
  const MasterPlan::Part& to = registration->plan->parts()[part];
  RegisterPlanRequest request;
  registration->plan->ToRegisterRequest(to, &request);
  request.set_incarnation(to.watch->life().incarnation);
  request.set_session(options_.session);
  // Kernels may take any time to be made; a task that is down ends the call.
  CallTask(
      to.watch->life().worker, to.task, &WorkerInterface::RegisterPlan, std::move(request),
      absl::InfiniteDuration(), to.watch->down(),
      [self = shared_from_this(), registration, part](const Status& status, RegisterPlanResponse&) {
        self->OnRegistered(registration, part, status);
      });
}

void SessionPlans::OnRegistered(const std::shared_ptr<Registration>& registration, size_t /*part*/,
                                const Status& status) {
  Status error;
  {
    MutexLock lock(registration->mutex);
    if (!status.ok() && registration->error.ok()) registration->error = status;
    if (--registration->left > 0) return;
    error = registration->error;
  }
  const std::string key = registration->plan->signature().Key();
  if (!error.ok()) {
    Deregister(*registration->plan);
    return Settle(key, error);
  }
  Settle(key, registration->plan);
}

void SessionPlans::Settle(const std::string& key, StatusOr<std::shared_ptr<MasterPlan>> plan) {
  std::vector<Done> waiting;
  std::vector<std::shared_ptr<MasterPlan>> evicted;
  {
    MutexLock lock(mutex_);
    const auto found = entries_.find(key);
    if (found == entries_.end()) return;
    Entry& entry = found->second;
    waiting = std::move(entry.waiting);
    entry.waiting.clear();
    if (!ended_.ok()) plan = ended_;
    if (plan.ok()) {
      entry.plan = *plan;
      if (entry.keep) kept_[(*plan)->id()] = *plan;
    } else {
      entries_.erase(found);
    }
    // Those that no client holds a handle of: the least recently used goes.
    while (true) {
      int count = 0;
      auto oldest = entries_.end();
      for (auto other = entries_.begin(); other != entries_.end(); ++other) {
        if (other->second.keep || other->second.plan == nullptr) continue;
        ++count;
        if (oldest == entries_.end() || other->second.last_use < oldest->second.last_use) {
          oldest = other;
        }
      }
      if (count <= context_->options.cached_plans) break;
      evicted.push_back(std::move(oldest->second.plan));
      entries_.erase(oldest);
    }
  }
  for (const std::shared_ptr<MasterPlan>& plan_out : evicted) Deregister(*plan_out);
  for (Done& done : waiting) done(plan);
}

void SessionPlans::Deregister(const MasterPlan& plan) {
  for (const MasterPlan::Part& part : plan.parts()) {
    DeregisterPlanRequest request;
    request.set_incarnation(part.watch->life().incarnation);
    request.set_session(options_.session);
    request.set_plan(plan.id());
    CallTask(part.watch->life().worker, part.task, &WorkerInterface::DeregisterPlan,
             std::move(request), kCleanUpTimeout, part.watch->down(),
             [](const Status&, DeregisterPlanResponse&) {});
  }
}

StatusOr<std::shared_ptr<MasterPlan>> SessionPlans::Find(uint64_t handle) const {
  MutexLock lock(mutex_);
  if (!ended_.ok()) return ended_;
  const auto found = kept_.find(handle);
  if (found == kept_.end()) return NotFound("the session has no prepared step ", handle);
  return found->second;
}

std::vector<DeviceInfo> SessionPlans::devices() const {
  MutexLock lock(mutex_);
  std::vector<DeviceInfo> devices;
  for (const auto& [task, life] : inventory_.present) {
    devices.insert(devices.end(), life.devices.begin(), life.devices.end());
  }
  return devices;
}

std::vector<std::string> SessionPlans::absent_tasks() const {
  MutexLock lock(mutex_);
  std::vector<std::string> tasks;
  for (const auto& [task, reason] : inventory_.absent) tasks.push_back(task);
  return tasks;
}

int SessionPlans::num_plans() const {
  MutexLock lock(mutex_);
  return static_cast<int>(entries_.size());
}

void SessionPlans::End(const Status& reason, absl::AnyInvocable<void()> done) {
  struct Ending {
    Mutex mutex;
    size_t left ABSL_GUARDED_BY(mutex) = 1;
    absl::AnyInvocable<void()> done ABSL_GUARDED_BY(mutex);
    std::map<std::string, Entry> entries;
    std::map<uint64_t, std::shared_ptr<MasterPlan>> kept;
    std::map<std::string, SessionTask> tasks;

    void Answered() {
      absl::AnyInvocable<void()> last;
      {
        MutexLock lock(mutex);
        if (--left > 0) return;
        last = std::move(done);
      }
      last();
    }
  };
  const auto ending = std::make_shared<Ending>();
  {
    MutexLock lock(mutex_);
    if (ended_.ok()) {
      ended_ = reason;
      ending->tasks.swap(tasks_);
      ending->kept.swap(kept_);
      // Those being made end by themselves and find the session ended.
      for (auto entry = entries_.begin(); entry != entries_.end();) {
        const auto next = std::next(entry);
        if (entry->second.plan != nullptr) ending->entries.insert(entries_.extract(entry));
        entry = next;
      }
    }
  }
  {
    MutexLock lock(ending->mutex);
    ending->done = std::move(done);
    ending->left += ending->tasks.size();
  }
  for (const auto& [task, known] : ending->tasks) {
    if (!known.created) {
      ending->Answered();
      continue;
    }
    DeleteWorkerSessionRequest request;
    request.set_incarnation(known.watch->life().incarnation);
    request.set_session(options_.session);
    CallTask(known.watch->life().worker, task, &WorkerInterface::DeleteSession, std::move(request),
             kCleanUpTimeout, known.watch->down(),
             [ending](const Status&, DeleteWorkerSessionResponse&) { ending->Answered(); });
  }
  ending->Answered();
}

}  // namespace millrace
