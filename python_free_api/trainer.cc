#include "python_free_api/trainer.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/graph/graph_def.h"
#include "core/io/checkpoint.h"
#include "core/io/event_file.h"
#include "google/protobuf/text_format.h"
#include "python_free_api/placement_view.h"
#include "python_free_api/saver.h"

namespace millrace {
namespace {

constexpr char kCheckpointName[] = "checkpoint";
constexpr double kNanosPerSecond = 1e9;

StatusOr<double> ScalarOf(const Tensor& tensor) {
  if (tensor.num_elements() == 1) {
    switch (tensor.dtype()) {
      case DType::kFloat:
        return tensor.data<float>()[0];
      case DType::kDouble:
        return tensor.data<double>()[0];
      case DType::kInt32:
        return tensor.data<int32_t>()[0];
      case DType::kInt64:
        return static_cast<double>(tensor.data<int64_t>()[0]);
      default:
        break;
    }
  }
  return InvalidArgument("a loss or a count must be a numeric scalar, but is ", tensor.ToString());
}

// One training run: what Train() says, a method a part.
class Run {
 public:
  Run(const TrainingGraph& graph, Session& session, const Dataset& train, const Dataset& test,
      const Environment& environment, const TrainerOptions& options)
      : graph_(graph),
        session_(session),
        train_(train),
        test_(test),
        environment_(environment),
        options_(options) {}

  StatusOr<TrainingResult> Go(const Variables& variables, Operation initialize) {
    MR_RETURN_IF_ERROR(Check(variables, initialize));
    MR_RETURN_IF_ERROR(environment_.files->CreateFolder(options_.folder));
    MR_RETURN_IF_ERROR(PrepareSteps());
    MR_ASSIGN_OR_RETURN(saver_, Saver::Create(variables, session_, *environment_.files));
    MR_RETURN_IF_ERROR(InitializeOrRestore(initialize));
    MR_ASSIGN_OR_RETURN(
        events_, EventWriter::Create(*environment_.files, *environment_.clock, options_.folder));
    result_.first_step = step_;
    const int64_t start = environment_.clock->NowNanos();
    Status trained = TrainEpochs();
    result_.seconds = (environment_.clock->NowNanos() - start) / kNanosPerSecond;
    if (training_nanos_ > 0) {
      result_.examples_per_second = examples_ * kNanosPerSecond / training_nanos_;
    }
    if (!trained.ok()) return stopped_ ? SaveAfter(trained) : trained;
    AddFile("checkpoint", last_checkpoint_);
    // Else no step was planned, and the dumps of the run that was resumed stay.
    if (!result_.losses.empty()) MR_RETURN_IF_ERROR(WriteDumps());
    MR_RETURN_IF_ERROR(events_->Flush());
    AddFile("events", events_->path());
    return std::move(result_);
  }

 private:
  std::string PathOf(absl::string_view name) const { return JoinPath(options_.folder, name); }
  void AddFile(std::string kind, std::string path) {
    result_.files.emplace_back(std::move(kind), std::move(path));
  }
  // The reason to stop, between two steps, if there is one.
  Status CheckCancelled() {
    if (options_.cancellation == nullptr || !options_.cancellation->cancelled()) return Status();
    stopped_ = true;
    return options_.cancellation->reason();
  }

  // What is wrong with what the run was given, in so far as no step will say it.
  Status Check(const Variables& variables, Operation initialize) {
    MR_RETURN_IF_ERROR(variables.builder().status());
    const std::pair<const char*, bool> ends[] = {
        {"a loss", graph_.loss.ok()},
        {"a training step", graph_.train.ok()},
        {"a count of right answers", graph_.test_correct.ok()},
        {"an initialiser", initialize.ok()}};
    for (const auto& [end, there] : ends) {
      if (!there) return InvalidArgument("training needs ", end, ", but got none");
    }
    MR_RETURN_IF_ERROR(Annotate(train_.status(), "the training set"));
    MR_RETURN_IF_ERROR(Annotate(test_.status(), "the test set"));
    per_epoch_ = train_.elements_per_epoch();
    if (per_epoch_ == 0) return InvalidArgument("the training set has no full batch");
    if (test_.elements_per_epoch() == 0) return InvalidArgument("the test set has no full batch");
    if (options_.epochs < 0 || options_.max_steps < 0) {
      return InvalidArgument("training cannot go on for ", options_.epochs, " epochs and at most ",
                             options_.max_steps, " steps");
    }
    if (__builtin_mul_overflow(per_epoch_, options_.epochs, &total_steps_)) {
      return InvalidArgument(options_.epochs, " epochs of ", per_epoch_, " steps are too many");
    }
    if (options_.max_steps > 0) total_steps_ = std::min(total_steps_, options_.max_steps);
    return absl::OkStatus();
  }

  Status PrepareSteps() {
    StepSignature train;
    for (Value input : graph_.inputs) train.feeds.push_back(input.name());
    train.fetches = {graph_.loss.name()};
    train.targets = {graph_.train.name()};
    MR_ASSIGN_OR_RETURN(train_step_, session_.Prepare(train));
    StepSignature test;
    for (Value input : graph_.test_inputs) test.feeds.push_back(input.name());
    test.fetches = {graph_.test_correct.name()};
    MR_ASSIGN_OR_RETURN(test_step_, session_.Prepare(test));
    return absl::OkStatus();
  }

