#include "core/base/logging.h"

#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace millrace {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::MatchesRegex;
using ::testing::SizeIs;

// What `body` writes to standard error, one element for each write.
template <typename Body>
std::vector<std::string> WritesOf(Body body) {
  int ends[2];
  // In packet mode each read returns one write.
  EXPECT_EQ(pipe2(ends, O_DIRECT | O_CLOEXEC), 0);
  const int saved = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  close(ends[1]);
  body();
  dup2(saved, STDERR_FILENO);  // closes the last write end
  close(saved);
  std::vector<std::string> writes;
  char packet[4096];
  for (ssize_t got; (got = read(ends[0], packet, sizeof(packet))) > 0;) {
    writes.emplace_back(packet, got);
  }
  close(ends[0]);
  return writes;
}

class LoggingTest : public testing::Test {
 protected:
  ~LoggingTest() override { SetMinimumSeverity(Severity::kWarning); }
};

TEST_F(LoggingTest, ALineHasSeverityTimeAndText) {
  const std::vector<std::string> writes = WritesOf([] {
    LogWarning("worker ", 3, " is slow");
    LogError("lost it");
  });
  const std::string time = "[0-9][0-9]:[0-9][0-9]:[0-9][0-9][.][0-9][0-9][0-9][0-9][0-9][0-9]";
  EXPECT_THAT(writes, ElementsAre(MatchesRegex("W " + time + " worker 3 is slow\n"),
                                  MatchesRegex("E " + time + " lost it\n")));
}

TEST_F(LoggingTest, LinesBelowTheMinimumAreDropped) {
  EXPECT_THAT(WritesOf([] { LogInfo("quiet at first"); }), SizeIs(0));
  SetMinimumSeverity(Severity::kInfo);
  EXPECT_THAT(WritesOf([] { LogInfo("now told"); }), SizeIs(1));
  SetMinimumSeverity(Severity::kError);
  EXPECT_THAT(WritesOf([] { LogWarning("dropped"); }), SizeIs(0));
}

TEST_F(LoggingTest, ALineIsOneWriteHoweverManyThreadsLog) {
  const std::string text(200, 'x');
  const std::vector<std::string> writes = WritesOf([&text] {
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&text] {
        for (int i = 0; i < 4; ++i) LogError(text);
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  EXPECT_THAT(writes, AllOf(SizeIs(12), Each(EndsWith(" " + text + "\n"))));
}

}  // namespace
}  // namespace millrace
