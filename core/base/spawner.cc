#include "core/base/spawner.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <thread>
#include <utility>

#include "core/base/mutex.h"
#include "core/base/scheduler.h"

namespace millrace {
namespace {

// What the child needs, as plain C.
struct Image {
  std::vector<char*> arguments;
  std::vector<char*> environment;
  int output = -1;
  int error_pipe = -1;  // gets errno if exec fails; closed by exec
  int descriptors = 0;  // no open descriptor is as large
  pid_t parent = 0;
};

std::vector<char*> PointersTo(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Runs in the child, in the parent's memory: only system calls.
[[noreturn]] void RunChild(const Image& image) {
  const auto fail = [&image] {
    const int error = errno;
    // Nothing can be done if the parent does not hear of it.
    [[maybe_unused]] const ssize_t written = write(image.error_pipe, &error, sizeof(error));
    _exit(127);
  };
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) fail();
  if (getppid() != image.parent) _exit(127);  // it ended before prctl
  if (image.output >= 0 &&
      (dup2(image.output, STDOUT_FILENO) < 0 || dup2(image.output, STDERR_FILENO) < 0)) {
    fail();
  }
  if (close_range(3, ~0u, CLOSE_RANGE_CLOEXEC) < 0) {  // Linux before 5.11
    for (int fd = 3; fd < image.descriptors; ++fd) fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
  // A handler of the parent's must not run here once signals are let through.
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action;
    if (sigaction(number, nullptr, &action) < 0 || action.sa_handler == SIG_IGN) continue;
    action = {};
    action.sa_handler = SIG_DFL;
    sigaction(number, &action, nullptr);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execve(image.arguments[0], image.arguments.data(), image.environment.data());
  fail();
  _exit(127);
}

// vfork rather than fork: no copy of the page tables of a process with gigabytes of tensors, and
// no fork handlers of libraries. Not inlined: nothing in its callers' frames may change between
// the two returns of vfork.
__attribute__((noinline)) pid_t ForkAndRun(const Image& image) {
  const pid_t pid = vfork();
  if (pid == 0) RunChild(image);
  return pid;
}

StatusOr<int> SpawnHere(const SpawnRequest& request) {
  const std::string& program = request.arguments[0];
  int pipe_ends[2];
  if (pipe2(pipe_ends, O_CLOEXEC) < 0) {
    return absl::ErrnoToStatus(errno, StrCat("cannot make a pipe to start ", program));
  }
  rlimit descriptors = {};
  getrlimit(RLIMIT_NOFILE, &descriptors);

  Image image;
  image.arguments = PointersTo(request.arguments);
  image.environment = PointersTo(request.environment);
  image.output = request.output;
  image.error_pipe = pipe_ends[1];
  image.descriptors = static_cast<int>(std::min<rlim_t>(descriptors.rlim_cur, 1 << 20));
  image.parent = getpid();
  const pid_t pid = ForkAndRun(image);
  int error = pid < 0 ? errno : 0;
  close(pipe_ends[1]);
  if (pid > 0) {
    int sent = 0;
    ssize_t got;
    do {
      got = read(pipe_ends[0], &sent, sizeof(sent));
    } while (got < 0 && errno == EINTR);
    if (got == sizeof(sent)) {
      error = sent;
      while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
  }
  close(pipe_ends[0]);
  if (error != 0) return absl::ErrnoToStatus(error, StrCat("cannot start ", program));
  return pid;
}

// The thread that forks, and what it has to do.
class Spawner {
 public:
  // Never destroyed: its children would end.
  static Spawner& Get() {
    static Spawner* const spawner = new Spawner;
    return *spawner;
  }

  StatusOr<int> Spawn(const SpawnRequest& request) {
    StatusOr<int> result = Internal("not started");
    Notification done;
    {
      MutexLock lock(mutex_);
      tasks_.push_back([&] {
        result = SpawnHere(request);
        done.Notify();
      });
      added_.NotifyOne();
    }
    done.Wait();
    return result;
  }

 private:
  Spawner() {
    std::thread([this] { RunThread(); }).detach();
  }

  void RunThread() {
    pthread_setname_np(pthread_self(), "spawner");
    // Until exec a child runs in this memory, where no handler may interrupt it.
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    while (true) {
      Task task;
      {
        MutexLock lock(mutex_);
        while (tasks_.empty()) added_.Wait(mutex_);
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
      task();
    }
  }

  Mutex mutex_;
  CondVar added_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

StatusOr<int> Spawn(const SpawnRequest& request) { return Spawner::Get().Spawn(request); }

}  // namespace millrace
