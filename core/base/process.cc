#include "core/base/process.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

#include "core/base/mutex.h"
#include "core/base/pidfd.h"

namespace millrace {
namespace {

constexpr int kInterruptedExitCode = 130;

// Lock-free, so that a signal handler may use them.
std::atomic<bool> interrupted{false};
std::atomic<int> interrupt_pipe{-1};

extern "C" void MillraceOnSignal(int number) {
  if (interrupted.exchange(true)) _exit(kInterruptedExitCode);
  const int error = errno;
  const char byte = static_cast<char>(number);
  [[maybe_unused]] const ssize_t written = write(interrupt_pipe.load(), &byte, 1);
  errno = error;
}

// Who is told of an interrupt. Never destroyed: its thread lives as long as the process.
struct InterruptHandler {
  Mutex mutex;
  absl::AnyInvocable<void(int signal)> handler ABSL_GUARDED_BY(mutex);
  bool installed ABSL_GUARDED_BY(mutex) = false;
};

void WaitForInterrupt(InterruptHandler& state, int pipe) {
  pthread_setname_np(pthread_self(), "interrupt");
  char number = 0;
  while (read(pipe, &number, 1) < 0 && errno == EINTR) {
  }
  absl::AnyInvocable<void(int signal)> handler;
  {
    MutexLock lock(state.mutex);
    handler = std::move(state.handler);
  }
  if (handler) handler(number);
}

// The number that follows `name` in a file like /proc/self/status; -1 if there is none.
int64_t NumberIn(const char* path, absl::string_view name) {
  FILE* const file = fopen(path, "re");
  if (file == nullptr) return -1;
  char line[256];
  long long number = -1;
  while (fgets(line, sizeof(line), file) != nullptr) {
    if (absl::string_view(line).substr(0, name.size()) != name) continue;
    if (sscanf(line + name.size(), "%lld", &number) != 1) number = -1;
    break;
  }
  fclose(file);
  return number;
}

}  // namespace

void OnInterrupt(absl::AnyInvocable<void(int signal)> handler) {
  static InterruptHandler* const state = new InterruptHandler;
  MutexLock lock(state->mutex);
  state->handler = std::move(handler);
  if (std::exchange(state->installed, true)) return;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) < 0) return;  // the signals' defaults stay: they end the process
  std::thread([read_end = ends[0]] { WaitForInterrupt(*state, read_end); }).detach();
  interrupt_pipe.store(ends[1]);
  struct sigaction action = {};
  action.sa_handler = MillraceOnSignal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

Status DieWithParent() {
  const pid_t parent = getppid();
  const int watched = OpenPidfd(parent);
  if (watched >= 0 && getppid() == parent) {
    // Not the parent-death signal: that comes when the parent's thread which forked ends.
    std::thread([watched] {
      pthread_setname_np(pthread_self(), "parent watch");
      pollfd ended = {watched, POLLIN, 0};
      while (poll(&ended, 1, -1) < 0 && errno == EINTR) {
      }
      kill(getpid(), SIGTERM);
    }).detach();
    return Status();
  }
  if (watched >= 0) close(watched);
  if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0) {
    return absl::ErrnoToStatus(errno, "cannot ask for a signal at the parent's end");
  }
  if (getppid() != parent) kill(getpid(), SIGTERM);  // it ended before prctl
  return Status();
}

std::string ProgramPath() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  return length < 0 ? "" : std::string(path, length);
}

int64_t ResidentBytes() { return ResidentBytes(getpid()); }

int64_t ResidentBytes(int pid) {
  const int64_t kilobytes = NumberIn(StrCat("/proc/", pid, "/status").c_str(), "VmRSS:");
  return kilobytes < 0 ? 0 : kilobytes * 1024;
}

int CurrentProcessId() { return getpid(); }

int ThreadCount() { return static_cast<int>(NumberIn("/proc/self/status", "Threads:")); }

}  // namespace millrace
