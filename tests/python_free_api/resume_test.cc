// A training run that was ended before its time, and goes on: as if nothing had happened.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/io/checkpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/python_free_api/small_run.h"

namespace millrace::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kSteps = 12;

class ResumeTest : public ::testing::Test {
 protected:
  ResumeTest() : files_(NewMemoryFileSystem()) {
    const std::unique_ptr<FileSystem> others = NewMemoryFileSystem();
    SmallRun run(*others);
    const StatusOr<TrainingResult> result = run.Train();
    EXPECT_EQ(result.status(), Status());
    if (result.ok()) whole_ = *result;
  }

  StatusOr<TrainingResult> Resume(FileSystem& files) {
    SmallRun run(files);
    run.options.resume = true;
    return run.Train();
  }
  // What is left of the whole run after its first `done` steps.
  void ExpectRest(const StatusOr<TrainingResult>& rest, int done) {
    ASSERT_EQ(rest.status(), Status());
    EXPECT_EQ(rest->first_step, done);
    EXPECT_EQ(rest->losses, std::vector<double>(whole_.losses.begin() + done, whole_.losses.end()));
    EXPECT_EQ(rest->test_accuracy, whole_.test_accuracy);
  }
  std::string Latest() { return LatestCheckpoint(*files_, "run", "checkpoint").value_or("none"); }

  std::unique_ptr<FileSystem> files_;
  TrainingResult whole_;  // uninterrupted
};

// The model has dropout: which units it drops must go on, too.
TEST_F(ResumeTest, TheLossesAreExactlyThoseOfTheUninterruptedRun) {
  ASSERT_EQ(whole_.losses.size(), kSteps);
  for (const int done : {1, 3, 4, 6, 11}) {
    const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
    SmallRun first(*files);
    first.options.max_steps = done;
    const StatusOr<TrainingResult> begun = first.Train();
    ASSERT_EQ(begun.status(), Status());
    EXPECT_EQ(begun->losses,
              std::vector<double>(whole_.losses.begin(), whole_.losses.begin() + done));
    ExpectRest(Resume(*files), done);
  }
}

TEST_F(ResumeTest, GoesOnManyTimes) {
  std::vector<double> losses;
  for (int done = 0; done < kSteps; ++done) {
    SmallRun run(*files_);
    run.options.resume = done > 0;
    run.options.max_steps = done + 1;
    const StatusOr<TrainingResult> result = run.Train();
    ASSERT_EQ(result.status(), Status());
    losses.insert(losses.end(), result->losses.begin(), result->losses.end());
  }
  EXPECT_EQ(losses, whole_.losses);
}

TEST_F(ResumeTest, AFinishedRunHasNoMoreLossesAndKeepsWhatItHas) {
  SmallRun first(*files_);
  ASSERT_EQ(first.Train().status(), Status());
  const std::string graph = ReadFile(*files_, "run/graph.pb").value();
  const std::string report = ReadFile(*files_, "run/placement.txt").value();
  for (int i = 0; i < 2; ++i) {
    const StatusOr<TrainingResult> again = Resume(*files_);
    ExpectRest(again, kSteps);
    ASSERT_EQ(again->files.size(), 2u);
    EXPECT_EQ(again->files[0],
              (std::pair<std::string, std::string>("checkpoint", "run/checkpoint-12")));
    EXPECT_EQ(again->files[1].first, "events");
    EXPECT_EQ(ReadFile(*files_, "run/graph.pb").value(), graph);
    EXPECT_EQ(ReadFile(*files_, "run/placement.txt").value(), report);
  }
}

// With a strategy, steps are planned when they first run: there is no report before.
TEST_F(ResumeTest, AFinishedRunOfAStrategyIsResumed) {
  for (const bool resume : {false, true}) {
    SmallRun run(*files_);
    DataParallelPsOptions strategy;
    strategy.replica_devices = {"/device:CPU:0"};
    strategy.variable_device = "/device:CPU:0";
    run.session.strategy = NewDataParallelPs(strategy).value();
    run.options.resume = resume;
    const StatusOr<TrainingResult> result = run.Train();
    ASSERT_EQ(result.status(), Status());
    EXPECT_EQ(result->losses.size(), resume ? 0 : kSteps);
    EXPECT_EQ(result->test_accuracy, whole_.test_accuracy);
  }
}

TEST_F(ResumeTest, ACancelledRunSavesWhereItWasWhateverTheReason) {
  const struct {
    Status reason;
    int after;  // steps
  } cases[] = {
      {Cancelled("interrupted"), 5},
      {DeadlineExceeded("the hour is over"), 7},
      {Unavailable("the machine is wanted back"), 1},
      {Cancelled("interrupted before an epoch's test"), 6},
      {Cancelled("interrupted before the last test"), 12},
  };
  for (const auto& c : cases) {
    files_ = NewMemoryFileSystem();
    SmallRun run(*files_);
    Cancellation cancellation;
    run.options.cancellation = &cancellation;
    run.options.on_step = [&](const Progress& progress) {
      if (progress.step == c.after) cancellation.Cancel(c.reason);
    };
    EXPECT_EQ(run.Train().status(), c.reason);
    EXPECT_EQ(Latest(), StrCat("run/checkpoint-", c.after));
    ExpectRest(Resume(*files_), c.after);
  }
}

