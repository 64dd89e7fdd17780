#include "distributed/strategy/strategy_session.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/mutex.h"
#include "core/graph/merge.h"
#include "core/graph/verify.h"
#include "distributed/strategy/variable_layout.h"

namespace millrace {
namespace {

// Programs of one signature for different feed shapes; a training loop needs one or two.
constexpr size_t kMaxProgramsPerStep = 16;

Status Closed() { return FailedPrecondition("the session is closed"); }

// A program with the session that runs it.
struct Compiled {
  explicit Compiled(Program p) : program(std::move(p)) {}
  Program program;
  std::unique_ptr<Session> session;
  std::shared_ptr<PreparedStep> step;
};

class StrategyStep final : public PreparedStep {
 public:
  // `owner` tells steps of different sessions apart.
  StrategyStep(const Session* owner, StepSignature signature, PrunedGraph pruned,
               VariableLayout layout)
      : owner_(owner),
        signature_(std::move(signature)),
        pruned_(std::move(pruned)),
        layout_(std::move(layout)) {}

  const StepSignature& signature() const override { return signature_; }
  StatusOr<PlacementReport> Report() override {
    std::shared_ptr<Compiled> latest = Latest();
    if (latest == nullptr) {
      return FailedPrecondition(
          "the step is planned when it first runs, as its feeds have unknown extents");
    }
    return latest->step->Report();
  }
  const Graph& placed_graph() const override {
    std::shared_ptr<Compiled> latest = Latest();
    return latest == nullptr ? pruned_.graph : latest->step->placed_graph();
  }

  StatusOr<std::shared_ptr<Compiled>> For(const std::vector<Shape>& shapes,
                                          const StrategySessionOptions& options) {
    std::string key;
    for (const Shape& shape : shapes) absl::StrAppend(&key, shape.ToString(), ";");
    MutexLock lock(mutex_);
    if (closed_) return Closed();
    auto found = programs_.find(key);
    if (found != programs_.end()) return latest_ = found->second;
    if (programs_.size() >= kMaxProgramsPerStep) {
      return ResourceExhausted("a step was fed with ", programs_.size(),
                               " different sets of shapes, and each needs a program of its own: ",
                               "pad the batches to fewer sizes");
    }
    MR_ASSIGN_OR_RETURN(std::shared_ptr<Compiled> compiled, Compile(shapes, options));
    programs_[key] = compiled;
    return latest_ = compiled;
  }

  // No program is made from then on.
  std::vector<std::shared_ptr<Compiled>> Close() {
    MutexLock lock(mutex_);
    closed_ = true;
    std::vector<std::shared_ptr<Compiled>> all;
    for (auto& [key, compiled] : programs_) all.push_back(std::move(compiled));
    programs_.clear();
    latest_ = nullptr;
    return all;
  }

  const Session* owner() const { return owner_; }
  const PrunedGraph& pruned() const { return pruned_; }

 private:
  std::shared_ptr<Compiled> Latest() const {
    MutexLock lock(mutex_);
    return latest_;
  }

  StatusOr<std::shared_ptr<Compiled>> Compile(const std::vector<Shape>& shapes,
                                              const StrategySessionOptions& options) const {
    PrunedGraph pruned = pruned_;
    std::vector<std::pair<Port, PartialShape>> known;
    for (size_t i = 0; i < shapes.size(); ++i) known.emplace_back(pruned.feeds[i], shapes[i]);
    MR_RETURN_IF_ERROR(SpecializeShapes(pruned.graph, known));
    if (options.fold) MR_RETURN_IF_ERROR(options.fold(pruned));
    MR_ASSIGN_OR_RETURN(Program program, options.strategy->Rewrite(pruned, signature_));
    layout_.Apply(program.graph);
    MR_RETURN_IF_ERROR(
        Annotate(Verify(program.graph), StrCat("program of ", options.strategy->name())));
    if (options.on_program) options.on_program(signature_, program);
    auto compiled = std::make_shared<Compiled>(std::move(program));
    MR_ASSIGN_OR_RETURN(compiled->session, options.open(compiled->program.graph));
    MR_ASSIGN_OR_RETURN(compiled->step,
                        compiled->session->Prepare(compiled->program.loops[0].signature));
    return compiled;
  }

  const Session* const owner_;
  const StepSignature signature_;
  const PrunedGraph pruned_;
  const VariableLayout layout_;
  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<Compiled>> programs_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<Compiled> latest_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

class StrategySession final : public Session {
 public:
  StrategySession(const Graph& graph, StrategySessionOptions options)
      : options_(std::move(options)), ops_(graph.shared_ops()), graph_(graph) {}
  ~StrategySession() override { Close().IgnoreError(); }

  Status Extend(const Graph& graph) override {
    MR_RETURN_IF_ERROR(Verify(graph));
    MutexLock lock(mutex_);
    return MergeGraph(graph, graph_).status();
  }

  StatusOr<std::shared_ptr<PreparedStep>> Prepare(const StepSignature& signature) override {
    MR_ASSIGN_OR_RETURN(const std::shared_ptr<StrategyStep> step, StepFor(signature));
    std::vector<Shape> shapes;
    for (Port feed : step->pruned().feeds) {
      StatusOr<Shape> shape = step->pruned().graph.shape(feed).ToShape();
      // Planned once it is fed.
      if (!shape.ok()) return std::shared_ptr<PreparedStep>(step);
      shapes.push_back(*shape);
    }
    MR_RETURN_IF_ERROR(step->For(shapes, options_).status());
    return std::shared_ptr<PreparedStep>(step);
  }

