#include "tests/testing/wire.h"

#include <algorithm>

namespace millrace::testing {

// One call, seen from its caller.
struct Wire::Call {
  Mutex mutex;
  bool answered ABSL_GUARDED_BY(mutex) = false;
  bool broken ABSL_GUARDED_BY(mutex) = false;  // its host is gone, and says nothing any more
  CallDone done ABSL_GUARDED_BY(mutex);
  Timers::Id timer ABSL_GUARDED_BY(mutex) = 0;
  Cancellation* cancellation = nullptr;  // the caller's
  Cancellation::Id cancellation_id ABSL_GUARDED_BY(mutex) = 0;
  Cancellation server;  // what the callee is given
  Timers* timers = nullptr;
  std::function<void()> forget;

  // The first answer counts. `fill` runs before `done`, if it is the first.
  void Answer(const Status& status, const std::function<void()>& fill) {
    CallDone callback;
    Timers::Id timeout;
    Cancellation::Id id;
    {
      MutexLock lock(mutex);
      if (answered) return;
      answered = true;
      callback = std::move(done);
      timeout = timer;
      id = cancellation_id;
    }
    if (timeout != 0) timers->Cancel(timeout);
    if (cancellation != nullptr) cancellation->Remove(id);
    forget();
    if (fill) fill();
    callback(status);
    // Whoever serves it hears that nobody waits any more.
    if (!status.ok()) server.Cancel(Cancelled("the caller is gone"));
  }
};

Wire::Wire(const Environment& environment, uint64_t seed, absl::Duration max_delay)
    : environment_(environment), max_delay_(max_delay), random_(seed) {}

Wire::~Wire() = default;

void Wire::Listen(const std::string& address, MasterInterface* master, WorkerInterface* worker) {
  SetState(address, State::kGone);
  MutexLock lock(mutex_);
  Host& host = hosts_[address];
  host.master = master;
  host.worker = worker;
  host.state = State::kUp;
}

void Wire::SetState(const std::string& address, State state) {
  std::map<uint64_t, std::shared_ptr<Call>> broken;
  std::vector<std::function<void()>> held;
  {
    MutexLock lock(mutex_);
    Host& host = hosts_[address];
    host.state = state;
    if (state == State::kGone) {
      broken = host.in_flight;
      host.held.clear();
      host.master = nullptr;
      host.worker = nullptr;
    }
    if (state == State::kUp) held.swap(host.held);
  }
  for (const auto& [id, call] : broken) {
    {
      MutexLock lock(call->mutex);
      call->broken = true;
    }
    environment_.scheduler->Schedule([call = call, address] {
      call->Answer(Unavailable(address, ": connection reset"), nullptr);
    });
  }
  for (std::function<void()>& task : held) environment_.scheduler->Schedule(std::move(task));
}

void Wire::SetFaults(
    std::function<Fault(const std::string& address, const std::string& method)> faults) {
  MutexLock lock(mutex_);
  faults_ = std::move(faults);
}

int Wire::calls(const std::string& method) const {
  MutexLock lock(mutex_);
  const auto found = calls_.find(method);
  return found == calls_.end() ? 0 : found->second;
}

absl::Duration Wire::Delay() {
  MutexLock lock(mutex_);
  return max_delay_ * (static_cast<double>(random_() % 1024) / 1024);
}

void Wire::Forget(const std::string& address, uint64_t id) {
  MutexLock lock(mutex_);
  hosts_[address].in_flight.erase(id);
}

// Runs `task` after a message's time, or when the host is not silent any more.
void Wire::After(const std::string& address, std::function<void()> task) {
  const auto arrive = [this, address, task = std::move(task)] {
    {
      MutexLock lock(mutex_);
      Host& host = hosts_[address];
      if (host.state == State::kSilent) {
        host.held.push_back(task);
        return;
      }
    }
    task();
  };
  const absl::Duration delay = Delay();
  if (delay == absl::ZeroDuration()) {
    environment_.scheduler->Schedule(arrive);
  } else {
    environment_.timers->After(delay, arrive);
  }
}

std::shared_ptr<Wire::Call> Wire::Begin(const std::string& who, const std::string& address,
                                        const char* method, const CallOptions& options,
                                        CallDone done, Fault* fault) {
  auto call = std::make_shared<Call>();
  call->cancellation = options.cancellation;
  call->timers = environment_.timers;
  {
    MutexLock lock(call->mutex);
    call->done = std::move(done);
  }
  {
    // Whole before it is seen: from here on its host may go, which answers it.
    MutexLock lock(mutex_);
    ++calls_[method];
    const uint64_t id = ++last_call_;
    call->forget = [this, address, id] { Forget(address, id); };
    hosts_[address].in_flight[id] = call;
    if (faults_) *fault = faults_(address, method);
  }
  if (options.timeout != absl::InfiniteDuration()) {
    MutexLock lock(call->mutex);
    if (!call->answered) {
      call->timer = environment_.timers->After(options.timeout, [call, who, method] {
        call->Answer(DeadlineExceeded(method, " to ", who, ": no answer in time"), nullptr);
      });
    }
  }
  if (options.cancellation != nullptr) {
    // Through the scheduler: `done` does not run within this call.
    const Cancellation::Id registered = options.cancellation->OnCancel(
        [call, scheduler = environment_.scheduler](const Status& reason) {
          scheduler->Schedule([call, reason] { call->Answer(reason, nullptr); });
        });
    MutexLock lock(call->mutex);
    call->cancellation_id = registered;
  }
  return call;
}

template <typename Interface, typename Request, typename Response>
void Wire::Send(const std::string& who, const std::string& address, const char* method_name,
                void (Interface::*method)(const Request*, Response*, const CallOptions&, CallDone),
                Interface* Host::*callee, const Request* request, Response* response,
                const CallOptions& options, CallDone done) {
  // First: from Begin on the call may be answered, and then the request is gone.
  const auto copy = std::make_shared<const Request>(*request);
  Fault fault;
  const std::shared_ptr<Call> call =
      Begin(who, address, method_name, options, std::move(done), &fault);
  struct Message {
    Request request;
    Response response;
    Cancellation end;
  };
  const auto deliver = [this, call, who, address, method, callee, response, fault, copy] {
    Interface* target = nullptr;
    {
      MutexLock lock(mutex_);
      Host& host = hosts_[address];
      if (host.state == State::kUp) target = host.*callee;
    }
    if (target == nullptr || fault.lose_request) {
      call->Answer(Unavailable(who, " at ", address, ": connection refused"), nullptr);
      return;
    }
    const auto message = std::make_shared<Message>(Message{*copy, {}, call->server});
    CallOptions server_options;
    server_options.cancellation = &message->end;
    (target->*method)(&message->request, &message->response, server_options,
                      [this, call, message, address, response, fault](const Status& status) {
                        After(address, [call, message, response, status, fault] {
                          {
                            MutexLock lock(call->mutex);
                            if (call->broken) return;
                          }
                          if (fault.lose_response) {
                            call->Answer(Unavailable("connection reset"), nullptr);
                          } else {
                            call->Answer(status, [&] { *response = message->response; });
                          }
                        });
                      });
  };
  After(address, deliver);
  if (fault.twice) After(address, deliver);
}

class Wire::MasterProxy final : public MasterInterface {
 public:
  MasterProxy(Wire& wire, std::string address) : wire_(wire), address_(std::move(address)) {}

