#include <string>
#include <vector>

#include "core/graph/graph_text.h"
#include "gtest/gtest.h"
#include "tests/graph_opt/pass_case.h"
#include "tests/testing/local_machine.h"

namespace millrace::testing {
namespace {

constexpr PassCase kStep = {"", "x | y |",
                            R"(x = Placeholder() {dtype=float, shape=[2]}
                               a = Const() {dtype=float, value=tensor(float[]: 2)}
                               c = Neg(a)
                               p = Mul(x, c)
                               q = Mul(c, x)
                               y = AddV2(p, q))",
                            nullptr};

Status RunDefault(PipelineOptions options, PrunedGraph& step) {
  static LocalMachine& machine = *new LocalMachine;
  return DefaultPipeline(machine.evaluator(), std::move(options)).Run(step);
}

TEST(DefaultPipelineTest, FoldsThenMergesThenPrunes) {
  EXPECT_EQ(DefaultPipeline(nullptr).names(),
            (std::vector<std::string>{"constant_folding", "common_subexpression", "prune"}));
  PrunedGraph step = PrunedOrFail(kStep);
  ASSERT_TRUE(RunDefault({}, step).ok());
  EXPECT_EQ(TextOf(step), Unindented(R"(x = Placeholder() {dtype=float, shape=[2]}
                          c/folded = Const() {dtype=float, value=tensor(float[]: -2)}
                          p = Mul(x, c/folded)
                          y = AddV2(p, p)
                          -> y)"));
}

struct DisabledCase {
  const char* disabled;
  int num_nodes;
};

TEST(DefaultPipelineTest, EachPassCanBeLeftOut) {
  const DisabledCase cases[] = {{"constant_folding", 5}, {"common_subexpression", 5}, {"prune", 6}};
  for (const DisabledCase& c : cases) {
    PrunedGraph step = PrunedOrFail(kStep);
    PipelineOptions options;
    options.disabled = {c.disabled};
    ASSERT_TRUE(RunDefault(options, step).ok());
    EXPECT_EQ(step.graph.num_nodes(), c.num_nodes) << "without " << c.disabled << "\n"
                                                   << TextOf(step);
  }
  PrunedGraph step = PrunedOrFail(kStep);
  const std::string before = TextOf(step);
  PipelineOptions options;
  options.disabled = {"constant_folding", "common_subexpression", "prune"};
  ASSERT_TRUE(RunDefault(options, step).ok());
  EXPECT_EQ(TextOf(step), before);
}

TEST(DefaultPipelineTest, AnUnknownNameIsRefusedAndTheKnownOnesListed) {
  PrunedGraph step = PrunedOrFail(kStep);
  const std::string before = TextOf(step);
  PipelineOptions options;
  options.disabled = {"constant_foldin"};
  const Status status = RunDefault(options, step);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "there is no pass 'constant_foldin' to disable; the passes are constant_folding, "
            "common_subexpression, prune");
  EXPECT_EQ(TextOf(step), before);
}

// A pass that a test makes up.
class FunctionPass final : public Pass {
 public:
  using Function = std::function<StatusOr<bool>(PrunedGraph&)>;
  FunctionPass(std::string name, Function function)
      : name_(std::move(name)), function_(std::move(function)) {}
  std::string name() const override { return name_; }
  StatusOr<bool> Run(PrunedGraph& pruned) const override { return function_(pruned); }

 private:
  const std::string name_;
  const Function function_;
};

// Says that it changed something, and leaves 'y' reading a node that is gone.
StatusOr<bool> BreakTheGraph(PrunedGraph& pruned) {
  pruned.graph.RemoveNode(pruned.graph.Find("p")->id());
  return true;
}

TEST(PipelineTest, TheDumpSeesBothSidesOfEachPassThatChangedSomething) {
  std::vector<std::string> seen;
  PipelineOptions options;
  options.dump = [&](const std::string& pass, const Graph& before, const Graph& after) {
    seen.push_back(StrCat(pass, " ", before.num_nodes(), " ", after.num_nodes()));
  };
  Pipeline pipeline(options);
  pipeline.Add(std::make_unique<FunctionPass>("idle", [](PrunedGraph&) { return false; }));
  pipeline.Add(NewCommonSubexpressionPass());
  pipeline.Add(std::make_unique<FunctionPass>("rename", [](PrunedGraph& pruned) {
    pruned.graph.SetRequestedDevice(pruned.graph.Find("p")->id(), "/job:ps");
    return true;
  }));
  PrunedGraph step = PrunedOrFail(kStep);
  ASSERT_TRUE(pipeline.Run(step).ok());
  EXPECT_EQ(seen, (std::vector<std::string>{"common_subexpression 6 5", "rename 5 5"}));
}

TEST(PipelineTest, AnUnsoundGraphIsFoundAfterThePassThatLeftIt) {
  Pipeline pipeline;
  pipeline.Add(std::make_unique<FunctionPass>("careless", BreakTheGraph));
  bool later = false;
  pipeline.Add(std::make_unique<FunctionPass>("later", [&](PrunedGraph&) {
    later = true;
    return false;
  }));
  PrunedGraph step = PrunedOrFail(kStep);
  const Status status = pipeline.Run(step);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_NE(status.message().find("pass careless left an unsound graph"), std::string::npos)
      << status;
  EXPECT_NE(status.message().find("'y'"), std::string::npos) << status;
  EXPECT_FALSE(later);
}

TEST(PipelineTest, VerificationCanBeLeftOut) {
  PipelineOptions options;
  options.verify = false;
  Pipeline pipeline(options);
  pipeline.Add(std::make_unique<FunctionPass>("careless", BreakTheGraph));
  PrunedGraph step = PrunedOrFail(kStep);
  EXPECT_TRUE(pipeline.Run(step).ok());
}

TEST(PipelineTest, ErrorsSayWhichPassMadeThem) {
  Pipeline pipeline;
  pipeline.Add(std::make_unique<FunctionPass>(
      "clumsy", [](PrunedGraph&) -> StatusOr<bool> { return ResourceExhausted("too many"); }));
  PrunedGraph step = PrunedOrFail(kStep);
  const Status status = pipeline.Run(step);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("pass clumsy"), std::string::npos) << status;
  EXPECT_NE(status.message().find("too many"), std::string::npos) << status;
}

}  // namespace
}  // namespace millrace::testing
