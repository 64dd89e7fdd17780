#include "core/base/process.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "core/base/file.h"
#include "core/base/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

// Only a failure takes that long.
constexpr absl::Duration kLong = absl::Seconds(30);
constexpr int kLooks = 10'000;

// Between two looks at what another process has done.
void Pause() { Notification().WaitFor(absl::Milliseconds(2)); }

class ProcessTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = JoinPath(testing::TempDir(), "process_test_XXXXXX");
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    output_ = JoinPath(folder, "output");
  }

  // process_test_program with these arguments.
  ChildProcess::Options Program(std::vector<std::string> arguments) const {
    ChildProcess::Options options;
    options.arguments = {JoinPath(FolderOf(ProgramPath()), "process_test_program")};
    for (std::string& argument : arguments) options.arguments.push_back(std::move(argument));
    options.output_file = output_;
    return options;
  }
  std::unique_ptr<ChildProcess> Start(std::vector<std::string> arguments) const {
    return StartWith(Program(std::move(arguments)));
  }
  static std::unique_ptr<ChildProcess> StartWith(const ChildProcess::Options& options) {
    StatusOr<std::unique_ptr<ChildProcess>> child = ChildProcess::Start(options);
    EXPECT_EQ(child.status(), Status());
    return *std::move(child);
  }

  std::string Output() const { return *ReadFile(*files_, output_); }
  // The first line that begins with `start`, once the child has written it.
  std::string WaitForLine(absl::string_view start) const {
    for (int look = 0; look < kLooks; ++look) {
      std::vector<std::string> lines = absl::StrSplit(Output(), '\n');
      lines.pop_back();  // not complete
      for (const std::string& line : lines) {
        if (absl::StartsWith(line, start)) return line;
      }
      Pause();
    }
    ADD_FAILURE() << "no line '" << start << "' in: " << Output();
    return "";
  }

  const std::unique_ptr<FileSystem> files_ = NewHostFileSystem();
  std::string output_;
};

// Whether the process ends soon. A zombie counts as ended: its new parent may be slow to reap it.
bool Ends(int pid) {
  const std::string status = StrCat("/proc/", pid, "/stat");
  for (int look = 0; look < kLooks; ++look) {
    FILE* const file = fopen(status.c_str(), "re");
    if (file == nullptr) return true;
    char state = '?';
    const int read = fscanf(file, "%*d (%*[^)]) %c", &state);
    fclose(file);
    if (read != 1 || state == 'Z' || state == 'X') return true;
    Pause();
  }
  return false;
}

TEST_F(ProcessTest, ReportsTheExitCode) {
  for (const int code : {0, 1, 7, 255}) {
    EXPECT_EQ(*Start({"exit", std::to_string(code)})->Wait(kLong), code);
  }
}

TEST_F(ProcessTest, PollNeverWaits) {
  const std::unique_ptr<ChildProcess> child = Start({"wait"});
  EXPECT_EQ(child->PollExitCode(), -1);
  child->Signal(SIGKILL);
  EXPECT_EQ(*child->Wait(kLong), 128 + SIGKILL);
  EXPECT_EQ(child->PollExitCode(), 128 + SIGKILL);
  child->Signal(SIGKILL);  // nobody is hit
}

