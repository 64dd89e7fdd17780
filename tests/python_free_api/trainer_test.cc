#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/io/checkpoint.h"
#include "core/io/event_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/python_free_api/small_run.h"

namespace millrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

constexpr int kSteps = 12;

class TrainerTest : public ::testing::Test {
 protected:
  std::string Latest() { return LatestCheckpoint(*files_, "run", "checkpoint").value_or("none"); }
  std::unique_ptr<FileSystem> files_ = NewMemoryFileSystem();
};

TEST_F(TrainerTest, RunsAllEpochsAndSaysWhatItDid) {
  SmallRun run(*files_);
  std::vector<int64_t> steps;
  std::vector<double> shown;
  std::vector<std::pair<int64_t, double>> tests;
  run.options.on_step = [&](const Progress& progress) {
    EXPECT_EQ(progress.steps, kSteps);
    EXPECT_GE(progress.seconds_left, 0);
    steps.push_back(progress.step);
    shown.push_back(progress.loss);
  };
  run.options.on_test = [&](int64_t epoch, double accuracy) {
    EXPECT_EQ(steps.size(), epoch * kStepsPerEpoch) << "after each epoch";
    tests.emplace_back(epoch, accuracy);
  };
  const StatusOr<TrainingResult> result = run.Train();
  ASSERT_EQ(result.status(), Status());
  EXPECT_EQ(result->first_step, 0);
  EXPECT_EQ(result->losses, shown);
  EXPECT_THAT(steps, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
  ASSERT_EQ(result->test_accuracy.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(tests[i], std::make_pair(static_cast<int64_t>(i) + 1, result->test_accuracy[i]));
  }
  EXPECT_GT(result->seconds, 0);
  EXPECT_GT(result->examples_per_second, 0);
}

TEST_F(TrainerTest, Learns) {
  SmallRun run(*files_);
  run.options.epochs = 150;
  const StatusOr<TrainingResult> result = run.Train();
  ASSERT_EQ(result.status(), Status());
  EXPECT_GT(result->test_accuracy.back(), 0.9);
}

TEST_F(TrainerTest, WritesWhatItSaysItWrote) {
  SmallRun run(*files_);
  const StatusOr<TrainingResult> result = run.Train();
  ASSERT_EQ(result.status(), Status());
  std::map<std::string, std::string> files(result->files.begin(), result->files.end());
  std::vector<std::string> kinds;
  for (const auto& [kind, path] : files) {
    kinds.push_back(kind);
    EXPECT_TRUE(files_->Exists(kind == "checkpoint" ? path + ".index" : path)) << path;
  }
  EXPECT_THAT(kinds, ElementsAre("checkpoint", "events", "graph", "graph_text", "placement",
                                 "placement_json", "placement_view", "trace"));
  EXPECT_EQ(files["checkpoint"], "run/checkpoint-12");
  EXPECT_THAT(files_->List("run").value(),
              IsSupersetOf({"checkpoint-3.index", "checkpoint-6.index", "checkpoint-9.index"}));

  std::map<std::string, std::vector<int64_t>> scalars;  // steps by tag
  const StatusOr<std::vector<Event>> events = ReadEvents(*files_, files["events"]);
  ASSERT_EQ(events.status(), Status());
  for (const Event& event : *events) {
    for (const auto& value : event.summary().value()) scalars[value.tag()].push_back(event.step());
  }
  EXPECT_THAT(scalars["test_accuracy"], ElementsAre(3, 6, 9, 12));
  EXPECT_EQ(scalars["loss"].size(), kSteps);
  EXPECT_THAT(*ReadFile(*files_, files["placement_view"]), HasSubstr("hidden/MatMul"));
}

TEST_F(TrainerTest, EndsAfterTheStepsThatItIsTold) {
  SmallRun run(*files_);
  run.options.max_steps = 4;
  const StatusOr<TrainingResult> result = run.Train();
  ASSERT_EQ(result.status(), Status());
  EXPECT_EQ(result->losses.size(), 4u);
  EXPECT_EQ(result->test_accuracy.size(), 1u) << "of the epoch that was finished";
  EXPECT_EQ(Latest(), "run/checkpoint-4");
}

TEST_F(TrainerTest, WithoutStepsItSavesTheInitialVariables) {
  SmallRun run(*files_);
  run.options.epochs = 0;
  const StatusOr<TrainingResult> result = run.Train();
  ASSERT_EQ(result.status(), Status());
  EXPECT_TRUE(result->losses.empty());
  EXPECT_EQ(Latest(), "run/checkpoint-0");
}

TEST_F(TrainerTest, AccuracyDoesNotDependOnHowTheTestSetIsCut) {
  std::vector<std::vector<double>> accuracies;
  const Dataset rows = Dataset::FromTensors({Examples(), Classes()}).value();
  for (const Dataset& test : {rows.Batch(12), rows.Batch(5), rows.Batch(1), rows.Batch(5).Repeat(0),
                              rows.Batch(5).Repeat(3)}) {
    SmallRun run(*files_);
    run.test = test;
    const StatusOr<TrainingResult> result = run.Train();
    ASSERT_EQ(result.status(), Status());
    accuracies.push_back(result->test_accuracy);
    EXPECT_EQ(accuracies.back(), accuracies.front());
  }
}

TEST_F(TrainerTest, AnElementThatIsNoBatchIsOneExample) {
  SmallRun run(*files_);
  GraphBuilder& b = run.program().b;
  const Value x = Placeholder(b, DType::kFloat, {4}, "row");
  const Value label = Placeholder(b, DType::kInt32, {}, "label");
  run.graph.test_inputs = {x, label};
  // Right where the class is 0.
  run.graph.test_correct =
      Cast(Less(label, Scalar(b, 1, DType::kInt32)), DType::kFloat) + ReduceSum(x) * 0.0;
  run.test = Dataset::FromTensors({Examples(), Classes()}).value();
  run.options.epochs = 1;
  ASSERT_EQ(b.status(), Status());
  int64_t zeros = 0;
  const Tensor classes = Classes();
  for (const int32_t c : classes.span<int32_t>()) zeros += c == 0;
  const StatusOr<TrainingResult> result = run.Train();
  ASSERT_EQ(result.status(), Status());
  EXPECT_THAT(result->test_accuracy, ElementsAre(static_cast<double>(zeros) / kRows));
}

TEST_F(TrainerTest, MistakesAreNamedBeforeAnythingIsWritten) {
  const struct {
    std::function<void(SmallRun&)> change;
    const char* message;
  } cases[] = {
      {[](SmallRun& run) { run.train = run.train.Shard(0, 0); },
       "the training set: Shard takes an index below the count of shards, but got 0 of 0"},
      {[](SmallRun& run) { run.test = run.test.Batch(0); },
       "the test set: Batch takes at least 1 row, but got 0"},
      {[](SmallRun& run) { run.train = run.train.Batch(100, true); },
       "the training set has no full batch"},
      {[](SmallRun& run) { run.test = run.test.Batch(100, true); },
       "the test set has no full batch"},
      {[](SmallRun& run) { run.options.epochs = -1; },
       "training cannot go on for -1 epochs and at most 0 steps"},
      {[](SmallRun& run) { run.options.max_steps = -2; },
       "training cannot go on for 4 epochs and at most -2 steps"},
      {[](SmallRun& run) { run.options.epochs = INT64_MAX; }, "epochs of 3 steps are too many"},
      {[](SmallRun& run) { run.graph.loss = Value(); }, "training needs a loss, but got none"},
      {[](SmallRun& run) { run.graph.train = Operation(); },
       "training needs a training step, but got none"},
      {[](SmallRun& run) { run.graph.test_correct = Value(); },
       "training needs a count of right answers, but got none"},
      {[](SmallRun& run) { run.initialize = Operation(); },
       "training needs an initialiser, but got none"},
  };
  for (const auto& c : cases) {
    SmallRun run(*files_);
    c.change(run);
    const Status status = run.Train().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.message;
    EXPECT_THAT(MessageOf(status), HasSubstr(c.message));
    EXPECT_TRUE(files_->List("run").value_or(std::vector<std::string>()).empty());
  }
}

TEST_F(TrainerTest, ALossMustBeAScalar) {
  SmallRun run(*files_);
  run.graph.loss = run.graph.inputs[0] * 2.0;
  EXPECT_THAT(MessageOf(run.Train().status()), HasSubstr("step 1: "));
}

TEST_F(TrainerTest, AFeedThatDoesNotFitIsNamed) {
  SmallRun run(*files_);
  run.train = Dataset::FromTensors({Classes(), Examples()}).value().Batch(4);
  const Status status = run.Train().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(status), HasSubstr("step 1: "));
  EXPECT_THAT(MessageOf(status), HasSubstr("train/x"));
}

}  // namespace
}  // namespace millrace::testing
