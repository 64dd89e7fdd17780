// Trains a LeNet on Fashion-MNIST: in one process, on a cluster of servers started by hand, or on
// one that it starts itself; always the same program with the same numbers.
#include <unistd.h>

#include <cstdio>
#include <string>

#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "core/base/file.h"
#include "core/base/process.h"
#include "distributed/cluster_spec.h"
#include "nlohmann/json.hpp"
#include "python_free_api/millrace.h"
#include "python_free_api/version.h"

namespace {

using namespace millrace;  // NOLINT: the example reads as a user's program does

// 5x5 convolutions with 16 and 32 channels, each with ReLU and 2x2 max-pooling; dense 128 and 10.
class LeNet {
 public:
  explicit LeNet(Variables& v)
      : conv1_(v, "conv1", 1, 16, 5),
        conv2_(v, "conv2", 16, 32, 5),
        hidden_(v, "hidden", 7 * 7 * 32, 128),
        logits_(v, "logits", 128, 10) {}

  Value operator()(Value images) const {
    Value x = MaxPool(Relu(conv1_(images)));
    x = MaxPool(Relu(conv2_(x)));
    x = Relu(hidden_(Flatten(x)));
    return logits_(x);
  }

 private:
  ConvolutionLayer conv1_, conv2_;
  Dense hidden_, logits_;
};

struct Options {
  std::string cluster = "local";
  std::string target;
  std::string server;
  std::string data = "/usr/share/datasets/fashion-mnist";
  std::string out;
  int64_t epochs = 3;
  int64_t batch = 64;
  int64_t replicas = 2;
  int64_t steps = 0;
  int64_t seed = 1;
  double rate = 2e-3;
  bool resume = false;
  bool print_losses = false;
};

TrainingGraph BuildGraph(GraphBuilder& b, Variables& variables, double rate) {
  LeNet net(variables);
  TrainingGraph graph;
  const PartialShape images_shape = {PartialShape::kUnknown, 28, 28, 1};
  {
    auto scope = b.NameScope("train");
    Value images = Placeholder(b, DType::kFloat, images_shape, "images");
    Value labels = Placeholder(b, DType::kInt32, {PartialShape::kUnknown}, "labels");
    graph.inputs = {images, labels};
    graph.loss = ReduceMean(SparseCrossEntropy(net(images), labels));
  }
  graph.train = Minimize(graph.loss, variables, *Adam(rate));
  {
    auto scope = b.NameScope("test");
    Value images = Placeholder(b, DType::kFloat, images_shape, "images");
    Value labels = Placeholder(b, DType::kInt32, {PartialShape::kUnknown}, "labels");
    graph.test_inputs = {images, labels};
    Value predictions = Cast(ArgMax(net(images), -1), DType::kInt32);
    graph.test_correct = ReduceSum(Cast(Equal(predictions, labels), DType::kFloat));
  }
  return graph;
}

// Where the program runs: the session's target, and the strategy's devices.
struct Where {
  std::string target;
  std::string spec;
  DataParallelPsOptions strategy;
};

StatusOr<Where> Locate(const Options& options, const LocalCluster* started) {
  Where where;
  if (options.cluster == "local") {
    where.strategy.variable_device = "/device:CPU:0";
    for (int i = 0; i < options.replicas; ++i) {
      where.strategy.replica_devices.push_back(StrCat("/device:CPU:", i));
    }
    return where;
  }
  MR_ASSIGN_OR_RETURN(ClusterSpec spec,
                      ClusterSpec::Parse(started != nullptr ? started->spec() : options.cluster));
  if (spec.jobs().count("ps") == 0 || spec.jobs().count("worker") == 0) {
    return InvalidArgument("the cluster needs the jobs 'ps' and 'worker', but is ",
                           spec.ToString());
  }
  where.spec = spec.ToString();
  MR_ASSIGN_OR_RETURN(std::string master, spec.Address("worker", 0));
  where.target = options.target.empty() ? StrCat("grpc://", master) : options.target;
  where.strategy.variable_device = "/job:ps";
  for (size_t i = 0; i < spec.jobs().at("worker").size(); ++i) {
    where.strategy.replica_devices.push_back(StrCat("/job:worker/task:", i));
  }
  return where;
}

Status WriteSummary(FileSystem& files, const std::string& path, const TrainingResult& result,
                    const LocalCluster* cluster) {
  nlohmann::ordered_json summary;
  summary["version"] = kVersion;
  summary["test_accuracy"] = result.test_accuracy;
  summary["seconds"] = result.seconds;
  summary["examples_per_second"] = result.examples_per_second;
  summary["first_step"] = result.first_step;
  summary["losses"] = result.losses;
  summary["tasks"] = nlohmann::json::array();
  if (cluster != nullptr) {
    for (const LocalCluster::Task& task : cluster->tasks()) {
      summary["tasks"].push_back(
          {{"name", task.name}, {"pid", task.pid}, {"exit_code", task.exit_code}});
    }
  }
  for (const auto& [kind, file] : result.files) summary["files"][kind] = file;
  return WriteFile(files, path, summary.dump(1) + "\n");
}

// Of what is multiplied and counted here; the library checks the rest.
Status CheckRanges(const Options& options) {
  constexpr int64_t kMost = 1 << 20;
  if (options.replicas < 1 || options.replicas > kMost) {
    return InvalidArgument("--replicas must be from 1 to ", kMost, ", but is ", options.replicas);
  }
  if (options.batch < 1 || options.batch > kMost) {
    return InvalidArgument("--batch must be from 1 to ", kMost, ", but is ", options.batch);
  }
  return absl::OkStatus();
}

Status RunExample(const Options& options, Cancellation interrupt) {
  MR_RETURN_IF_ERROR(CheckRanges(options));
  RuntimeOptions runtime_options;
  runtime_options.cpu_devices = options.cluster == "local" ? static_cast<int>(options.replicas) : 1;
  MR_ASSIGN_OR_RETURN(std::unique_ptr<Runtime> runtime, Runtime::Create(runtime_options));
  const Environment& environment = runtime->environment();
  FileSystem& files = *environment.files;

  std::string out = options.out;
  if (out.empty()) {
    if (options.resume) return InvalidArgument("--resume needs --out, the folder to go on in");
    out = JoinPath("runs", absl::FormatTime("%Y-%m-%d-%H%M%S",
                                            absl::FromUnixMicros(environment.clock->WallMicros()),
                                            absl::LocalTimeZone()));
  }
  MR_RETURN_IF_ERROR(files.CreateFolder(out));
  MR_ASSIGN_OR_RETURN(ImageClasses train, ReadMnist(files, options.data, "train"));
  MR_ASSIGN_OR_RETURN(ImageClasses test, ReadMnist(files, options.data, "t10k"));

  std::unique_ptr<LocalCluster> cluster;
  if (options.cluster == "start") {
    LocalClusterOptions start;
    start.server = options.server;
    start.jobs = {{"ps", 1}, {"worker", static_cast<int>(options.replicas)}};
    start.folder = JoinPath(out, "servers");
    MR_ASSIGN_OR_RETURN(cluster, LocalCluster::Start(start, environment));
    std::printf("cluster %s\n", cluster->spec().c_str());
    for (const LocalCluster::Task& task : cluster->tasks()) {
      std::printf("  %s: process %d, log %s\n", task.name.c_str(), task.pid, task.log.c_str());
    }
  }
  MR_ASSIGN_OR_RETURN(Where where, Locate(options, cluster.get()));

  GraphBuilder b(runtime->ops());
  Variables variables(b);
  TrainingGraph graph = BuildGraph(b, variables, options.rate);
  Operation initialize = variables.Initialize();
  MR_RETURN_IF_ERROR(b.status());

  for (const std::vector<Value>* inputs : {&graph.inputs, &graph.test_inputs}) {
    for (Value input : *inputs) where.strategy.split_feeds.push_back(input.name());
  }
  const int64_t replicas = static_cast<int64_t>(where.strategy.replica_devices.size());
  SessionOptions session_options;
  session_options.target = where.target;
  session_options.cluster = where.spec;
  MR_ASSIGN_OR_RETURN(session_options.strategy, NewDataParallelPs(where.strategy));
  session_options.on_program = [&](const StepSignature& logical, const Program& program) {
    if (logical.targets != std::vector<std::string>{graph.train.name()}) return;
    (void)WriteFile(files, JoinPath(out, "program.txt"), program.ToText());
  };
  MR_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, runtime->OpenSession(b, session_options));

