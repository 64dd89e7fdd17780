#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/time/clock.h"
#include "core/base/deadline.h"
#include "core/base/mutex.h"
#include "core/base/pidfd.h"
#include "core/base/process.h"
#include "core/base/spawner.h"

namespace millrace {
namespace {

// How often Wait looks where the kernel cannot tell (no pidfd).
constexpr absl::Duration kLookInterval = absl::Milliseconds(5);

class HostChildProcess final : public ChildProcess {
 public:
  explicit HostChildProcess(int pid) : pid_(pid), pidfd_(OpenPidfd(pid)) {}

  ~HostChildProcess() override {
    Signal(SIGKILL);
    Reap(/*wait=*/true);
    if (pidfd_ >= 0) close(pidfd_);
  }

  int pid() const override { return pid_; }

  void Signal(int signal) override {
    // Under the lock and never after it was reaped: its pid may be another process's by then.
    MutexLock lock(mutex_);
    if (exit_code_ < 0) kill(pid_, signal);
  }

  int PollExitCode() override { return Reap(/*wait=*/false); }

  StatusOr<int> Wait(absl::Duration timeout) override {
    const Deadline deadline(timeout);
    while (true) {
      const int exit_code = PollExitCode();
      if (exit_code >= 0) return exit_code;
      const absl::Duration left = deadline.left();
      if (left == absl::ZeroDuration()) {
        return DeadlineExceeded("process ", pid_, " still runs after ",
                                absl::FormatDuration(timeout));
      }
      Doze(left);
    }
  }

 private:
  int Reap(bool wait) {
    MutexLock lock(mutex_);
    if (exit_code_ >= 0) return exit_code_;
    int status = 0;
    pid_t reaped;
    do {
      reaped = waitpid(pid_, &status, wait ? 0 : WNOHANG);
    } while (reaped < 0 && errno == EINTR);
    if (reaped == 0) return -1;
    if (reaped < 0) {
      exit_code_ = 255;  // this process ignores SIGCHLD, so nobody kept the code
    } else {
      exit_code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
    return exit_code_;
  }

  // Until the child ends, or for a while.
  void Doze(absl::Duration timeout) {
    if (pidfd_ < 0) {
      absl::SleepFor(std::min(timeout, kLookInterval));
      return;
    }
    // Rounded up, lest it look busily through the last millisecond.
    const int64_t millis = absl::ToInt64Milliseconds(std::min(timeout, absl::Hours(1))) + 1;
    pollfd ended = {pidfd_, POLLIN, 0};
    poll(&ended, 1, static_cast<int>(millis));
  }

  const int pid_;
  const int pidfd_;  // readable when the child has ended; -1 if the kernel has none
  Mutex mutex_;
  int exit_code_ ABSL_GUARDED_BY(mutex_) = -1;
};

// This process's environment with `added` in place of variables of the same names.
std::vector<std::string> EnvironmentWith(const std::map<std::string, std::string>& added) {
  std::vector<std::string> result;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string text = *variable;
    if (!added.contains(text.substr(0, text.find('=')))) result.push_back(text);
  }
  for (const auto& [name, value] : added) result.push_back(StrCat(name, "=", value));
  return result;
}

}  // namespace

StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(const Options& options) {
  if (options.arguments.empty()) return InvalidArgument("a process needs a program to run");
  SpawnRequest request;
  request.arguments = options.arguments;
  request.environment = EnvironmentWith(options.environment);
  if (!options.output_file.empty()) {
    do {
      request.output =
          open(options.output_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    } while (request.output < 0 && errno == EINTR);
    if (request.output < 0) {
      return absl::ErrnoToStatus(errno, StrCat("cannot write the output of ", options.arguments[0],
                                               " to ", options.output_file));
    }
  }
  const StatusOr<int> pid = Spawn(request);
  if (request.output >= 0) close(request.output);
  if (!pid.ok()) return pid.status();
  return std::make_unique<HostChildProcess>(*pid);
}

}  // namespace millrace
