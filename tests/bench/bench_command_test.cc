#include "core/base/file.h"
#include "core/base/thread_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/bench/report.h"
#include "tools/bench/suite.h"

namespace millrace::bench {
namespace {

using ::testing::HasSubstr;

TEST(SummarizeTest, MedianAndTenthPercentile) {
  const struct {
    std::vector<double> samples;
    double median, p10;
  } cases[] = {
      {{}, 0, 0},
      {{3}, 3, 3},
      {{4, 2}, 3, 2},
      {{9, 1, 5}, 5, 1},
      {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 6, 2},
  };
  for (const auto& c : cases) {
    const Summary summary = Summarize(c.samples);
    EXPECT_EQ(summary.median, c.median);
    EXPECT_EQ(summary.p10, c.p10);
    EXPECT_EQ(summary.count, static_cast<int>(c.samples.size()));
  }
  EXPECT_EQ(Summarize({4, 6, 8}, 2).median, 3);
}

TEST(ReportTest, ATableOfMarkdown) {
  const std::vector<Row> rows = {
      {"a node", "ns", {50, 45.5, 9}, "TensorFlow", {100, 90, 9}, 0.5},
      {"a step", "ms", {3, 2, 5}, "TensorFlow", {2, 1, 5}, 1},
      {"memory", "MB", {20, 19, 3}, "", {}, 0},
  };
  EXPECT_EQ(ToMarkdown(rows),
            "| what | unit | Millrace | peer | ratio | aim |\n"
            "|---|---|---|---|---|---|\n"
            "| a node | ns | 50.0 (45.5; 9) | 100 (90.0; 9) TensorFlow | 0.50 | ≤ 0.50, met |\n"
            "| a step | ms | 3.00 (2.00; 5) | 2.00 (1.00; 5) TensorFlow | 1.50 | ≤ 1.00, "
            "**missed** |\n"
            "| memory | MB | 20.0 (19.0; 3) | - | - | - |\n");
}

TEST(ReportTest, ASectionOfADocumentIsReplaced) {
  const std::string made = ReplaceSection("# Title\n", "x", "one\n");
  EXPECT_EQ(made, "# Title\n<!-- begin x -->\none\n<!-- end x -->\n");
  EXPECT_EQ(ReplaceSection(made + "rest\n", "x", "two\n"),
            "# Title\n<!-- begin x -->\ntwo\n<!-- end x -->\nrest\n");
}

TEST(StepRunTest, ThroughJson) {
  StepRun run;
  run.graph = "a.pb";
  run.feeds = {{"x:0", "int32", {2, 3}}};
  run.targets = {"train"};
  run.seconds = 0.25;
  const StatusOr<StepRun> read = StepRun::FromJson(run.ToJson(), "run.json");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->ToJson(), run.ToJson());
  EXPECT_EQ(read->feeds[0].elements(), 6);
  for (const char* bad : {"", "{", "[]", "{\"graph\": 3}"}) {
    const Status status = StepRun::FromJson(bad, "run.json").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad;
    EXPECT_THAT(std::string(status.message()), HasSubstr("run.json"));
  }
}

// The whole of it, without a peer, in real processes.
TEST(SuiteTest, EachGroupRuns) {
  const HostEnvironment host;
  RunnerOptions options;
  options.millrace = "tools/millrace/millrace";
  options.folder = JoinPath(::testing::TempDir(), "bench");
  Runner runner(options, host.environment());
  SuiteOptions suite;
  suite.rounds = 1;
  suite.seconds = 0.01;
  const std::pair<const char*, int> groups[] = {
      {"executor", 3}, {"feeds", 2}, {"null_step", 3}, {"variable", 3}, {"server", 2}};
  for (const auto& [group, count] : groups) {
    SCOPED_TRACE(group);
    suite.only = group;
    int shown = 0;
    const auto rows = RunFirstSuite(runner, suite, [&](const Row&) { ++shown; });
    ASSERT_TRUE(rows.ok()) << rows.status();
    EXPECT_EQ(static_cast<int>(rows->size()), count);
    EXPECT_EQ(shown, count);
    for (const Row& row : *rows) {
      EXPECT_GT(row.ours.median, 0) << row.name;
      EXPECT_LE(row.ours.p10, row.ours.median) << row.name;
    }
  }
  suite.only = "none";
  EXPECT_EQ(RunFirstSuite(runner, suite, [](const Row&) {}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace millrace::bench