  void CreateSession(const CreateSessionRequest* request, CreateSessionResponse* response,
                     const CallOptions& options, CallDone done) override {
    Send("CreateSession", &MasterInterface::CreateSession, request, response, options,
         std::move(done));
  }
  void ExtendSession(const ExtendSessionRequest* request, ExtendSessionResponse* response,
                     const CallOptions& options, CallDone done) override {
    Send("ExtendSession", &MasterInterface::ExtendSession, request, response, options,
         std::move(done));
  }
  void RunStep(const RunStepRequest* request, RunStepResponse* response, const CallOptions& options,
               CallDone done) override {
    Send("MasterRunStep", &MasterInterface::RunStep, request, response, options, std::move(done));
  }
  void Prepare(const PrepareRequest* request, PrepareResponse* response, const CallOptions& options,
               CallDone done) override {
    Send("Prepare", &MasterInterface::Prepare, request, response, options, std::move(done));
  }
  void RunPrepared(const RunPreparedRequest* request, RunPreparedResponse* response,
                   const CallOptions& options, CallDone done) override {
    Send("RunPrepared", &MasterInterface::RunPrepared, request, response, options, std::move(done));
  }
  void DescribeStep(const DescribeStepRequest* request, DescribeStepResponse* response,
                    const CallOptions& options, CallDone done) override {
    Send("DescribeStep", &MasterInterface::DescribeStep, request, response, options,
         std::move(done));
  }
  void CloseSession(const CloseSessionRequest* request, CloseSessionResponse* response,
                    const CallOptions& options, CallDone done) override {
    Send("CloseSession", &MasterInterface::CloseSession, request, response, options,
         std::move(done));
  }
  void ListDevices(const ListDevicesRequest* request, ListDevicesResponse* response,
                   const CallOptions& options, CallDone done) override {
    Send("ListDevices", &MasterInterface::ListDevices, request, response, options, std::move(done));
  }
  void Reset(const ResetRequest* request, ResetResponse* response, const CallOptions& options,
             CallDone done) override {
    Send("MasterReset", &MasterInterface::Reset, request, response, options, std::move(done));
  }

