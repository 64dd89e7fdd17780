#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/framework/resource.h"
#include "gtest/gtest.h"
#include "tests/distributed/strategy/small_models.h"

namespace millrace::testing {
namespace {

constexpr int kSteps = 20;

struct Trained {
  std::vector<std::vector<double>> values;  // each step's loss, then the parameters
};

std::vector<double> Doubles(const Tensor& tensor) {
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    values.push_back(tensor.dtype() == DType::kDouble ? tensor.data<double>()[i]
                                                      : tensor.data<float>()[i]);
  }
  return values;
}

StatusOr<Trained> TrainIn(Session& session, const SmallModel& model, int64_t rows) {
  MR_RETURN_IF_ERROR(RunStep(session, {}, {}, {model.initialize}).status());
  Trained result;
  for (int step = 0; step < kSteps; ++step) {
    MR_ASSIGN_OR_RETURN(const std::vector<Tensor> loss,
                        RunStep(session, BatchFor(model, rows, step), {model.loss}, {model.train}));
    result.values.push_back(Doubles(loss[0]));
  }
  MR_ASSIGN_OR_RETURN(const std::vector<Tensor> parameters, RunStep(session, {}, model.variables));
  for (const Tensor& parameter : parameters) result.values.push_back(Doubles(parameter));
  return result;
}

struct TrainingCase {
  const char* name;
  SmallModel (*make)();
  int64_t rows;
  double tolerance;
};

SmallModel DoubleMlp() { return MakeMlp(DType::kDouble, UpdateRule::kSgd); }
SmallModel FloatMlp() { return MakeMlp(DType::kFloat, UpdateRule::kSgd); }
SmallModel AdamMlp() { return MakeMlp(DType::kFloat, UpdateRule::kAdam); }
SmallModel DoubleAdamMlp() { return MakeMlp(DType::kDouble, UpdateRule::kAdam); }
SmallModel DropoutMlp() { return MakeMlp(DType::kDouble, UpdateRule::kSgd, /*dropout=*/true); }
SmallModel DoubleLeNet() { return MakeLeNet(DType::kDouble, UpdateRule::kSgd); }
SmallModel FloatLeNet() { return MakeLeNet(DType::kFloat, UpdateRule::kSgd); }
SmallModel AdamLeNet() { return MakeLeNet(DType::kFloat, UpdateRule::kAdam); }

constexpr TrainingCase kCases[] = {
    {"MlpInDouble", DoubleMlp, 8, 1e-9},        {"MlpInDoubleUneven", DoubleMlp, 5, 1e-9},
    {"MlpInFloat", FloatMlp, 8, 1e-5},          {"MlpInFloatUneven", FloatMlp, 7, 1e-5},
    {"MlpWithAdam", AdamMlp, 8, 1e-3},          {"MlpWithAdamInDouble", DoubleAdamMlp, 5, 1e-9},
    {"MlpWithDrawnMasks", DropoutMlp, 8, 1e-9}, {"MlpWithDrawnMasksUneven", DropoutMlp, 5, 1e-9},
    {"LeNetInDouble", DoubleLeNet, 6, 1e-9},    {"LeNetInDoubleUneven", DoubleLeNet, 5, 1e-9},
    {"LeNetInFloat", FloatLeNet, 6, 1e-5},      {"LeNetWithAdam", AdamLeNet, 6, 1e-3},
};

class DataParallelTrainingTest : public ::testing::TestWithParam<TrainingCase> {};

TEST_P(DataParallelTrainingTest, GivesWhatOneDeviceGives) {
  const SmallModel model = GetParam().make();
  const Graph& graph = model.builder->graph();
  LocalMachine alone;
  StatusOr<std::unique_ptr<Session>> single = alone.Open(graph, alone.Passes());
  ASSERT_TRUE(single.ok()) << single.status();
  LocalMachine machine(ThreeTasks());
  StatusOr<std::unique_ptr<Session>> split = OpenSplit(machine, graph, TwoWorkers());
  ASSERT_TRUE(split.ok()) << split.status();
  const StatusOr<Trained> expected = TrainIn(**single, model, GetParam().rows);
  const StatusOr<Trained> actual = TrainIn(**split, model, GetParam().rows);
  ASSERT_TRUE(expected.ok()) << expected.status();
  ASSERT_TRUE(actual.ok()) << actual.status();
  ASSERT_EQ(actual->values.size(), expected->values.size());
  for (size_t i = 0; i < expected->values.size(); ++i) {
    const std::vector<double>& want = expected->values[i];
    ASSERT_EQ(actual->values[i].size(), want.size());
    double largest = 0;
    for (double value : want) largest = std::max(largest, std::abs(value));
    for (size_t j = 0; j < want.size(); ++j) {
      ASSERT_NEAR(actual->values[i][j], want[j], GetParam().tolerance * largest)
          << "value " << i << ", element " << j;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, DataParallelTrainingTest, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

// Sums are taken in rank order: runs do not differ in a bit.
TEST(DataParallelRepeatTest, TwoRunsAreEqual) {
  const SmallModel model = FloatLeNet();
  std::vector<Trained> runs;
  for (int i = 0; i < 2; ++i) {
    LocalMachine machine(ThreeTasks());
    StatusOr<std::unique_ptr<Session>> session =
        OpenSplit(machine, model.builder->graph(), TwoWorkers());
    ASSERT_TRUE(session.ok()) << session.status();
    StatusOr<Trained> run = TrainIn(**session, model, 5);
    ASSERT_TRUE(run.ok()) << run.status();
    runs.push_back(*std::move(run));
  }
  EXPECT_EQ(runs[0].values, runs[1].values);
}

// A placer that saw the programs alone would spread the variables of each of them in another way.
TEST(DataParallelTwoServersTest, AllStepsFindTheVariablesWhereTheFirstOneLeftThem) {
  const SmallModel model = AdamMlp();
  LocalMachine alone;
  StatusOr<std::unique_ptr<Session>> single = alone.Open(model.builder->graph(), alone.Passes());
  ASSERT_TRUE(single.ok()) << single.status();
  LocalMachine machine(
      {"/job:ps/task:0", "/job:ps/task:1", "/job:worker/task:0", "/job:worker/task:1"});
  StatusOr<std::unique_ptr<Session>> split =
      OpenSplit(machine, model.builder->graph(), TwoWorkers());
  ASSERT_TRUE(split.ok()) << split.status();
  const StatusOr<Trained> expected = TrainIn(**single, model, 8);
  const StatusOr<Trained> actual = TrainIn(**split, model, 8);
  ASSERT_TRUE(expected.ok()) << expected.status();
  ASSERT_TRUE(actual.ok()) << actual.status();
  for (int step = 0; step < kSteps; ++step) {
    EXPECT_NEAR(actual->values[step][0], expected->values[step][0], 1e-3);
  }
  for (size_t ps = 0; ps < 2; ++ps) {
    EXPECT_FALSE(machine.devices()[ps]->resources().List().empty()) << "parameter server " << ps;
  }
}

}  // namespace
}  // namespace millrace::testing
