// What process_test starts. The first argument says what to do.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "core/base/process.h"

namespace millrace {
namespace {

void Say(const std::string& line) {
  std::puts(line.c_str());
  std::fflush(stdout);
}

void WaitForEver() {
  while (true) pause();
}

int Main(const std::string& what, const std::string& argument) {
  if (what == "exit") return std::atoi(argument.c_str());
  if (what == "print") {
    const char* const value = std::getenv(argument.c_str());
    Say(value == nullptr ? "(none)" : value);
    std::fputs("and an error\n", stderr);
    return 0;
  }
  if (what == "wait") {
    Say("ready");
    WaitForEver();
  }
  if (what == "descriptors") {
    // All but the standard ones.
    int open = 0;
    for (int fd = 3; fd < 1000; ++fd) open += fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
    return open;
  }
  if (what == "signals") {
    sigset_t blocked;
    sigprocmask(SIG_SETMASK, nullptr, &blocked);
    return sigismember(&blocked, SIGTERM) + sigismember(&blocked, SIGUSR1);
  }
  if (what == "parent") {
    // From a thread that ends at once: its child must not end with it.
    std::unique_ptr<ChildProcess> child;
    std::thread([&child, &argument] {
      ChildProcess::Options options;
      options.arguments = {ProgramPath(), argument};
      child = *ChildProcess::Start(options);
    }).join();
    Say("child " + std::to_string(child->pid()));
    WaitForEver();
  }
  if (what == "die_with_parent") {
    if (!DieWithParent().ok()) return 1;
    Say("ready");
    WaitForEver();
  }
  if (what == "interrupt") {
    OnInterrupt([&argument](int signal) {
      Say("signal " + std::to_string(signal));
      if (argument == "exit") _exit(42);
    });
    Say("ready");
    WaitForEver();
  }
  return 99;
}

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) {
  return millrace::Main(argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : "");
}
