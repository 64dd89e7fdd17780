// tensorflow_peer: runs what the benchmarks run, in TensorFlow, through its C API.
//   tensorflow_peer LIBRARY step RUN.json TIMES.json
//   tensorflow_peer LIBRARY serve CLUSTER JOB TASK READY_FILE
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/strings/numbers.h"
#include "core/base/file.h"
#include "core/base/process.h"
#include "core/base/thread_pool.h"
#include "tools/bench/system.h"
#include "tools/bench/tensorflow/config.h"
#include "tools/bench/tensorflow/library.h"

namespace millrace::bench {
namespace {

// TF_FLOAT, TF_INT32
constexpr int kFloat = 1;
constexpr int kInt32 = 3;

Status Check(const TensorflowLibrary& tf, const TF_Status* status, const char* what) {
  if (tf.GetCode(status) == 0) return absl::OkStatus();
  return Internal("TensorFlow, ", what, ": ", tf.Message(status));
}

class TensorflowGraph final : public LoadedGraph {
 public:
  static StatusOr<std::unique_ptr<LoadedGraph>> Load(const TensorflowLibrary& tf,
                                                     const StepRun& run, FileSystem& files) {
    auto loaded = std::make_unique<TensorflowGraph>(tf, RunOptionsFor(run.setting));
    MR_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(files, run.graph));
    TF_Status* const status = loaded->status_;
    const TF_Buffer buffer = {bytes.data(), bytes.size(), nullptr};
    loaded->graph_ = tf.NewGraph();
    tf.GraphImportGraphDef(loaded->graph_, &buffer, tf.NewImportGraphDefOptions(), status);
    MR_RETURN_IF_ERROR(Check(tf, status, "import"));
    TF_SessionOptions* const options = tf.NewSessionOptions();
    if (!run.target.empty()) tf.SetTarget(options, run.target.c_str());
    MR_ASSIGN_OR_RETURN(const std::string config, ConfigProtoFor(run.setting, run.threads));
    tf.SetConfig(options, config.data(), config.size(), status);
    MR_RETURN_IF_ERROR(Check(tf, status, "configuration"));
    loaded->session_ = tf.NewSession(loaded->graph_, options, status);
    MR_RETURN_IF_ERROR(Check(tf, status, "session"));
    return std::unique_ptr<LoadedGraph>(std::move(loaded));
  }

  TensorflowGraph(const TensorflowLibrary& tf, std::string run_options)
      : tf_(tf), run_options_(std::move(run_options)), status_(tf.NewStatus()) {}

  StatusOr<int> Prepare(const std::vector<FeedSpec>& feeds, const std::vector<std::string>& fetches,
                        const std::vector<std::string>& targets) override {
    Step step;
    for (const FeedSpec& feed : feeds) {
      MR_ASSIGN_OR_RETURN(const TF_Output output, Output(feed.name));
      step.feeds.push_back(output);
      step.fed.push_back(FeedTensor(feed));
    }
    for (const std::string& fetch : fetches) {
      MR_ASSIGN_OR_RETURN(const TF_Output output, Output(fetch));
      step.fetches.push_back(output);
    }
    for (const std::string& target : targets) {
      MR_ASSIGN_OR_RETURN(const TF_Output output, Output(target));
      step.targets.push_back(output.oper);
    }
    steps_.push_back(std::move(step));
    return static_cast<int>(steps_.size()) - 1;
  }

  Status Run(int index, double* value) override {
    Step& step = steps_[index];
    step.fetched.assign(step.fetches.size(), nullptr);
    const TF_Buffer options = {run_options_.data(), run_options_.size(), nullptr};
    tf_.SessionRun(session_, run_options_.empty() ? nullptr : &options, step.feeds.data(),
                   step.fed.data(), static_cast<int>(step.feeds.size()), step.fetches.data(),
                   step.fetched.data(), static_cast<int>(step.fetches.size()), step.targets.data(),
                   static_cast<int>(step.targets.size()), nullptr, status_);
    MR_RETURN_IF_ERROR(Check(tf_, status_, "step"));
    if (!step.fetched.empty() && tf_.TensorType(step.fetched[0]) == kFloat) {
      *value = *static_cast<const float*>(tf_.TensorData(step.fetched[0]));
    }
    for (TF_Tensor* tensor : step.fetched) tf_.DeleteTensor(tensor);
    return absl::OkStatus();
  }

