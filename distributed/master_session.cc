#include "distributed/master_session.h"

#include <algorithm>

#include "core/framework/tensor_proto.h"
#include "core/graph/graph_def.h"
#include "distributed/step_coordinator.h"

namespace millrace {
namespace {

// Which of the calls a request id came by.
constexpr int kByRunPrepared = 0;
constexpr int kByRunStep = 1;

bool HasAllNodes(const Graph& graph, const GraphDef& def) {
  return std::all_of(def.node().begin(), def.node().end(), [&](const NodeDef& node) {
    const Node* known = graph.Find(node.name());
    return known != nullptr && known->op().name() == node.op();
  });
}

// The names in a fixed order, so that requests that differ in order alone share a plan.
StepSignature SignatureOf(const RunStepRequest& request) {
  StepSignature signature;
  for (const NamedTensor& feed : request.feed()) signature.feeds.push_back(feed.name());
  signature.fetches.assign(request.fetch().begin(), request.fetch().end());
  signature.targets.assign(request.target().begin(), request.target().end());
  std::sort(signature.feeds.begin(), signature.feeds.end());
  for (std::vector<std::string>* names : {&signature.fetches, &signature.targets}) {
    std::sort(names->begin(), names->end());
    names->erase(std::unique(names->begin(), names->end()), names->end());
  }
  return signature;
}

void FillResponse(const RunStepRequest& request, StepOutcome outcome, RunStepResponse* response) {
  response->set_status_code(static_cast<int>(outcome.status.code()));
  StatusMessage message;  // its text is fit for the wire
  SetStatus(outcome.status, &message);
  response->set_status_error_message(message.message());
  if (!outcome.status.ok()) return;
  const std::vector<std::string> fetches = SignatureOf(request).fetches;
  for (const std::string& name : request.fetch()) {
    const auto place = std::lower_bound(fetches.begin(), fetches.end(), name) - fetches.begin();
    NamedTensor* tensor = response->add_tensor();
    tensor->set_name(name);
    // A copy: a client may name a fetch twice.
    *tensor->mutable_tensor() = outcome.fetches[place];
  }
  if (request.options().trace_level() > 0) {
    *response->mutable_metadata()->mutable_step_stats() = std::move(outcome.stats);
  }
}

}  // namespace

MasterSession::MasterSession(std::shared_ptr<MasterContext> context, Options options,
                             std::shared_ptr<const Graph> graph)
    : context_(std::move(context)),
      options_(std::move(options)),
      replies_(std::make_shared<ReplyCache>(context_->options.replies)),
      graph_(std::move(graph)),
      last_touch_nanos_(context_->options.environment.clock->NowNanos()) {}

void MasterSession::Init(Inventory inventory) {
  SessionPlans::Options plans;
  plans.session = options_.id;
  plans.own_task = options_.own_task;
  plans.planner = options_.planner;
  plans.ended_below = [weak = weak_from_this()]() -> uint64_t {
    const std::shared_ptr<MasterSession> self = weak.lock();
    return self == nullptr ? 0 : self->EndedBelow();
  };
  plans_ = std::make_shared<SessionPlans>(context_, std::move(plans), std::move(inventory));
}

std::shared_ptr<const Graph> MasterSession::graph() const {
  MutexLock lock(mutex_);
  return graph_;
}

int64_t MasterSession::graph_version() const {
  MutexLock lock(mutex_);
  return graph_version_;
}

StatusOr<int64_t> MasterSession::Extend(const ExtendSessionRequest& request) {
  std::shared_ptr<const Graph> base;
  int64_t version;
  {
    MutexLock lock(mutex_);
    base = graph_;
    version = graph_version_;
  }
  const auto wrong_version = [&] {
    return FailedPrecondition("the session's graph has version ", version,
                              ", but the extension is for version ",
                              request.current_graph_version());
  };
  if (request.current_graph_version() != version) {
    const bool repeat =
        request.current_graph_version() + 1 == version && HasAllNodes(*base, request.graph_def());
    if (!repeat) return wrong_version();
    return version;
  }
  // Steps that are planned meanwhile go on with the old graph.
  auto grown = std::make_shared<Graph>(*base);
  MR_RETURN_IF_ERROR(ImportGraphDef(request.graph_def(), *grown));
  MutexLock lock(mutex_);
  if (graph_version_ != version) {
    version = graph_version_;
    return wrong_version();
  }
  graph_ = std::move(grown);
  return ++graph_version_;
}

void MasterSession::Prepare(const PrepareRequest* request, PrepareResponse* response,
                            CallDone done) {
  StepSignature signature;
  signature.feeds.assign(request->feed().begin(), request->feed().end());
  signature.fetches.assign(request->fetch().begin(), request->fetch().end());
  signature.targets.assign(request->target().begin(), request->target().end());
  plans_->Prepare(
      graph(), signature, /*keep=*/true,
      [response, done = std::move(done)](StatusOr<std::shared_ptr<MasterPlan>> plan) mutable {
        SetStatus(plan.status(), response->mutable_status());
        if (plan.ok()) {
          response->set_step_handle((*plan)->id());
          for (const MasterPlan::Feed& feed : (*plan)->feeds()) {
            TensorProto* spec = response->add_feed_spec();
            spec->set_dtype(DTypeToProto(feed.dtype));
            ShapeToProto(feed.shape, spec->mutable_tensor_shape());
          }
        }
        done(absl::OkStatus());
      });
}

MasterSession::StepSettings MasterSession::SettingsOf(const RunOptionsMessage& options) {
  StepSettings settings;
  settings.trace = options.trace_level() > 0;
  if (options.timeout_in_ms() > 0) settings.timeout = absl::Milliseconds(options.timeout_in_ms());
  return settings;
}

void MasterSession::RunPrepared(const RunPreparedRequest* request, RunPreparedResponse* response,
                                const CallOptions& options, CallDone done) {
  ReplyCache::Key key(kByRunPrepared, request->request_id());
  if (request->request_id() == 0) key = replies_->PrivateKey();
  const std::optional<Cancellation> stop = replies_->Join(
      key, options.cancellation, [response, done = std::move(done)](StepOutcome outcome) mutable {
        SetStatus(outcome.status, response->mutable_status());
        response->set_step_id(outcome.step);
        for (TensorProto& fetch : outcome.fetches) *response->add_fetch() = std::move(fetch);
        *response->mutable_step_stats() = std::move(outcome.stats);
        done(absl::OkStatus());
      });
  if (!stop.has_value()) return;
  const StatusOr<std::shared_ptr<MasterPlan>> plan = plans_->Find(request->step_handle());
  if (!plan.ok()) {
    StepOutcome outcome;
    outcome.status = plan.status();
    replies_->Finish(key, std::move(outcome));
    return;
  }
  Feeds feeds;
  for (const TensorProto& feed : request->feed()) feeds.push_back(&feed);
  StepSettings settings = SettingsOf(request->options());
  settings.timeout = std::min(settings.timeout, options.timeout);
  Run(*plan, feeds, settings, key, *stop);
}

void MasterSession::RunStep(const RunStepRequest* request, RunStepResponse* response,
                            const CallOptions& options, CallDone done) {
  ReplyCache::Key key(kByRunStep, static_cast<uint64_t>(request->request_id()));
  if (request->request_id() == 0) key = replies_->PrivateKey();
  const std::optional<Cancellation> stop =
      replies_->Join(key, options.cancellation,
                     [request, response, done = std::move(done)](StepOutcome outcome) mutable {
                       const Status status = outcome.status;
                       FillResponse(*request, std::move(outcome), response);
                       done(request->store_errors_in_response_body() ? absl::OkStatus() : status);
                     });
  if (!stop.has_value()) return;
  const auto fail = [this, key](const Status& status) {
    StepOutcome outcome;
    outcome.status = status;
    replies_->Finish(key, std::move(outcome));
  };
  if (!request->partial_run_handle().empty()) {
    return fail(Unimplemented("partial runs are not supported"));
  }
  StepSettings settings = SettingsOf(request->options());
  settings.timeout = std::min(settings.timeout, options.timeout);
  plans_->Prepare(graph(), SignatureOf(*request), /*keep=*/false,
                  [self = shared_from_this(), request, key, stop = *stop, settings,
                   fail](StatusOr<std::shared_ptr<MasterPlan>> plan) {
                    if (!plan.ok()) return fail(plan.status());
                    Feeds feeds;
                    for (const std::string& name : (*plan)->signature().feeds) {
                      for (const NamedTensor& feed : request->feed()) {
                        if (feed.name() != name) continue;
                        feeds.push_back(&feed.tensor());
                        break;
                      }
                    }
                    self->Run(*std::move(plan), feeds, settings, key, stop);
                  });
}

void MasterSession::Run(std::shared_ptr<MasterPlan> plan, const Feeds& feeds,
                        const StepSettings& settings, ReplyCache::Key key,
                        const Cancellation& stop) {
  StepOutcome refused;
  refused.status = plan->CheckFeeds(feeds);
  if (!refused.status.ok()) {
    replies_->Finish(key, std::move(refused));
    return;
  }
  StepCoordinatorOptions options;
  options.environment = context_->options.environment;
  options.session = options_.id;
  options.timeout = settings.timeout;
  options.independent_updates = options_.settings.independent_updates();
  uint64_t ended_below;
  {
    MutexLock lock(mutex_);
    options.step = ++last_step_;
    running_.insert(options.step);
    ended_below = *running_.begin();
  }
  std::vector<WorkerRunStepRequest> requests(plan->parts().size());
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].set_incarnation(plan->parts()[i].watch->life().incarnation);
    requests[i].set_session(options_.id);
    requests[i].set_plan(plan->id());
    requests[i].set_step(options.step);
    requests[i].set_trace(settings.trace);
    requests[i].set_ended_below(ended_below);
  }
  for (size_t i = 0; i < feeds.size(); ++i) {
    const int part = plan->feeds()[i].part;
    if (part < 0) continue;
    IndexedTensor* feed = requests[part].add_feed();
    feed->set_index(static_cast<int>(i));
    *feed->mutable_tensor() = *feeds[i];
  }
  const uint64_t step = options.step;
  const auto coordinator = std::make_shared<StepCoordinator>(std::move(plan), std::move(options));
  coordinator->Start(
      std::move(requests), stop,
      [replies = replies_, key](StepOutcome outcome) { replies->Finish(key, std::move(outcome)); },
      [self = shared_from_this(), step] { self->OnStepEnded(step); });
}

