#ifndef TESTS_TESTING_WIRE_H_
#define TESTS_TESTING_WIRE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "core/base/scheduler.h"
#include "distributed/master_interface.h"
#include "distributed/worker_interface.h"

namespace millrace::testing {

// Carries control calls between the tasks of one process as a network would: each way takes a
// random time, requests and responses are copies, tasks can be gone or silent, messages can be
// lost or come twice. Thread-safe.
class Wire {
 public:
  enum class State { kUp, kGone, kSilent };

  // What a test does to one call. `method`: "RunStep".
  struct Fault {
    bool twice = false;          // the request is delivered twice
    bool lose_request = false;   // the caller gets Unavailable, the callee nothing
    bool lose_response = false;  // the caller gets Unavailable after the callee has answered
  };

  Wire(const Environment& environment, uint64_t seed, absl::Duration max_delay);
  ~Wire();

  // Who answers at `address` from now on. Not owned. Calls in flight to who was there before break.
  void Listen(const std::string& address, MasterInterface* master, WorkerInterface* worker);
  // kGone: connections are refused and those that are there break; kSilent: nothing comes back
  // until it is up again.
  void SetState(const std::string& address, State state);
  // Asked for each call to `address`.
  void SetFaults(
      std::function<Fault(const std::string& address, const std::string& method)> faults);

  std::unique_ptr<MasterInterface> ConnectMaster(const std::string& address);
  std::unique_ptr<WorkerInterface> ConnectWorker(const std::string& task,
                                                 const std::string& address);
  // How many calls of the method were made by clients.
  int calls(const std::string& method) const;

 private:
  struct Call;
  class MasterProxy;
  class WorkerProxy;
  struct Host {
    MasterInterface* master = nullptr;
    WorkerInterface* worker = nullptr;
    State state = State::kGone;
    std::map<uint64_t, std::shared_ptr<Call>> in_flight;
    std::vector<std::function<void()>> held;  // while it is silent
  };

  template <typename Interface, typename Request, typename Response>
  void Send(const std::string& who, const std::string& address, const char* method_name,
            void (Interface::*method)(const Request*, Response*, const CallOptions&, CallDone),
            Interface* Host::*callee, const Request* request, Response* response,
            const CallOptions& options, CallDone done);
  std::shared_ptr<Call> Begin(const std::string& who, const std::string& address,
                              const char* method, const CallOptions& options, CallDone done,
                              Fault* fault);
  void After(const std::string& address, std::function<void()> task);
  absl::Duration Delay();
  void Forget(const std::string& address, uint64_t id);

  const Environment environment_;
  const absl::Duration max_delay_;
  mutable Mutex mutex_;
  std::mt19937_64 random_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Host> hosts_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int> calls_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_call_ ABSL_GUARDED_BY(mutex_) = 0;
  std::function<Fault(const std::string&, const std::string&)> faults_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace millrace::testing

#endif  // TESTS_TESTING_WIRE_H_
