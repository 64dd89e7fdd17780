#include "distributed/grpc/caller.h"

#include "absl/strings/string_view.h"

namespace millrace {

GrpcCaller::GrpcCaller(std::string task, const std::string& address,
                       const GrpcCallerOptions& options) {
  auto shared = std::make_shared<Shared>();
  shared->task = std::move(task);
  shared->address = address;
  shared->options = options;
  shared->channel = NewGrpcChannel(address, GrpcTraffic::kControl, options.keepalive);
  shared_ = std::move(shared);
}

GrpcCaller::InFlight::InFlight(const char* method, std::shared_ptr<const Shared> shared,
                               const CallOptions& options, CallDone done)
    : method_(method), shared_(std::move(shared)), options_(options), done_(std::move(done)) {}

bool GrpcCaller::InFlight::Begin() {
  SetTimeout(options_.timeout, context);
  if (options_.cancellation != nullptr) {
    if (options_.cancellation->cancelled()) {
      Finish(grpc::Status(grpc::StatusCode::CANCELLED, ""));
      return false;
    }
    // Before the call starts this takes effect when it does.
    cancellation_ = options_.cancellation->OnCancel(
        [self = shared_from_this()](const Status&) { self->context.TryCancel(); });
  }
  // On a connection that stands, the call fails when that breaks. Otherwise it waits for one, which
  // gRPC would let it do for ever.
  if (shared_->channel->GetState(/*try_to_connect=*/true) != GRPC_CHANNEL_READY) {
    context.set_wait_for_ready(true);
    Watch();
  }
  return true;
}

void GrpcCaller::InFlight::Watch() {
  MutexLock lock(mutex_);
  if (finished_) return;
  timer_ = shared_->options.environment.timers->After(
      shared_->options.connect_timeout, [weak = weak_from_this()] {
        const auto self = weak.lock();
        if (self == nullptr) return;
        // A call that is under way ends with its connection: so without one it is still waiting.
        if (self->shared_->channel->GetState(/*try_to_connect=*/false) == GRPC_CHANNEL_READY) {
          self->Watch();
          return;
        }
        {
          MutexLock lock(self->mutex_);
          if (self->finished_) return;
          self->not_connected_ = true;
        }
        self->context.TryCancel();
      });
}

void GrpcCaller::InFlight::Finish(const grpc::Status& status) {
  bool not_connected;
  {
    MutexLock lock(mutex_);
    finished_ = true;
    not_connected = not_connected_;
    if (timer_ != 0) shared_->options.environment.timers->Cancel(timer_);
  }
  if (options_.cancellation != nullptr) options_.cancellation->Remove(cancellation_);
  // "RunStep"
  const absl::string_view path(method_);
  const absl::string_view name = path.substr(path.rfind('/') + 1);
  const std::string where = StrCat(
      name, " to ", shared_->task.empty() ? "" : StrCat(shared_->task, " at "), shared_->address);
  Status told = FromGrpc(status);
  if (not_connected && absl::IsCancelled(told)) {
    if (options_.unsent != nullptr) *options_.unsent = true;
    told = Unavailable("no connection within ",
                       absl::FormatDuration(shared_->options.connect_timeout));
  } else if (absl::IsCancelled(told) && options_.cancellation != nullptr &&
             options_.cancellation->cancelled()) {
    told = options_.cancellation->reason();
  }
  CallDone done = std::move(done_);
  done(Annotate(told, where));
}

}  // namespace millrace