// The epoch that was being tested is tested when the run goes on.
TEST_F(ResumeTest, AnInterruptedTestIsMadeUpFor) {
  for (const int epoch : {1, 2, 4}) {
    files_ = NewMemoryFileSystem();
    SmallRun run(*files_);
    Cancellation cancellation;
    run.options.cancellation = &cancellation;
    int tests = 0;
    run.before_step = [&](const StepSignature& signature) {
      // Three batches a test: within the one of `epoch`.
      if (run.IsTest(signature) && ++tests == 3 * epoch - 1) {
        cancellation.Cancel(Cancelled("interrupted"));
      }
      return Status();
    };
    EXPECT_EQ(run.Train().status(), Cancelled("interrupted"));
    const int done = epoch * static_cast<int>(kStepsPerEpoch);
    EXPECT_EQ(Latest(), StrCat("run/checkpoint-", done));
    ExpectRest(Resume(*files_), done);
    ExpectRest(Resume(*files_), kSteps);
  }
}

TEST_F(ResumeTest, ARunThatIsCancelledBeforeItBeginsSavesItsFirstVariables) {
  SmallRun run(*files_);
  Cancellation cancellation;
  cancellation.Cancel(Cancelled("interrupted"));
  run.options.cancellation = &cancellation;
  EXPECT_EQ(run.Train().status(), Cancelled("interrupted"));
  ExpectRest(Resume(*files_), 0);
}

// The step may have changed some of the variables: what is saved stays what it was.
TEST_F(ResumeTest, AfterAStepThatFailedTheNewestCheckpointStays) {
  for (const absl::StatusCode code :
       {absl::StatusCode::kUnavailable, absl::StatusCode::kCancelled, absl::StatusCode::kAborted}) {
    files_ = NewMemoryFileSystem();
    SmallRun run(*files_);
    Cancellation cancellation;  // at hand, but nobody cancels
    run.options.cancellation = &cancellation;
    int steps = 0;
    run.before_step = [&](const StepSignature& signature) {
      return signature.targets == std::vector<std::string>{run.graph.train.name()} && ++steps == 5
                 ? Status(code, "/job:worker/task:1 is gone")
                 : Status();
    };
    EXPECT_EQ(run.Train().status(), Status(code, "step 5: /job:worker/task:1 is gone"));
    EXPECT_EQ(Latest(), "run/checkpoint-3");
    ExpectRest(Resume(*files_), 3);
  }
}

TEST_F(ResumeTest, ACancelledRunThatCannotSaveSaysSo) {
  SmallRun run(*files_);
  Cancellation cancellation;
  run.options.cancellation = &cancellation;
  run.options.on_step = [&](const Progress& progress) {
    if (progress.step == 2) cancellation.Cancel(Cancelled("interrupted"));
  };
  run.before_step = [&](const StepSignature& signature) {
    return run.IsSave(signature) ? Unavailable("/job:ps/task:0 is gone") : Status();
  };
  EXPECT_EQ(run.Train().status(),
            Cancelled("interrupted; what it did could not be saved: /job:ps/task:0 is gone"));
  EXPECT_EQ(Latest(), "none");
}

class RefusedResumeTest : public ResumeTest {
 protected:
  RefusedResumeTest() {
    SmallRun run(*files_);
    run.options.max_steps = 4;
    EXPECT_EQ(run.Train().status(), Status());
  }
  // As Resume, which must do nothing.
  Status Refused(const std::function<void(SmallRun&)>& change = nullptr) {
    SmallRun run(*files_);
    run.options.resume = true;
    run.options.on_step = [](const Progress&) { ADD_FAILURE() << "it trains"; };
    if (change) change(run);
    return run.Train().status();
  }
};

TEST_F(RefusedResumeTest, WithoutACheckpoint) {
  EXPECT_EQ(Refused([](SmallRun& run) { run.options.folder = "empty"; }).code(),
            absl::StatusCode::kNotFound);
}

TEST_F(RefusedResumeTest, WithAnotherNumberOfStepsAnEpoch) {
  EXPECT_EQ(Refused([](SmallRun& run) { run.train = run.train.Batch(2); }),
            FailedPrecondition("checkpoint 'run/checkpoint-4' is of a run with 3 steps an epoch, "
                               "but the training set makes 6: resume it with the same data and "
                               "batch size"));
}

TEST_F(RefusedResumeTest, WithADamagedCheckpoint) {
  constexpr char kData[] = "run/checkpoint-4.data-00000-of-00001";
  std::string data = ReadFile(*files_, kData).value();
  data.back() ^= 1;
  ASSERT_EQ(WriteFile(*files_, kData, data), Status());
  const Status status = Refused();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(MessageOf(status), AllOf(HasSubstr(kData), HasSubstr("tensor '")));
}

TEST_F(RefusedResumeTest, WithACheckpointThatNoRunHasWritten) {
  const Checkpoint saved = ReadCheckpoint(*files_, "run/checkpoint-4").value();
  const NamedTensors tensors(saved.tensors.begin(), saved.tensors.end());
  const struct {
    std::map<std::string, std::string> metadata;
    const char* message;
  } cases[] = {
      {{}, "does not say its step"},
      {{{"step", "5"}}, "does not say its step"},
      {{{"step", "x"}, {"steps_per_epoch", "3"}}, "does not say its step"},
      {{{"step", "-5"}, {"steps_per_epoch", "3"}}, "does not say its step"},
      {{{"step", "5"}, {"steps_per_epoch", "3"}, {"test_accuracy", "high"}},
       "has the test accuracy 'high'"},
  };
  for (const auto& c : cases) {
    ASSERT_EQ(WriteCheckpoint(*files_, "run/checkpoint-5", tensors, c.metadata), Status());
    const Status status = Refused();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << c.message;
    EXPECT_THAT(MessageOf(status), HasSubstr(c.message));
    EXPECT_THAT(MessageOf(status), HasSubstr("run/checkpoint-5"));
  }
}

}  // namespace
}  // namespace millrace::testing
