// The flags of a server; what it serves is tested in tests/cluster.
#include "python_free_api/server_main.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

TEST(ServerMainTest, HelpListsTheFlags) {
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(ServerMain({"--help"}), 0);
  const std::string help = ::testing::internal::GetCapturedStdout();
  for (const char* flag : {"--cluster", "--job", "--task", "--port", "--ready_file", "--threads"}) {
    EXPECT_THAT(help, HasSubstr(flag));
  }
}

TEST(ServerMainTest, TheProgramsOwnNumbersAreTheDefaults) {
  RuntimeOptions own;
  own.threads = 7;
  own.job = "reader";
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(ServerMain({"--help"}, own), 0);
  const std::string help = ::testing::internal::GetCapturedStdout();
  EXPECT_THAT(help, HasSubstr("0: one a core (default 7)"));
  EXPECT_THAT(help, HasSubstr("(default 'reader')"));
}

TEST(ServerMainTest, MistakesEndItWithACodeAndAMessage) {
  const struct {
    std::vector<std::string> arguments;
    int code;
    const char* message;
  } cases[] = {
      {{"--prot=1"}, 2, "millrace server: unknown flag --prot; did you mean --port?"},
      {{"worker"}, 2, "takes no arguments besides flags, but got 1: 'worker'"},
      {{"--port=70000"}, 1, "--port cannot be 70000"},
      {{"--port=-2"}, 1, "--port cannot be -2"},
      {{"--task=-1"}, 1, "--task cannot be -1"},
      {{"--task=4294967296"}, 1, "--task cannot be 4294967296"},
      {{"--threads=-1"}, 1, "--threads cannot be -1"},
      {{"--cpu_devices=4294967297"}, 1, "--cpu_devices cannot be 4294967297"},
      {{"--port=0", "--cpu_devices=0"}, 1, "cpu_devices is 0"},
      {{"--port=0", "--memory_limit=-5"}, 1, "memory_limit is -5"},
      {{"--cluster=worker=127.0.0.1:1"}, 1, "--cluster needs --job: which task is this?"},
      {{"--cluster=nonsense", "--job=worker"}, 1, "nonsense"},
      {{"--cluster=worker=127.0.0.1:1", "--job=ps"}, 1, "ps"},
      {{"--host=0.0.0.0", "--port=0"}, 1, "--insecure_allow_remote"},
  };
  for (const auto& c : cases) {
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(ServerMain(c.arguments), c.code) << c.message;
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr(c.message));
  }
}

}  // namespace
}  // namespace millrace
