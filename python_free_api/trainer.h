#ifndef PYTHON_FREE_API_TRAINER_H_
#define PYTHON_FREE_API_TRAINER_H_

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/cancellation.h"
#include "core/base/scheduler.h"
#include "core/runtime/session.h"
#include "python_free_api/dataset.h"
#include "python_free_api/variables.h"

namespace millrace {

// What a trainer runs: the ends of a program's graph.
struct TrainingGraph {
  std::vector<Value> inputs;  // placeholders of a training batch, in a data set element's order
  Value loss;                 // a scalar, the mean over the batch
  Operation train;            // Minimize(...)
  std::vector<Value> test_inputs;
  Value test_correct;  // how many predictions of the batch are right: a scalar
};

struct Progress {
  int64_t step = 0;   // done
  int64_t steps = 0;  // in all
  double examples_per_second = 0;
  double loss = 0;
  double seconds_left = 0;
};

struct TrainerOptions {
  std::string folder;  // of this run: the trainer writes into it
  int64_t epochs = 1;
  int64_t max_steps = 0;    // in all, resumed ones included; 0: those of epochs
  bool resume = false;      // go on from the newest checkpoint in `folder`
  int64_t trace_step = 10;  // this step's trace is written; -1: none
  std::function<void(const Progress&)> on_step;                 // may be null
  std::function<void(int64_t epoch, double accuracy)> on_test;  // may be null
  Cancellation* cancellation = nullptr;                         // may be null
};

struct TrainingResult {
  int64_t first_step = 0;             // 0, or where it was resumed
  std::vector<double> losses;         // by step, from first_step
  std::vector<double> test_accuracy;  // by finished epoch, those of a resumed run included
  double seconds = 0;                 // of this run's steps and tests
  double examples_per_second = 0;     // of training steps alone
  std::vector<std::pair<std::string, std::string>> files;  // what was written: kind, path
};

// Trains: initialises or restores, runs the steps with the batches of `train` (one element a step),
// tests on `test` and saves after each epoch, and writes to options.folder the checkpoints
// ("checkpoint-<step>"), losses and accuracies as a TensorBoard event file, the placed graph of the
// training step (graph.pb, graph.pbtxt), its placement report (placement.txt, .json, .html) and a
// Chrome trace of one step. All of it can be done by hand with Session, Saver, Dataset and the
// writers of core/io. Blocks.
//
// A resumed run has the losses and accuracies that the uninterrupted one has. It needs the same
// number of steps an epoch (FailedPrecondition else). One that was finished already has no losses,
// the accuracies of its checkpoint, and no new dumps.
//
// Cancelled, it stops between two steps, saves what it has, and gives the reason, whatever its
// code. After any other error nothing is saved, as the failed step may have changed some variables:
// the newest checkpoint stays what it was.
StatusOr<TrainingResult> Train(const TrainingGraph& graph, const Variables& variables,
                               Operation initialize, Session& session, const Dataset& train,
                               const Dataset& test, const Environment& environment,
                               const TrainerOptions& options);

// One line of standard output that is rewritten in place on a terminal, at most ten times a second;
// plain lines every five seconds elsewhere. The last step is always shown. Not thread-safe.
class ProgressLine {
 public:
  ProgressLine(const Clock& clock, bool terminal) : clock_(clock), terminal_(terminal) {}
  void Show(const Progress& progress);
  // Ends the line, if one is open, and prints `text` on its own.
  void Print(const std::string& text);

 private:
  const Clock& clock_;
  const bool terminal_;
  bool open_ = false;
  std::optional<int64_t> last_nanos_;
};

}  // namespace millrace

#endif  // PYTHON_FREE_API_TRAINER_H_