  Status InitializeOrRestore(Operation initialize) {
    if (options_.resume) return Restore();
    StepSignature init;
    init.targets = {initialize.name()};
    MR_ASSIGN_OR_RETURN(std::shared_ptr<PreparedStep> step, session_.Prepare(init));
    return Annotate(session_.Run(*step, {}).status(), "initialising the variables");
  }

  Status Restore() {
    MR_ASSIGN_OR_RETURN(last_checkpoint_,
                        LatestCheckpoint(*environment_.files, options_.folder, kCheckpointName));
    MR_ASSIGN_OR_RETURN(auto metadata, saver_->Restore(last_checkpoint_));
    int64_t per_epoch = 0;
    if (!absl::SimpleAtoi(metadata["step"], &step_) || step_ < 0 ||
        !absl::SimpleAtoi(metadata["steps_per_epoch"], &per_epoch)) {
      return DataLoss("checkpoint '", last_checkpoint_, "' does not say its step and those of an ",
                      "epoch: it was not written by a training run");
    }
    if (per_epoch != per_epoch_) {
      return FailedPrecondition("checkpoint '", last_checkpoint_, "' is of a run with ", per_epoch,
                                " steps an epoch, but the training set makes ", per_epoch_,
                                ": resume it with the same data and batch size");
    }
    for (absl::string_view part :
         absl::StrSplit(metadata["test_accuracy"], ',', absl::SkipEmpty())) {
      double accuracy = 0;
      if (!absl::SimpleAtod(part, &accuracy)) {
        return DataLoss("checkpoint '", last_checkpoint_, "' has the test accuracy '", part, "'");
      }
      result_.test_accuracy.push_back(accuracy);
    }
    saved_step_ = step_;
    return absl::OkStatus();
  }

  // Whether the epoch that the last step ended is still to be tested.
  bool TestIsDue() const {
    return step_ > 0 && step_ % per_epoch_ == 0 &&
           static_cast<int64_t>(result_.test_accuracy.size()) < step_ / per_epoch_;
  }

  Status TrainEpochs() {
    // A run may have been interrupted within a test.
    if (TestIsDue()) MR_RETURN_IF_ERROR(TestAndSave());
    MR_ASSIGN_OR_RETURN(std::unique_ptr<DatasetIterator> batches,
                        train_.Repeat(options_.epochs)
                            .Iterate(DatasetPosition{step_ / per_epoch_, step_ % per_epoch_}));
    while (step_ < total_steps_) {
      MR_RETURN_IF_ERROR(CheckCancelled());
      MR_ASSIGN_OR_RETURN(std::optional<Element> batch, batches->Next());
      if (!batch.has_value()) break;
      MR_RETURN_IF_ERROR(Annotate(TrainOn(*std::move(batch)), StrCat("step ", step_ + 1)));
      if (TestIsDue()) MR_RETURN_IF_ERROR(TestAndSave());
    }
    if (step_ > saved_step_) MR_RETURN_IF_ERROR(Save());
    return absl::OkStatus();
  }

  Status TestAndSave() {
    MR_RETURN_IF_ERROR(Test(step_ / per_epoch_));
    return Save();
  }

  // For a run that was stopped for `reason`, which says if what it has done is lost.
  Status SaveAfter(const Status& reason) {
    Status saved = events_->Flush();
    if (step_ > saved_step_) saved.Update(Save());
    if (saved.ok()) return reason;
    return Status(reason.code(),
                  StrCat(reason.message(), "; what it did could not be saved: ", saved.message()));
  }

  // How many examples an element of `set` holds.
  static int64_t RowsOf(const Dataset& set, const Element& element) {
    return set.batch_size() == 0 ? 1 : element[0].shape().dim(0);
  }

  Status TrainOn(Element batch) {
    const int64_t rows = RowsOf(train_, batch);
    RunOptions run;
    run.trace = step_ - result_.first_step + 1 == options_.trace_step;
    const int64_t start = environment_.clock->NowNanos();
    MR_ASSIGN_OR_RETURN(RunResult done, session_.Run(*train_step_, std::move(batch), run));
    const int64_t nanos = environment_.clock->NowNanos() - start;
    if (run.trace) trace_ = std::move(done.events);
    MR_ASSIGN_OR_RETURN(const double loss, ScalarOf(done.fetches[0]));
    ++step_;
    result_.losses.push_back(loss);
    // The first step plans and registers: it says nothing of the speed.
    if (result_.losses.size() > 1) {
      examples_ += rows;
      training_nanos_ += nanos;
    }
    MR_RETURN_IF_ERROR(events_->AddScalar("loss", loss, step_));
    if (options_.on_step) {
      Progress progress;
      progress.step = step_;
      progress.steps = total_steps_;
      progress.loss = loss;
      if (training_nanos_ > 0) {
        progress.examples_per_second = examples_ * kNanosPerSecond / training_nanos_;
        progress.seconds_left = (total_steps_ - step_) * rows / progress.examples_per_second;
      }
      options_.on_step(progress);
    }
    return absl::OkStatus();
  }