 private:
  struct Step {
    std::vector<TF_Output> feeds;
    std::vector<TF_Tensor*> fed;
    std::vector<TF_Output> fetches;
    std::vector<TF_Tensor*> fetched;
    std::vector<const TF_Operation*> targets;
  };

  // "name" or "name:1"
  StatusOr<TF_Output> Output(const std::string& name) {
    const size_t colon = name.rfind(':');
    int index = 0;
    if (colon != std::string::npos && !absl::SimpleAtoi(name.substr(colon + 1), &index)) {
      return InvalidArgument("'", name, "' is no name of an output");
    }
    TF_Operation* const operation = tf_.GraphOperationByName(graph_, name.substr(0, colon).c_str());
    if (operation == nullptr) return NotFound("TensorFlow's graph has no '", name, "'");
    return TF_Output{operation, index};
  }

  TF_Tensor* FeedTensor(const FeedSpec& feed) {
    const bool integers = feed.dtype == "int32";
    const size_t bytes = static_cast<size_t>(feed.elements()) * 4;
    TF_Tensor* const tensor = tf_.AllocateTensor(integers ? kInt32 : kFloat, feed.shape.data(),
                                                 static_cast<int>(feed.shape.size()), bytes);
    if (integers) {
      std::memcpy(tf_.TensorData(tensor), Int32Pattern(feed.elements()).data(), bytes);
    } else {
      std::memcpy(tf_.TensorData(tensor), FloatPattern(feed.elements()).data(), bytes);
    }
    return tensor;
  }

  const TensorflowLibrary& tf_;
  const std::string run_options_;
  TF_Status* const status_;
  TF_Graph* graph_ = nullptr;
  TF_Session* session_ = nullptr;
  std::vector<Step> steps_;
};

Status TimeStep(const TensorflowLibrary& tf, const std::string& run_path,
                const std::string& times_path) {
  ThreadPool::Options one;
  one.threads = 1;
  const HostEnvironment host(one);
  FileSystem& files = *host.environment().files;
  MR_ASSIGN_OR_RETURN(const std::string text, ReadFile(files, run_path));
  MR_ASSIGN_OR_RETURN(const StepRun run, StepRun::FromJson(text, run_path));
  MR_ASSIGN_OR_RETURN(const StepTimes times, TimeSteps(run, *host.environment().clock, [&] {
                        return TensorflowGraph::Load(tf, run, files);
                      }));
  return WriteFile(files, times_path, times.ToJson());
}

Status Serve(const TensorflowLibrary& tf, const std::vector<std::string>& arguments) {
  MR_RETURN_IF_ERROR(DieWithParent());
  int task = 0;
  if (!absl::SimpleAtoi(arguments[2], &task)) {
    return InvalidArgument("the task must be a number, but is '", arguments[2], "'");
  }
  MR_ASSIGN_OR_RETURN(const std::string config, ConfigProtoFor("", 1));
  MR_ASSIGN_OR_RETURN(const std::string def,
                      ServerDefFor(arguments[0], arguments[1], task, config));
  TF_Status* const status = tf.NewStatus();
  TF_Server* const server = tf.NewServer(def.data(), def.size(), status);
  MR_RETURN_IF_ERROR(Check(tf, status, "server"));
  tf.ServerStart(server, status);
  MR_RETURN_IF_ERROR(Check(tf, status, "start of the server"));
  MR_RETURN_IF_ERROR(WriteFile(*NewHostFileSystem(), arguments[3], "ready"));
  tf.ServerJoin(server, status);
  return Check(tf, status, "server");
}

Status Main(const std::vector<std::string>& arguments) {
  if (arguments.size() < 2) return InvalidArgument("see the head of its source");
  MR_ASSIGN_OR_RETURN(const TensorflowLibrary tf, TensorflowLibrary::Open(arguments[0]));
  const std::vector<std::string> rest(arguments.begin() + 2, arguments.end());
  if (arguments[1] == "step" && rest.size() == 2) return TimeStep(tf, rest[0], rest[1]);
  if (arguments[1] == "serve" && rest.size() == 4) return Serve(tf, rest);
  if (arguments[1] == "version") {
    std::printf("%s\n", tf.Version());
    std::fflush(stdout);
    return absl::OkStatus();
  }
  return InvalidArgument("see the head of its source");
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  const millrace::Status status =
      millrace::bench::Main(std::vector<std::string>(argv + 1, argv + argc));
  // TensorFlow's own threads may still run: no destructors.
  if (status.ok()) std::_Exit(0);
  std::fprintf(stderr, "tensorflow_peer: %s\n", status.ToString().c_str());
  std::_Exit(1);
}
