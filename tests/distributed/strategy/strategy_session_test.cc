#include "distributed/strategy/strategy_session.h"

#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/graph/graph_text.h"
#include "gtest/gtest.h"
#include "ops/array_ops.h"
#include "ops/math_ops.h"
#include "tests/distributed/strategy/small_models.h"
#include "tests/testing/op_text.h"

namespace millrace::testing {
namespace {

class StrategySessionTest : public ::testing::Test {
 protected:
  void SetUp() override { Open(TwoWorkers()); }

  void Open(DataParallelPsOptions options) {
    StrategySessionOptions session;
    session.strategy = NewDataParallelPs(std::move(options)).value();
    session.open = [this](const Graph& program) {
      return machine_.Open(program, machine_.Passes());
    };
    session.fold = machine_.Passes();
    session.on_program = [this](const StepSignature& logical, const Program& program) {
      signatures_.push_back(logical);
      programs_.push_back(program.ToText());
    };
    session_ = NewStrategySession(model_.builder->graph(), std::move(session)).value();
  }

  StatusOr<std::vector<Tensor>> Train(int64_t rows) {
    return RunStep(*session_, BatchFor(model_, rows, 1), {model_.loss}, {model_.train});
  }
  Status Initialize() { return RunStep(*session_, {}, {}, {model_.initialize}).status(); }

  LocalMachine machine_{ThreeTasks()};
  SmallModel model_ = MakeMlp(DType::kFloat, UpdateRule::kAdam);
  std::vector<StepSignature> signatures_;
  std::vector<std::string> programs_;
  std::unique_ptr<Session> session_;
};

TEST_F(StrategySessionTest, NamesStayThoseOfTheSingleDeviceGraph) {
  ASSERT_TRUE(Initialize().ok());
  StatusOr<std::vector<Tensor>> values =
      RunStep(*session_, BatchFor(model_, 5, 1), {model_.logits, model_.loss, "x", "labels:0"});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ((*values)[0].shape(), (Shape{5, 3}));
  EXPECT_EQ((*values)[1].shape(), Shape());
  EXPECT_EQ((*values)[2].shape(), (Shape{5, 4}));
  EXPECT_EQ((*values)[3].shape(), (Shape{5}));
  EXPECT_EQ(signatures_.back().fetches,
            (std::vector<std::string>{model_.logits, model_.loss, "x", "labels:0"}));
}

TEST_F(StrategySessionTest, EachSetOfFeedShapesHasAProgramOfItsOwn) {
  ASSERT_TRUE(Initialize().ok());
  const size_t before = programs_.size();
  ASSERT_TRUE(Train(8).ok());
  ASSERT_TRUE(Train(5).ok());
  ASSERT_TRUE(Train(8).ok());
  ASSERT_EQ(programs_.size(), before + 2);
  EXPECT_NE(programs_[before].find("rows [4,8)"), std::string::npos);
  EXPECT_NE(programs_[before + 1].find("rows [2,5)"), std::string::npos);
}

TEST_F(StrategySessionTest, TooManyShapesAreRefusedWithAdvice) {
  ASSERT_TRUE(Initialize().ok());
  for (int64_t rows = 2; rows < 18; ++rows) ASSERT_TRUE(Train(rows).ok()) << rows;
  const Status status = Train(18).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("pad the batches"), std::string::npos) << status;
  EXPECT_TRUE(Train(17).ok());
}

TEST_F(StrategySessionTest, FeedErrorsNameTheLogicalFeed) {
  ASSERT_TRUE(Initialize().ok());
  NamedFeeds feeds = BatchFor(model_, 4, 1);
  feeds[0].second = Tensor::Zeros(DType::kFloat, {4, 7});
  Status status = RunStep(*session_, feeds, {model_.loss}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "feed 'x' takes float[?,4], but got float[4,7]");
  feeds[0].second = Tensor::Zeros(DType::kDouble, {4, 4});
  status = RunStep(*session_, feeds, {model_.loss}).status();
  EXPECT_EQ(status.message(), "feed 'x' takes float[?,4], but got double[4,4]");
  feeds = BatchFor(model_, 1, 1);
  status = RunStep(*session_, feeds, {model_.loss}).status();
  EXPECT_NE(status.message().find("feed 'x' has 1 rows, fewer than the 2 replicas"),
            std::string::npos)
      << status;
  StatusOr<std::shared_ptr<PreparedStep>> step =
      session_->Prepare({{"x", "labels"}, {model_.loss}, {}});
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(session_->Run(**step, {}).status().message(), "the step takes 2 feeds, but got 0");
}

TEST_F(StrategySessionTest, WhatDoesNotExistIsNamed) {
  const StatusOr<std::shared_ptr<PreparedStep>> step = session_->Prepare({{}, {"nothing"}, {}});
  EXPECT_EQ(step.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(step.status().message().find("'nothing'"), std::string::npos) << step.status();
}

TEST_F(StrategySessionTest, AStepThatCannotBePlannedStaysAnError) {
  for (int i = 0; i < 2; ++i) {
    StatusOr<Graph> graph = GraphFromText(
        R"(one = Placeholder() {dtype=float, shape=[1]}
           y = Neg(one))",
        AllOps());
    ASSERT_TRUE(graph.ok()) << graph.status();
    ASSERT_TRUE(session_->Extend(*graph).ok());
    const Status status = session_->Prepare({{"one"}, {"y"}, {}}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  }
}

TEST_F(StrategySessionTest, AllStepsSeeTheSameVariables) {
  ASSERT_TRUE(Initialize().ok());
  const std::vector<Tensor> before = RunStep(*session_, {}, model_.variables).value();
  ASSERT_TRUE(Train(8).ok());
  ASSERT_TRUE(Train(5).ok());
  const std::vector<Tensor> after = RunStep(*session_, {}, model_.variables).value();
  EXPECT_NE(after[0].ToString(), before[0].ToString());
  // An evaluation gives what the parameters say now.
  const NamedFeeds batch = BatchFor(model_, 6, 2);
  const Tensor one = RunStep(*session_, batch, {model_.loss}).value()[0];
  ASSERT_TRUE(Train(8).ok());
  const Tensor two = RunStep(*session_, batch, {model_.loss}).value()[0];
  EXPECT_NE(one.ToString(), two.ToString());
}

TEST_F(StrategySessionTest, ValuesThatOnlyGoIntoVariablesAreNotSplit) {
  GraphBuilder& b = *model_.builder;
  const Value restored = Placeholder(b, DType::kFloat, {4, 5}, "restored");
  const Value other = Placeholder(b, DType::kFloat, {5}, "other");
  const Value w1(&b, b.graph().FindPort("w1").value());
  const Value b1(&b, b.graph().FindPort("b1").value());
  const Operation store = b.Add("AssignVariableOp", {w1, restored}, {}, {}, "store");
  const Operation store_other = b.Add("AssignVariableOp", {b1, other}, {}, {}, "store_other");
  ASSERT_TRUE(b.status().ok()) << b.status();
  Open(TwoWorkers());
  const Status status = RunStep(*session_,
                                {{"restored", Tensor::Zeros(DType::kFloat, {4, 5})},
                                 {"other", Tensor::Zeros(DType::kFloat, {5})}},
                                {}, {store.name(), store_other.name()})
                            .status();
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(StrategySessionTest, GrowsByNewNodesAndRefusesChangedOnes) {
  ASSERT_TRUE(Initialize().ok());
  // Nodes of their own: those that the session has need not be said again.
  StatusOr<Graph> more = GraphFromText(
      R"(z = Placeholder() {dtype=float, shape=[?]}
         y = Neg(z))",
      AllOps());
  ASSERT_TRUE(more.ok()) << more.status();
  ASSERT_TRUE(session_->Extend(*more).ok());
  StatusOr<std::vector<Tensor>> values =
      RunStep(*session_, {{"z", Tensor::Of<float>({3}, {1, 2, 3})}}, {"y"});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ((*values)[0].ToString(), Tensor::Of<float>({3}, {-1, -2, -3}).ToString());
  StatusOr<Graph> changed = GraphFromText(
      R"(z = Placeholder() {dtype=float, shape=[?]}
         y = Tanh(z))",
      AllOps());
  const Status status = session_->Extend(*changed);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("'y'"), std::string::npos) << status;
}

