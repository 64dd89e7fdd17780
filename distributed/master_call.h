#ifndef DISTRIBUTED_MASTER_CALL_H_
#define DISTRIBUTED_MASTER_CALL_H_

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "core/base/scheduler.h"
#include "distributed/master_interface.h"

namespace millrace {

template <typename Request, typename Response>
using MasterMethod = void (MasterInterface::*)(const Request*, Response*, const CallOptions&,
                                               CallDone);

struct MasterCallOptions {
  Environment environment;
  // A call that did not arrive, as far as the transport knows, is sent again for so long.
  absl::Duration patience = absl::ZeroDuration();
  absl::Duration timeout = absl::InfiniteDuration();  // of each try
  std::optional<Cancellation> cancellation;           // the client's
};

// One call of a master, with its repeats. Owns request and response. Made by std::make_shared.
template <typename Request, typename Response>
class MasterCall : public std::enable_shared_from_this<MasterCall<Request, Response>> {
 public:
  // Runs once. The status is the transport's; in the body is the call's.
  using Done = absl::AnyInvocable<void(const Status&, Response&)>;

  MasterCall(std::shared_ptr<MasterInterface> master, MasterMethod<Request, Response> method,
             Request request, MasterCallOptions options)
      : master_(std::move(master)),
        method_(method),
        request_(std::move(request)),
        options_(std::move(options)) {}

  // REQUIRES: called once.
  void Start(Done done) {
    done_ = std::move(done);
    if (options_.cancellation.has_value()) {
      // Not the client's own: that one may go as soon as the client has its answer.
      cancel_id_ = options_.cancellation->OnCancel(
          [end = end_](const Status& reason) mutable { end.Cancel(reason); });
    }
    Send();
  }

 private:
  static constexpr absl::Duration kFirstPause = absl::Milliseconds(20);
  static constexpr absl::Duration kLongestPause = absl::Seconds(1);

  void Send() {
    CallOptions options;
    options.timeout = options_.timeout;
    options.cancellation = &end_;
    options.unsent = &unsent_;
    unsent_ = false;
    sent_nanos_ = options_.environment.clock->NowNanos();
    ((*master_).*method_)(
        &request_, &response_, options,
        [self = this->shared_from_this()](const Status& status) { self->OnDone(status); });
  }

  void OnDone(const Status& status) {
    if (status.code() == absl::StatusCode::kUnavailable && !end_.cancelled()) {
      const int64_t now = options_.environment.clock->NowNanos();
      // What waited for a connection has had that time already.
      if (first_failure_nanos_ < 0) first_failure_nanos_ = unsent_ ? sent_nanos_ : now;
      const absl::Duration left = options_.patience - absl::Nanoseconds(now - first_failure_nanos_);
      if (left > absl::ZeroDuration()) {
        response_.Clear();
        options_.environment.timers->After(std::min(pause_, left),
                                           [self = this->shared_from_this()] { self->Send(); });
        pause_ = std::min(2 * pause_, kLongestPause);
        return;
      }
    }
    Status outcome = status;
    if (!outcome.ok() && end_.cancelled()) outcome = end_.reason();
    if (options_.cancellation.has_value()) options_.cancellation->Remove(cancel_id_);
    Done done = std::move(done_);
    done(outcome, response_);
  }

  const std::shared_ptr<MasterInterface> master_;
  const MasterMethod<Request, Response> method_;
  const Request request_;
  Response response_;
  MasterCallOptions options_;
  Cancellation end_;
  Cancellation::Id cancel_id_ = 0;
  bool unsent_ = false;
  int64_t sent_nanos_ = 0;
  int64_t first_failure_nanos_ = -1;
  absl::Duration pause_ = kFirstPause;
  Done done_;
};

// Starts a call that owns itself.
template <typename Request, typename Response>
void CallMaster(std::shared_ptr<MasterInterface> master, MasterMethod<Request, Response> method,
                Request request, MasterCallOptions options,
                typename MasterCall<Request, Response>::Done done) {
  std::make_shared<MasterCall<Request, Response>>(std::move(master), method, std::move(request),
                                                  std::move(options))
      ->Start(std::move(done));
}

}  // namespace millrace

#endif  // DISTRIBUTED_MASTER_CALL_H_
