#ifndef TESTS_DISTRIBUTED_GRPC_FAKE_SERVICES_H_
#define TESTS_DISTRIBUTED_GRPC_FAKE_SERVICES_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "distributed/worker_interface.h"

namespace millrace {

// What the fakes share: they write calls down, and answer at once, or, while `hold` is set, when
// the call is cancelled.
class FakeService {
 public:
  void set_hold(bool hold) {
    MutexLock lock(mutex_);
    hold_ = hold;
  }
  std::vector<std::string> calls() const {
    MutexLock lock(mutex_);
    return calls_;
  }
  std::vector<Status> cancellations() const {
    MutexLock lock(mutex_);
    return cancellations_;
  }
  absl::Duration last_timeout() const {
    MutexLock lock(mutex_);
    return last_timeout_;
  }

 protected:
  void Answer(const std::string& call, const CallOptions& options, CallDone done) {
    {
      MutexLock lock(mutex_);
      calls_.push_back(call);
      last_timeout_ = options.timeout;
    }
    if (!held()) {
      done(absl::OkStatus());
      return;
    }
    options.cancellation->OnCancel([this, done = std::move(done)](const Status& reason) mutable {
      {
        MutexLock lock(mutex_);
        cancellations_.push_back(reason);
      }
      done(reason);
    });
  }

 private:
  bool held() const {
    MutexLock lock(mutex_);
    return hold_;
  }

  mutable Mutex mutex_;
  bool hold_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::string> calls_ ABSL_GUARDED_BY(mutex_);
  std::vector<Status> cancellations_ ABSL_GUARDED_BY(mutex_);
  absl::Duration last_timeout_ ABSL_GUARDED_BY(mutex_);
};

// Each method notes its name and something of the request, and puts it into the response.
class FakeMaster final : public MasterInterface, public FakeService {
 public:
  void CreateSession(const CreateSessionRequest* request, CreateSessionResponse* response,
                     const CallOptions& options, CallDone done) override {
    response->set_session_handle("handle of " + request->target());
    SetStatus(error, response->mutable_status());
    Answer("CreateSession", options, std::move(done));
  }
  void ExtendSession(const ExtendSessionRequest* request, ExtendSessionResponse* response,
                     const CallOptions& options, CallDone done) override {
    response->set_new_graph_version(request->current_graph_version() + 1);
    SetStatus(error, response->mutable_status());
    Answer("ExtendSession", options, std::move(done));
  }
  void RunStep(const RunStepRequest* request, RunStepResponse* response, const CallOptions& options,
               CallDone done) override {
    for (const std::string& fetch : request->fetch()) {
      NamedTensor* tensor = response->add_tensor();
      tensor->set_name(fetch);
      if (request->feed_size() > 0) *tensor->mutable_tensor() = request->feed(0).tensor();
    }
    response->set_status_code(static_cast<int>(error.code()));
    response->set_status_error_message(std::string(error.message()));
    Answer("RunStep", options, std::move(done));
  }
  void Prepare(const PrepareRequest* request, PrepareResponse* response, const CallOptions& options,
               CallDone done) override {
    response->set_step_handle(static_cast<uint64_t>(request->fetch_size()));
    Answer("Prepare", options, std::move(done));
  }
  void RunPrepared(const RunPreparedRequest* request, RunPreparedResponse* response,
                   const CallOptions& options, CallDone done) override {
    response->set_step_id(request->step_handle());
    *response->mutable_fetch() = request->feed();
    Answer("RunPrepared", options, std::move(done));
  }
  void DescribeStep(const DescribeStepRequest* request, DescribeStepResponse* response,
                    const CallOptions& options, CallDone done) override {
    response->set_report_json(std::to_string(request->step_handle()));
    Answer("DescribeStep", options, std::move(done));
  }
  void CloseSession(const CloseSessionRequest*, CloseSessionResponse* response,
                    const CallOptions& options, CallDone done) override {
    SetStatus(error, response->mutable_status());
    Answer("CloseSession", options, std::move(done));
  }
  void ListDevices(const ListDevicesRequest*, ListDevicesResponse* response,
                   const CallOptions& options, CallDone done) override {
    response->add_absent_task("/job:a/task:0");
    SetStatus(error, response->mutable_status());
    Answer("ListDevices", options, std::move(done));
  }
  void Reset(const ResetRequest*, ResetResponse* response, const CallOptions& options,
             CallDone done) override {
    SetStatus(error, response->mutable_status());
    Answer("Reset", options, std::move(done));
  }

  Status error;  // in the body; set before calls
};

class FakeWorker final : public WorkerInterface, public FakeService {
 public:
  void GetStatus(const GetStatusRequest* request, GetStatusResponse* response,
                 const CallOptions& options, CallDone done) override {
    response->set_build_version("saw " + request->build_version());
    Answer("GetStatus", options, std::move(done));
  }
  void CreateSession(const CreateWorkerSessionRequest* request,
                     CreateWorkerSessionResponse* response, const CallOptions& options,
                     CallDone done) override {
    SetStatus(Aborted("incarnation ", request->incarnation()), response->mutable_status());
    Answer("CreateSession", options, std::move(done));
  }
  void DeleteSession(const DeleteWorkerSessionRequest*, DeleteWorkerSessionResponse*,
                     const CallOptions& options, CallDone done) override {
    Answer("DeleteSession", options, std::move(done));
  }
  void RegisterPlan(const RegisterPlanRequest*, RegisterPlanResponse*, const CallOptions& options,
                    CallDone done) override {
    Answer("RegisterPlan", options, std::move(done));
  }
  void DeregisterPlan(const DeregisterPlanRequest*, DeregisterPlanResponse*,
                      const CallOptions& options, CallDone done) override {
    Answer("DeregisterPlan", options, std::move(done));
  }
  void RunStep(const WorkerRunStepRequest* request, WorkerRunStepResponse* response,
               const CallOptions& options, CallDone done) override {
    *response->mutable_fetch() = request->feed();
    Answer("RunStep", options, std::move(done));
  }
  void AbortStep(const AbortStepRequest*, AbortStepResponse*, const CallOptions& options,
                 CallDone done) override {
    Answer("AbortStep", options, std::move(done));
  }
  void Heartbeat(const HeartbeatRequest* request, HeartbeatResponse* response,
                 const CallOptions& options, CallDone done) override {
    response->set_live_steps(request->session_size());
    Answer("Heartbeat", options, std::move(done));
  }
  void Reset(const WorkerResetRequest*, WorkerResetResponse*, const CallOptions& options,
             CallDone done) override {
    Answer("Reset", options, std::move(done));
  }
};

}  // namespace millrace

#endif  // TESTS_DISTRIBUTED_GRPC_FAKE_SERVICES_H_
