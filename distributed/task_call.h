#ifndef DISTRIBUTED_TASK_CALL_H_
#define DISTRIBUTED_TASK_CALL_H_

#include <memory>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/strings/match.h"
#include "distributed/worker_interface.h"

namespace millrace {

template <typename Request, typename Response>
using WorkerMethod = void (WorkerInterface::*)(const Request*, Response*, const CallOptions&,
                                               CallDone);

// Calls a worker and owns request and response meanwhile. `done` gets the transport's status, or
// the one in the response's body; errors name `task`. The call ends early, with the reason, when
// `end` is cancelled.
//
//   CallTask(life.worker, life.task, &WorkerInterface::AbortStep, std::move(request),
//            absl::Seconds(2), down, [](const Status& status, AbortStepResponse& response) {...});
template <typename Request, typename Response>
void CallTask(std::shared_ptr<WorkerInterface> worker, std::string task,
              WorkerMethod<Request, Response> method, Request request, absl::Duration timeout,
              Cancellation end,
              std::type_identity_t<absl::AnyInvocable<void(const Status&, Response&)>> done) {
  struct Call {
    std::shared_ptr<WorkerInterface> worker;
    std::string task;
    Request request;
    Response response;
    Cancellation end;
    absl::AnyInvocable<void(const Status&, Response&)> done;
  };
  auto call = std::make_shared<Call>(Call{
      std::move(worker), std::move(task), std::move(request), {}, std::move(end), std::move(done)});
  CallOptions options;
  options.timeout = timeout;
  options.cancellation = &call->end;
  Call& made = *call;
  ((*made.worker).*method)(&made.request, &made.response, options,
                           [call = std::move(call)](Status status) {
                             if (status.ok()) {
                               status = ToStatus(call->response.status());
                             } else if (call->end.cancelled()) {
                               status = call->end.reason();
                             }
                             if (!status.ok() && !absl::StrContains(status.message(), call->task)) {
                               status = Annotate(status, call->task);
                             }
                             call->done(status, call->response);
                           });
}

}  // namespace millrace

#endif  // DISTRIBUTED_TASK_CALL_H_