  void RunAsync(PreparedStep& step, std::vector<Tensor> feeds, const RunOptions& options,
                Done done) override {
    StatusOr<Split> split = SplitFeeds(step, feeds);
    if (!split.ok()) return std::move(done)(split.status());
    // The program is kept until the step has ended.
    Compiled& compiled = *split->compiled;
    compiled.session->RunAsync(
        *compiled.step, std::move(split->pieces), options,
        [kept = std::move(split->compiled), done = std::move(done)](
            StatusOr<RunResult> result) mutable { std::move(done)(std::move(result)); });
  }

  StatusOr<RunResult> Run(PreparedStep& step, std::vector<Tensor> feeds,
                          const RunOptions& options) override {
    MR_ASSIGN_OR_RETURN(Split split, SplitFeeds(step, feeds));
    return split.compiled->session->Run(*split.compiled->step, std::move(split.pieces), options);
  }

  StatusOr<std::vector<DeviceInfo>> ListDevices() override {
    MR_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, options_.open(Graph(ops_)));
    return session->ListDevices();
  }
  Status Reset(std::vector<std::string> containers) override {
    MR_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, options_.open(Graph(ops_)));
    return session->Reset(std::move(containers));
  }

  Status Close() override {
    std::map<std::string, std::shared_ptr<StrategyStep>> steps;
    {
      MutexLock lock(mutex_);
      closed_ = true;
      steps.swap(steps_);
    }
    Status first;
    for (auto& [key, step] : steps) {
      for (const std::shared_ptr<Compiled>& compiled : step->Close()) {
        first.Update(compiled->session->Close());
      }
    }
    return first;
  }

 private:
  struct Split {
    std::shared_ptr<Compiled> compiled;
    std::vector<Tensor> pieces;
  };

  StatusOr<std::shared_ptr<StrategyStep>> StepFor(const StepSignature& signature) {
    MutexLock lock(mutex_);
    if (closed_) return Closed();
    std::shared_ptr<StrategyStep>& step = steps_[signature.Key()];
    if (step != nullptr) return step;
    StatusOr<PrunedGraph> pruned = Prune(graph_, signature);
    Status status = pruned.status();
    if (status.ok()) status = layout_.Extend(graph_, *options_.strategy, options_.open);
    if (!status.ok()) {
      steps_.erase(signature.Key());
      return status;
    }
    step = std::make_shared<StrategyStep>(this, signature, *std::move(pruned), layout_);
    return step;
  }

  // Checks the feeds against the logical signature, then cuts them into the program's pieces.
  StatusOr<Split> SplitFeeds(PreparedStep& prepared, const std::vector<Tensor>& feeds) {
    auto* step = dynamic_cast<StrategyStep*>(&prepared);
    if (step == nullptr || step->owner() != this) {
      return InvalidArgument("the step was prepared by another session");
    }
    const PrunedGraph& pruned = step->pruned();
    if (feeds.size() != pruned.feeds.size()) {
      return InvalidArgument("the step takes ", pruned.feeds.size(), " feeds, but got ",
                             feeds.size());
    }
    std::vector<Shape> shapes;
    for (size_t i = 0; i < feeds.size(); ++i) {
      const DType dtype = pruned.graph.dtype(pruned.feeds[i]);
      const PartialShape& shape = pruned.graph.shape(pruned.feeds[i]);
      if (feeds[i].dtype() != dtype || !shape.IsCompatibleWith(feeds[i].shape())) {
        return InvalidArgument("feed '", step->signature().feeds[i], "' takes ", Name(dtype),
                               shape.ToString(), ", but got ", Name(feeds[i].dtype()),
                               feeds[i].shape().ToString());
      }
      shapes.push_back(feeds[i].shape());
    }
    Split split;
    MR_ASSIGN_OR_RETURN(split.compiled, step->For(shapes, options_));
    for (size_t i = 0; i < feeds.size(); ++i) {
      const Program::Feed& feed = split.compiled->program.feeds[i];
      for (const Program::Feed::Piece& piece : feed.pieces) {
        split.pieces.push_back(feed.dim < 0 ? feeds[i] : feeds[i].Slice(piece.begin, piece.end));
      }
    }
    return split;
  }

  const StrategySessionOptions options_;
  const std::shared_ptr<const OpRegistry> ops_;
  Mutex mutex_;  // held while variables are laid out
  Graph graph_ ABSL_GUARDED_BY(mutex_);
  VariableLayout layout_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<StrategyStep>> steps_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

StatusOr<std::unique_ptr<Session>> NewStrategySession(const Graph& graph,
                                                      StrategySessionOptions options) {
  if (options.strategy == nullptr || !options.open) {
    return InvalidArgument("a strategy session needs a strategy and a way to open sessions");
  }
  MR_RETURN_IF_ERROR(Verify(graph));
  return std::unique_ptr<Session>(std::make_unique<StrategySession>(graph, std::move(options)));
}

}  // namespace millrace