TEST_F(ProcessTest, WaitGivesUpAfterItsTimeout) {
  const std::unique_ptr<ChildProcess> child = Start({"wait"});
  EXPECT_EQ(child->Wait(absl::Milliseconds(5)).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(child->Wait(absl::ZeroDuration()).status().code(), absl::StatusCode::kDeadlineExceeded);
  child->Signal(SIGTERM);
  EXPECT_EQ(*child->Wait(absl::InfiniteDuration()), 128 + SIGTERM);
}

TEST_F(ProcessTest, TheDestructorKillsAndReaps) {
  std::unique_ptr<ChildProcess> child = Start({"wait"});
  const int pid = child->pid();
  EXPECT_EQ(kill(pid, 0), 0);
  child.reset();
  EXPECT_EQ(kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

TEST_F(ProcessTest, EnvironmentIsAddedAndOutputGoesToTheFile) {
  ChildProcess::Options options = Program({"print", "MILLRACE_TEST"});
  options.environment = {{"MILLRACE_TEST", "a value"}};
  EXPECT_EQ(*StartWith(options)->Wait(kLong), 0);
  EXPECT_EQ(Output(), "a value\nand an error\n");
}

TEST_F(ProcessTest, EnvironmentReplacesTheParents) {
  setenv("MILLRACE_TEST", "the parent's", 1);
  ChildProcess::Options options = Program({"print", "MILLRACE_TEST"});
  EXPECT_EQ(*StartWith(options)->Wait(kLong), 0);
  options.environment = {{"MILLRACE_TEST", "the child's"}};
  EXPECT_EQ(*StartWith(options)->Wait(kLong), 0);
  unsetenv("MILLRACE_TEST");
  // The second run goes on in the same file.
  EXPECT_EQ(Output(), "the parent's\nand an error\nthe child's\nand an error\n");
}

TEST_F(ProcessTest, InheritsNoDescriptorAndNoBlockedSignal) {
  const int leaked = open("/dev/null", O_RDONLY);  // without O_CLOEXEC
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  sigaddset(&blocked, SIGUSR1);
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  EXPECT_EQ(*Start({"descriptors"})->Wait(kLong), 0);
  EXPECT_EQ(*Start({"signals"})->Wait(kLong), 0);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  close(leaked);
}

TEST_F(ProcessTest, AProgramThatCannotRunIsAnError) {
  ChildProcess::Options options;
  EXPECT_EQ(ChildProcess::Start(options).status().code(), absl::StatusCode::kInvalidArgument);
  options.arguments = {"/no/such/program"};
  EXPECT_EQ(ChildProcess::Start(options).status(),
            NotFound("cannot start /no/such/program: No such file or directory"));
  options.arguments = {"/dev/null"};
  EXPECT_EQ(ChildProcess::Start(options).status().code(), absl::StatusCode::kPermissionDenied);
  options = Program({"exit", "0"});
  options.output_file = "/no/such/folder/output";
  EXPECT_THAT(ChildProcess::Start(options).status().message(),
              HasSubstr("/no/such/folder/output: No such file"));
}

TEST_F(ProcessTest, ManyThreadsMayStartChildrenAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < 5; ++i) {
        const int code = 10 * t + i;
        EXPECT_EQ(*Start({"exit", std::to_string(code)})->Wait(kLong), code);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(ProcessTest, OutlivesTheThreadThatStartedItButNotTheProcess) {
  const std::unique_ptr<ChildProcess> child = Start({"parent", "wait"});
  const int grandchild = std::stoi(WaitForLine("child ").substr(6));
  WaitForLine("ready");
  EXPECT_EQ(kill(grandchild, 0), 0) << "its starter's thread ended, the process did not";
  child->Signal(SIGKILL);  // no chance to clean up
  EXPECT_EQ(*child->Wait(kLong), 128 + SIGKILL);
  EXPECT_TRUE(Ends(grandchild));
}

TEST_F(ProcessTest, DieWithParentEndsAProcessThatSomethingElseStarted) {
  // The shell does not ask for a parent-death signal, and waits for the program.
  ChildProcess::Options options;
  const ChildProcess::Options program = Program({});
  options.arguments = {
      "/bin/sh", "-c",
      StrCat("'", program.arguments[0], "' die_with_parent & echo child $!; wait")};
  options.output_file = output_;
  const std::unique_ptr<ChildProcess> shell = StartWith(options);
  const int grandchild = std::stoi(WaitForLine("child ").substr(6));
  WaitForLine("ready");
  EXPECT_EQ(kill(grandchild, 0), 0);
  shell->Signal(SIGKILL);
  EXPECT_EQ(*shell->Wait(kLong), 128 + SIGKILL);
  EXPECT_TRUE(Ends(grandchild));
}

TEST_F(ProcessTest, OnInterruptRunsItsHandlerOnceAndTheSecondSignalEnds) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::unique_ptr<ChildProcess> child = Start({"interrupt", "stay"});
    WaitForLine("ready");
    child->Signal(signal);
    WaitForLine(StrCat("signal ", signal));
    EXPECT_EQ(child->PollExitCode(), -1);
    child->Signal(SIGINT);
    EXPECT_EQ(*child->Wait(kLong), 130);
    ASSERT_EQ(files_->Remove(output_), Status());
  }
}

TEST_F(ProcessTest, AnInterruptHandlerMayEndTheProcessItsOwnWay) {
  const std::unique_ptr<ChildProcess> child = Start({"interrupt", "exit"});
  WaitForLine("ready");
  child->Signal(SIGTERM);
  EXPECT_EQ(*child->Wait(kLong), 42);
}

TEST(ProcessFactsTest, AreThoseOfThisProcess) {
  EXPECT_EQ(CurrentProcessId(), getpid());
  EXPECT_THAT(ProgramPath(), HasSubstr("process_test"));
  EXPECT_GT(ResidentBytes(), 1 << 20);
}

TEST(ProcessFactsTest, ThreadCountFollowsTheThreads) {
  const int before = ThreadCount();
  EXPECT_GE(before, 1);
  std::thread thread([before] { EXPECT_EQ(ThreadCount(), before + 1); });
  thread.join();
}

}  // namespace
}  // namespace millrace