  const int64_t global_batch = options.batch * replicas;
  MR_ASSIGN_OR_RETURN(Dataset train_set, Dataset::FromTensors({train.images, train.labels}));
  MR_ASSIGN_OR_RETURN(Dataset test_set, Dataset::FromTensors({test.images, test.labels}));
  train_set = train_set.Shuffle(static_cast<uint64_t>(options.seed))
                  .Batch(global_batch, /*drop_last=*/true)
                  .Prefetch(2, environment.scheduler);
  test_set = test_set.Batch(1000).Prefetch(2, environment.scheduler);

  ProgressLine line(*environment.clock, isatty(STDOUT_FILENO) != 0);
  TrainerOptions trainer;
  trainer.folder = out;
  trainer.epochs = options.epochs;
  trainer.max_steps = options.steps;
  trainer.resume = options.resume;
  trainer.cancellation = &interrupt;
  trainer.on_step = [&](const Progress& progress) {
    if (options.print_losses) {
      line.Print(absl::StrFormat("step %d loss %.9g", progress.step, progress.loss));
    } else {
      line.Show(progress);
    }
  };
  trainer.on_test = [&](int64_t epoch, double accuracy) {
    line.Print(absl::StrFormat("epoch %d: test accuracy %.2f %%", epoch, 100 * accuracy));
  };
  StatusOr<TrainingResult> result =
      Train(graph, variables, initialize, *session, train_set, test_set, environment, trainer);
  if (!result.ok()) line.Print("");
  (void)session->Close();
  if (cluster != nullptr) cluster->Stop();
  MR_RETURN_IF_ERROR(result.status());

