#ifndef DISTRIBUTED_MASTER_INTERFACE_H_
#define DISTRIBUTED_MASTER_INTERFACE_H_

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "core/base/cancellation.h"
#include "core/base/status.h"
#include "distributed/master.pb.h"

namespace millrace {

// How long a call may take and what ends it early.
struct CallOptions {
  absl::Duration timeout = absl::InfiniteDuration();
  Cancellation* cancellation = nullptr;  // outlives the call; may be null
  // Set if the call fails since there was no connection all the time: it was never sent. Outlives
  // the call; may be null.
  bool* unsent = nullptr;
};

// Runs once, with the transport's status: OK if a response came, in whose body the outcome is.
using CallDone = absl::AnyInvocable<void(Status)>;

// A master, in this process or behind gRPC. Request and response outlive the call. Thread-safe;
// nothing blocks. Each call is said in master.proto.
class MasterInterface {
 public:
  virtual ~MasterInterface() = default;
  virtual void CreateSession(const CreateSessionRequest* request, CreateSessionResponse* response,
                             const CallOptions& options, CallDone done) = 0;
  virtual void ExtendSession(const ExtendSessionRequest* request, ExtendSessionResponse* response,
                             const CallOptions& options, CallDone done) = 0;
  virtual void RunStep(const RunStepRequest* request, RunStepResponse* response,
                       const CallOptions& options, CallDone done) = 0;
  virtual void Prepare(const PrepareRequest* request, PrepareResponse* response,
                       const CallOptions& options, CallDone done) = 0;
  virtual void RunPrepared(const RunPreparedRequest* request, RunPreparedResponse* response,
                           const CallOptions& options, CallDone done) = 0;
  virtual void DescribeStep(const DescribeStepRequest* request, DescribeStepResponse* response,
                            const CallOptions& options, CallDone done) = 0;
  virtual void CloseSession(const CloseSessionRequest* request, CloseSessionResponse* response,
                            const CallOptions& options, CallDone done) = 0;
  virtual void ListDevices(const ListDevicesRequest* request, ListDevicesResponse* response,
                           const CallOptions& options, CallDone done) = 0;
  virtual void Reset(const ResetRequest* request, ResetResponse* response,
                     const CallOptions& options, CallDone done) = 0;
};

// Between absl::Status and its form in a response's body.
void SetStatus(const Status& status, StatusMessage* message);
Status ToStatus(const StatusMessage& message);

}  // namespace millrace

#endif  // DISTRIBUTED_MASTER_INTERFACE_H_
