#include "core/base/logging.h"

#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>

#include "absl/strings/str_format.h"

namespace millrace {
namespace {

std::atomic<Severity> minimum_severity{Severity::kWarning};

char LetterOf(Severity severity) {
  switch (severity) {
    case Severity::kInfo:
      return 'I';
    case Severity::kWarning:
      return 'W';
    case Severity::kError:
      return 'E';
  }
  return '?';
}

}  // namespace

void SetMinimumSeverity(Severity severity) {
  minimum_severity.store(severity, std::memory_order_relaxed);
}

void LogLine(Severity severity, absl::string_view text) {
  if (severity < minimum_severity.load(std::memory_order_relaxed)) return;
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  tm local = {};
  localtime_r(&now.tv_sec, &local);
  const std::string line =
      absl::StrFormat("%c %02d:%02d:%02d.%06d %s\n", LetterOf(severity), local.tm_hour,
                      local.tm_min, local.tm_sec, static_cast<int>(now.tv_nsec / 1000), text);
  // One write, so that lines of several threads and processes do not mix. What cannot be written
  // is lost: there is nobody left to tell.
  ssize_t written;
  do {
    written = write(STDERR_FILENO, line.data(), line.size());
  } while (written < 0 && errno == EINTR);
}

}  // namespace millrace