TEST_F(StrategySessionTest, ReportsOnceItIsPlanned) {
  StatusOr<std::shared_ptr<PreparedStep>> step =
      session_->Prepare({{"x", "labels"}, {model_.loss}, {model_.train}});
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ((*step)->Report().status().code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(Initialize().ok());
  ASSERT_TRUE(Train(8).ok());
  const StatusOr<PlacementReport> report = (*step)->Report();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_NE(report->ToText().find("replica 1 of 2"), std::string::npos);
  EXPECT_NE((*step)->placed_graph().Find("replica_1/x"), nullptr);
}

TEST_F(StrategySessionTest, RunAsyncCallsBackOnce) {
  ASSERT_TRUE(Initialize().ok());
  StatusOr<std::shared_ptr<PreparedStep>> step =
      session_->Prepare({{"x", "labels"}, {model_.loss}, {}});
  ASSERT_TRUE(step.ok()) << step.status();
  std::vector<Tensor> feeds;
  for (const auto& [name, value] : BatchFor(model_, 4, 1)) feeds.push_back(value);
  Notification ended;
  StatusOr<RunResult> result = RunResult{};
  session_->RunAsync(**step, feeds, {}, [&](StatusOr<RunResult> outcome) {
    result = std::move(outcome);
    ended.Notify();
  });
  ended.Wait();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->fetches.size(), 1u);
}

TEST_F(StrategySessionTest, NothingRunsAfterClose) {
  ASSERT_TRUE(Initialize().ok());
  StatusOr<std::shared_ptr<PreparedStep>> step =
      session_->Prepare({{"x", "labels"}, {model_.loss}, {}});
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_TRUE(session_->Close().ok());
  EXPECT_TRUE(session_->Close().ok());
  std::vector<Tensor> feeds;
  for (const auto& [name, value] : BatchFor(model_, 4, 1)) feeds.push_back(value);
  EXPECT_EQ(session_->Run(**step, feeds).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(session_->Prepare({{}, {}, {model_.initialize}}).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(StrategySessionTest, AStepOfAnotherSessionIsRefused) {
  StatusOr<std::shared_ptr<PreparedStep>> step = session_->Prepare({{}, {}, {model_.initialize}});
  ASSERT_TRUE(step.ok()) << step.status();
  const std::unique_ptr<Session> first = std::move(session_);
  Open(TwoWorkers());
  EXPECT_EQ(session_->Run(**step, {}).status().message(),
            "the step was prepared by another session");
}

TEST_F(StrategySessionTest, ListsTheDevicesAndResetsVariables) {
  EXPECT_EQ(session_->ListDevices().value().size(), 3u);
  ASSERT_TRUE(Initialize().ok());
  ASSERT_TRUE(session_->Reset({}).ok());
  EXPECT_EQ(RunStep(*session_, {}, model_.variables).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(NewStrategySessionTest, NeedsAStrategyAndAnOpener) {
  EXPECT_EQ(NewStrategySession(Graph(AllOps()), {}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace millrace::testing
