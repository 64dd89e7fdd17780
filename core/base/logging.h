#ifndef CORE_BASE_LOGGING_H_
#define CORE_BASE_LOGGING_H_

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

// Lines on standard error for the operator of a process: "I 10:02:03.123456 master: ...".
// Nothing here ends the process. Thread-safe; one write a line.
namespace millrace {

enum class Severity { kInfo, kWarning, kError };

void LogLine(Severity severity, absl::string_view text);
// Lines below `severity` are dropped from now on (kWarning at start).
void SetMinimumSeverity(Severity severity);

template <typename... Parts>
void LogInfo(const Parts&... parts) {
  LogLine(Severity::kInfo, absl::StrCat(parts...));
}
template <typename... Parts>
void LogWarning(const Parts&... parts) {
  LogLine(Severity::kWarning, absl::StrCat(parts...));
}
template <typename... Parts>
void LogError(const Parts&... parts) {
  LogLine(Severity::kError, absl::StrCat(parts...));
}

}  // namespace millrace

#endif  // CORE_BASE_LOGGING_H_