 private:
  template <typename Request, typename Response>
  void Send(const char* name,
            void (MasterInterface::*method)(const Request*, Response*, const CallOptions&,
                                            CallDone),
            const Request* request, Response* response, const CallOptions& options, CallDone done) {
    wire_.Send("the master", address_, name, method, &Host::master, request, response, options,
               std::move(done));
  }

  Wire& wire_;
  const std::string address_;
};

class Wire::WorkerProxy final : public WorkerInterface {
 public:
  WorkerProxy(Wire& wire, std::string task, std::string address)
      : wire_(wire), task_(std::move(task)), address_(std::move(address)) {}

  void GetStatus(const GetStatusRequest* request, GetStatusResponse* response,
                 const CallOptions& options, CallDone done) override {
    Send("GetStatus", &WorkerInterface::GetStatus, request, response, options, std::move(done));
  }
  void CreateSession(const CreateWorkerSessionRequest* request,
                     CreateWorkerSessionResponse* response, const CallOptions& options,
                     CallDone done) override {
    Send("CreateWorkerSession", &WorkerInterface::CreateSession, request, response, options,
         std::move(done));
  }
  void DeleteSession(const DeleteWorkerSessionRequest* request,
                     DeleteWorkerSessionResponse* response, const CallOptions& options,
                     CallDone done) override {
    Send("DeleteSession", &WorkerInterface::DeleteSession, request, response, options,
         std::move(done));
  }
  void RegisterPlan(const RegisterPlanRequest* request, RegisterPlanResponse* response,
                    const CallOptions& options, CallDone done) override {
    Send("RegisterPlan", &WorkerInterface::RegisterPlan, request, response, options,
         std::move(done));
  }
  void DeregisterPlan(const DeregisterPlanRequest* request, DeregisterPlanResponse* response,
                      const CallOptions& options, CallDone done) override {
    Send("DeregisterPlan", &WorkerInterface::DeregisterPlan, request, response, options,
         std::move(done));
  }
  void RunStep(const WorkerRunStepRequest* request, WorkerRunStepResponse* response,
               const CallOptions& options, CallDone done) override {
    Send("RunStep", &WorkerInterface::RunStep, request, response, options, std::move(done));
  }
  void AbortStep(const AbortStepRequest* request, AbortStepResponse* response,
                 const CallOptions& options, CallDone done) override {
    Send("AbortStep", &WorkerInterface::AbortStep, request, response, options, std::move(done));
  }
  void Heartbeat(const HeartbeatRequest* request, HeartbeatResponse* response,
                 const CallOptions& options, CallDone done) override {
    Send("Heartbeat", &WorkerInterface::Heartbeat, request, response, options, std::move(done));
  }
  void Reset(const WorkerResetRequest* request, WorkerResetResponse* response,
             const CallOptions& options, CallDone done) override {
    Send("WorkerReset", &WorkerInterface::Reset, request, response, options, std::move(done));
  }

 private:
  template <typename Request, typename Response>
  void Send(const char* name,
            void (WorkerInterface::*method)(const Request*, Response*, const CallOptions&,
                                            CallDone),
            const Request* request, Response* response, const CallOptions& options, CallDone done) {
    wire_.Send(task_, address_, name, method, &Host::worker, request, response, options,
               std::move(done));
  }

  Wire& wire_;
  const std::string task_;
  const std::string address_;
};

std::unique_ptr<MasterInterface> Wire::ConnectMaster(const std::string& address) {
  return std::make_unique<MasterProxy>(*this, address);
}

std::unique_ptr<WorkerInterface> Wire::ConnectWorker(const std::string& task,
                                                     const std::string& address) {
  return std::make_unique<WorkerProxy>(*this, task, address);
}

}  // namespace millrace::testing