void MasterSession::OnStepEnded(uint64_t step) {
  {
    MutexLock lock(mutex_);
    running_.erase(step);
  }
  Touch();
}

uint64_t MasterSession::EndedBelow() const {
  MutexLock lock(mutex_);
  return running_.empty() ? last_step_ + 1 : *running_.begin();
}

Status MasterSession::Describe(uint64_t step_handle, DescribeStepResponse* response) const {
  MR_ASSIGN_OR_RETURN(const std::shared_ptr<MasterPlan> plan, plans_->Find(step_handle));
  ExportGraphDef(plan->planned().placed, response->mutable_placed_graph());
  response->set_report_json(plan->Report().ToJson());
  return absl::OkStatus();
}

void MasterSession::End(const Status& reason, absl::AnyInvocable<void()> done) {
  replies_->CancelAll(reason);
  plans_->End(reason, std::move(done));
}

void MasterSession::Touch() {
  const int64_t now = context_->options.environment.clock->NowNanos();
  MutexLock lock(mutex_);
  last_touch_nanos_ = std::max(last_touch_nanos_, now);
}

bool MasterSession::IsIdleSince(int64_t nanos) const {
  if (replies_->running() > 0) return false;
  MutexLock lock(mutex_);
  return running_.empty() && last_touch_nanos_ < nanos;
}

Master::Usage MasterSession::usage() const {
  Master::Usage usage;
  usage.sessions = 1;
  usage.plans = plans_->num_plans();
  usage.kept_replies = replies_->kept_replies();
  MutexLock lock(mutex_);
  usage.live_steps = static_cast<int>(running_.size());
  return usage;
}

}  // namespace millrace
