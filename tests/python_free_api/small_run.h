#ifndef TESTS_PYTHON_FREE_API_SMALL_RUN_H_
#define TESTS_PYTHON_FREE_API_SMALL_RUN_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "tests/python_free_api/program.h"

namespace millrace::testing {

inline constexpr int64_t kRows = 12;
inline constexpr int64_t kStepsPerEpoch = 3;

// A training run of a program of its own, as of a process that has just begun: two dense layers
// with dropout between, Adam, twelve examples of three classes in batches of four. Its files are
// the caller's, under "run".
class SmallRun {
 public:
  explicit SmallRun(FileSystem& files, RuntimeOptions runtime = {});

  // What the run is given; to be changed before Train.
  TrainerOptions options;
  TrainingGraph graph;
  Operation initialize;
  Dataset train;
  Dataset test;
  SessionOptions session;
  // Called before each step, which fails if this does.
  std::function<Status(const StepSignature&)> before_step;

  // In a session of its own, or in one that the caller has opened for the program.
  StatusOr<TrainingResult> Train();
  StatusOr<TrainingResult> TrainIn(Session& opened);

  Program& program() { return program_; }
  // Whether a signature is that of the test's step, or of what a saver reads.
  bool IsTest(const StepSignature& signature) const;
  bool IsSave(const StepSignature& signature) const;

 private:
  FileSystem& files_;
  Program program_;
};

// The examples, by name of the column.
Tensor Examples();
Tensor Classes();

}  // namespace millrace::testing

#endif  // TESTS_PYTHON_FREE_API_SMALL_RUN_H_