  Status Test(int64_t epoch) {
    MR_ASSIGN_OR_RETURN(std::unique_ptr<DatasetIterator> batches, test_.Repeat(1).Iterate());
    double correct = 0;
    int64_t rows = 0;
    for (;;) {
      MR_RETURN_IF_ERROR(CheckCancelled());
      MR_ASSIGN_OR_RETURN(std::optional<Element> batch, batches->Next());
      if (!batch.has_value()) break;
      rows += RowsOf(test_, *batch);
      MR_ASSIGN_OR_RETURN(RunResult done, session_.Run(*test_step_, *std::move(batch)));
      MR_ASSIGN_OR_RETURN(const double right, ScalarOf(done.fetches[0]));
      correct += right;
    }
    const double accuracy = correct / rows;
    result_.test_accuracy.push_back(accuracy);
    if (options_.on_test) options_.on_test(epoch, accuracy);
    return events_->AddScalar("test_accuracy", accuracy, step_);
  }

  Status Save() {
    MR_ASSIGN_OR_RETURN(
        std::string name,
        saver_->Save(
            PathOf(kCheckpointName), step_,
            {{"step", StrCat(step_)},
             {"steps_per_epoch", StrCat(per_epoch_)},
             {"test_accuracy",
              absl::StrJoin(result_.test_accuracy, ",", [](std::string* out, double accuracy) {
                absl::StrAppend(out, absl::StrFormat("%.17g", accuracy));
              })}}));
    saved_step_ = step_;
    last_checkpoint_ = std::move(name);
    return absl::OkStatus();
  }

  Status WriteDumps() {
    FileSystem& files = *environment_.files;
    auto write = [&](const char* kind, const char* name, absl::string_view bytes) {
      AddFile(kind, PathOf(name));
      return WriteFile(files, PathOf(name), bytes);
    };
    const Graph& placed = train_step_->placed_graph();
    GraphDef def;
    ExportGraphDef(placed, &def);
    const std::string binary = def.SerializeAsString();
    MR_RETURN_IF_ERROR(write("graph", "graph.pb", binary));
    std::string text;
    if (!google::protobuf::TextFormat::PrintToString(def, &text)) {
      return Internal("the placed graph has no text form");
    }
    MR_RETURN_IF_ERROR(write("graph_text", "graph.pbtxt", text));
    MR_RETURN_IF_ERROR(events_->AddGraph(binary));
    MR_ASSIGN_OR_RETURN(PlacementReport report, train_step_->Report());
    MR_RETURN_IF_ERROR(write("placement", "placement.txt", report.ToText()));
    MR_RETURN_IF_ERROR(write("placement_json", "placement.json", report.ToJson()));
    MR_RETURN_IF_ERROR(write("placement_view", "placement.html",
                             PlacementView(placed, report, "Placement of the training step")));
    if (!trace_.empty()) MR_RETURN_IF_ERROR(write("trace", "trace.json", ChromeTrace(trace_)));
    return absl::OkStatus();
  }

  const TrainingGraph& graph_;
  Session& session_;
  const Dataset& train_;
  const Dataset& test_;
  const Environment& environment_;
  const TrainerOptions& options_;
  std::shared_ptr<PreparedStep> train_step_;
  std::shared_ptr<PreparedStep> test_step_;
  std::unique_ptr<Saver> saver_;
  std::unique_ptr<EventWriter> events_;
  std::vector<KernelEvent> trace_;
  std::string last_checkpoint_;
  TrainingResult result_;
  int64_t step_ = 0;  // steps done, since the first run's start
  int64_t total_steps_ = 0;
  int64_t per_epoch_ = 0;
  int64_t saved_step_ = -1;
  bool stopped_ = false;  // by the cancellation
  int64_t training_nanos_ = 0;
  int64_t examples_ = 0;
};

}  // namespace

StatusOr<TrainingResult> Train(const TrainingGraph& graph, const Variables& variables,
                               Operation initialize, Session& session, const Dataset& train,
                               const Dataset& test, const Environment& environment,
                               const TrainerOptions& options) {
  return Run(graph, session, train, test, environment, options).Go(variables, initialize);
}

void ProgressLine::Show(const Progress& progress) {
  const int64_t now = clock_.NowNanos();
  const int64_t interval = terminal_ ? 100'000'000 : 5'000'000'000;
  if (last_nanos_ && now - *last_nanos_ < interval && progress.step < progress.steps) return;
  last_nanos_ = now;
  const std::string line = absl::StrFormat(
      "step %d/%d  %.0f examples/s  loss %.4f  %.0f s left", progress.step, progress.steps,
      progress.examples_per_second, progress.loss, progress.seconds_left);
  if (terminal_) {
    std::printf("\r\033[K%s", line.c_str());
    open_ = true;
  } else {
    std::printf("%s\n", line.c_str());
  }
  std::fflush(stdout);
}

void ProgressLine::Print(const std::string& text) {
  if (open_) std::printf("\r\033[K");
  open_ = false;
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

}  // namespace millrace
