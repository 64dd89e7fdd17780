#include "tools/bench/millrace_system.h"

#include <algorithm>

#include "core/base/file.h"
#include "core/graph/graph_def.h"
#include "python_free_api/runtime.h"
#include "tools/bench/system.h"

namespace millrace::bench {
namespace {

Tensor FeedTensor(const FeedSpec& feed) {
  const StatusOr<Shape> shape = Shape::Create(feed.shape);
  if (!shape.ok()) return Tensor();
  if (feed.dtype == "int32") {
    return Tensor::Of<int32_t>(*shape, Int32Pattern(feed.elements()));
  }
  return Tensor::Of<float>(*shape, FloatPattern(feed.elements()));
}

class MillraceGraph final : public LoadedGraph {
 public:
  explicit MillraceGraph(std::unique_ptr<Session> session) : session_(std::move(session)) {}

  StatusOr<int> Prepare(const std::vector<FeedSpec>& feeds, const std::vector<std::string>& fetches,
                        const std::vector<std::string>& targets) override {
    Step step;
    StepSignature signature;
    for (const FeedSpec& feed : feeds) {
      signature.feeds.push_back(feed.name);
      step.feeds.push_back(FeedTensor(feed));
    }
    signature.fetches = fetches;
    signature.targets = targets;
    MR_ASSIGN_OR_RETURN(step.prepared, session_->Prepare(signature));
    steps_.push_back(std::move(step));
    return static_cast<int>(steps_.size()) - 1;
  }

  Status Run(int step, double* value) override {
    MR_ASSIGN_OR_RETURN(const RunResult result,
                        session_->Run(*steps_[step].prepared, steps_[step].feeds));
    if (!result.fetches.empty() && result.fetches[0].dtype() == DType::kFloat &&
        result.fetches[0].num_elements() > 0) {
      *value = result.fetches[0].data<float>()[0];
    }
    return absl::OkStatus();
  }

 private:
  struct Step {
    std::shared_ptr<PreparedStep> prepared;
    std::vector<Tensor> feeds;
  };
  std::unique_ptr<Session> session_;
  std::vector<Step> steps_;
};

}  // namespace

StatusOr<StepTimes> TimeMillrace(const StepRun& run, const Clock& clock) {
  std::unique_ptr<Runtime> runtime;
  return TimeSteps(run, clock, [&]() -> StatusOr<std::unique_ptr<LoadedGraph>> {
    RuntimeOptions options;
    options.threads = run.threads;
    MR_ASSIGN_OR_RETURN(runtime, Runtime::Create(options));
    const Environment& environment = runtime->environment();
    MR_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(*environment.files, run.graph));
    MR_ASSIGN_OR_RETURN(const Graph graph, ParseGraph(bytes, run.graph, runtime->ops()));
    SessionOptions session;
    session.target = run.target;
    session.cluster = run.cluster;
    MR_ASSIGN_OR_RETURN(std::unique_ptr<Session> opened, runtime->OpenSession(graph, session));
    return std::unique_ptr<LoadedGraph>(std::make_unique<MillraceGraph>(std::move(opened)));
  });
}

}  // namespace millrace::bench