  result->files.emplace_back("program", JoinPath(out, "program.txt"));
  const std::string summary = JoinPath(out, "summary.json");
  result->files.emplace_back("summary", summary);
  MR_RETURN_IF_ERROR(WriteSummary(files, summary, *result, cluster.get()));
  line.Print(absl::StrFormat("%.1f s, %.0f examples/s; written:", result->seconds,
                             result->examples_per_second));
  for (const auto& [kind, path] : result->files) {
    std::printf("  %-16s %s\n", kind.c_str(), path.c_str());
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  Flags flags(
      "fashion_mnist",
      "Trains a LeNet on Fashion-MNIST, synchronous data parallel over a parameter server.");
  flags.Add("cluster", &options.cluster,
            "'local': in this process; 'start': on servers that it starts; else a cluster spec "
            "('ps=host:port;worker=host:port,host:port') of servers that run");
  flags.Add("target", &options.target, "the master, grpc://host:port (the first worker)");
  flags.Add("server", &options.server, "the millrace program, for --cluster=start");
  flags.Add("data", &options.data, "the folder with the four IDX files");
  flags.Add("out", &options.out, "the run's folder (runs/<time>)");
  flags.Add("epochs", &options.epochs, "times that the training set is seen");
  flags.Add("batch", &options.batch, "examples a step and replica");
  flags.Add("replicas", &options.replicas, "replicas, for --cluster=local and --cluster=start");
  flags.Add("steps", &options.steps, "stop after so many steps; 0: all");
  flags.Add("seed", &options.seed, "of the order of the examples");
  flags.Add("rate", &options.rate, "Adam's learning rate");
  flags.Add("resume", &options.resume, "go on from the newest checkpoint in --out");
  flags.Add("print_losses", &options.print_losses, "print each step's loss");
  Status status = flags.Parse(Arguments(argc, argv));
  if (flags.help_wanted()) {
    std::fputs(flags.Help().c_str(), stdout);
    return 0;
  }
  Cancellation interrupt;
  if (status.ok()) {
    OnInterrupt([interrupt](int) mutable { interrupt.Cancel(Cancelled("interrupted")); });
    status = RunExample(options, interrupt);
  }
  if (status.ok()) return 0;
  std::fprintf(stderr, "fashion_mnist: %s\n", status.ToString().c_str());
  return absl::IsCancelled(status) ? 130 : 1;
}
