#ifndef CORE_BASE_PROCESS_H_
#define CORE_BASE_PROCESS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "core/base/status.h"

namespace millrace {

// A child process. It ends with its parent however the parent ends (parent-death signal on Linux),
// not with the thread that started it. Thread-safe.
class ChildProcess {
 public:
  struct Options {
    std::vector<std::string> arguments;              // [0] is the program's path
    std::map<std::string, std::string> environment;  // added to the parent's
    std::string output_file;  // output and errors are appended to it; "" keeps the parent's
  };
  static StatusOr<std::unique_ptr<ChildProcess>> Start(const Options& options);

  // Kills (SIGKILL) and reaps it if it still runs.
  virtual ~ChildProcess() = default;

  virtual int pid() const = 0;
  virtual void Signal(int signal) = 0;
  // The exit code (128 + signal if a signal ended it) once ended, else -1. Never waits.
  virtual int PollExitCode() = 0;
  // Waits for the end, `timeout` at most; DeadlineExceeded then.
  virtual StatusOr<int> Wait(absl::Duration timeout) = 0;
};

// Runs `handler` on a thread of its own at the first SIGINT or SIGTERM; the second ends the process
// at once with code 130. One handler a process: a later call replaces one that has not run.
void OnInterrupt(absl::AnyInvocable<void(int signal)> handler);

// Ends this process (SIGTERM to itself) if its parent dies. For servers started by a tool.
Status DieWithParent();

// The path of the running program.
std::string ProgramPath();
// Resident memory of this process, and of another (0 if there is none), in bytes.
int64_t ResidentBytes();
int64_t ResidentBytes(int pid);
int CurrentProcessId();
// Threads of this process as the operating system counts them.
int ThreadCount();

}  // namespace millrace

#endif  // CORE_BASE_PROCESS_H_
