#include "tests/python_free_api/small_run.h"

#include <utility>

#include "gtest/gtest.h"

namespace millrace::testing {
namespace {

constexpr int64_t kFeatures = 4;
constexpr int64_t kClasses = 3;
constexpr uint64_t kSeed = 5;

Dataset Batches(int64_t batch) {
  return Dataset::FromTensors({Examples(), Classes()}).value().Batch(batch);
}

// A session that asks before each step.
class WatchedSession final : public Session {
 public:
  WatchedSession(Session& session, const std::function<Status(const StepSignature&)>& before)
      : session_(session), before_(before) {}

  Status Extend(const Graph& graph) override { return session_.Extend(graph); }
  StatusOr<std::shared_ptr<PreparedStep>> Prepare(const StepSignature& signature) override {
    return session_.Prepare(signature);
  }
  void RunAsync(PreparedStep& step, std::vector<Tensor> feeds, const RunOptions& options,
                Done done) override {
    session_.RunAsync(step, std::move(feeds), options, std::move(done));
  }
  StatusOr<RunResult> Run(PreparedStep& step, std::vector<Tensor> feeds,
                          const RunOptions& options) override {
    if (before_) MR_RETURN_IF_ERROR(before_(step.signature()));
    return session_.Run(step, std::move(feeds), options);
  }
  StatusOr<std::vector<DeviceInfo>> ListDevices() override { return session_.ListDevices(); }
  Status Reset(std::vector<std::string> containers) override {
    return session_.Reset(std::move(containers));
  }
  Status Close() override { return session_.Close(); }

 private:
  Session& session_;
  const std::function<Status(const StepSignature&)>& before_;
};

}  // namespace

Tensor Examples() {
  std::vector<float> values;
  for (int i = 0; i < kRows * kFeatures; ++i) {
    values.push_back(static_cast<float>((i * 7919) % 41) / 20 - 1);
  }
  return Tensor::Of<float>({kRows, kFeatures}, values);
}

Tensor Classes() {
  std::vector<int32_t> classes;
  for (int i = 0; i < kRows; ++i) classes.push_back((i * i) % kClasses);
  return Tensor::Of<int32_t>({kRows}, classes);
}

SmallRun::SmallRun(FileSystem& files, RuntimeOptions runtime)
    : train(Batches(4).Shuffle(kSeed)), test(Batches(5)), files_(files), program_(runtime) {
  options.folder = "run";
  options.epochs = 4;
  GraphBuilder& b = program_.b;
  Variables& variables = program_.variables;
  const Dense hidden(variables, "hidden", kFeatures, 8);
  const Dense logits(variables, "logits", 8, kClasses);
  {
    const auto scope = b.NameScope("train");
    const Value x = Placeholder(b, DType::kFloat, {PartialShape::kUnknown, kFeatures}, "x");
    const Value labels = Placeholder(b, DType::kInt32, {PartialShape::kUnknown}, "labels");
    const Value kept = Dropout(variables, Relu(hidden(x)), 0.5, Mode::kTrain);
    graph.inputs = {x, labels};
    graph.loss = ReduceMean(SparseCrossEntropy(logits(kept), labels));
  }
  graph.train = Minimize(graph.loss, variables, *Adam(0.05));
  {
    const auto scope = b.NameScope("test");
    const Value x = Placeholder(b, DType::kFloat, {PartialShape::kUnknown, kFeatures}, "x");
    const Value labels = Placeholder(b, DType::kInt32, {PartialShape::kUnknown}, "labels");
    const Value guesses = Cast(ArgMax(logits(Relu(hidden(x))), -1), DType::kInt32);
    graph.test_inputs = {x, labels};
    graph.test_correct = ReduceSum(Cast(Equal(guesses, labels), DType::kFloat));
  }
  initialize = variables.Initialize();
  EXPECT_EQ(b.status(), Status());
}

StatusOr<TrainingResult> SmallRun::Train() {
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<Session> opened,
                      program_.runtime->OpenSession(program_.b, session));
  return TrainIn(*opened);
}

StatusOr<TrainingResult> SmallRun::TrainIn(Session& opened) {
  WatchedSession watched(opened, before_step);
  Environment environment = program_.runtime->environment();
  environment.files = &files_;
  return millrace::Train(graph, program_.variables, initialize, watched, train, test, environment,
                         options);
}

bool SmallRun::IsTest(const StepSignature& signature) const {
  return signature.fetches == std::vector<std::string>{graph.test_correct.name()};
}

bool SmallRun::IsSave(const StepSignature& signature) const {
  return !signature.fetches.empty() && signature.fetches[0] == program_.variables.all()[0].saved;
}

}  // namespace millrace::testing
