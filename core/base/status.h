#ifndef CORE_BASE_STATUS_H_
#define CORE_BASE_STATUS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

// Errors are values. A message says what is wrong, where, the offending values and what to do:
// lower case, no final period, e.g.
//   return InvalidArgument("bias has shape ", b, ", but the last axis of x has ", n, " elements");
namespace millrace {

using absl::Status;
using absl::StatusOr;
using absl::StrCat;

template <typename... Parts>
Status InvalidArgument(const Parts&... parts) {
  return absl::InvalidArgumentError(StrCat(parts...));
}
template <typename... Parts>
Status NotFound(const Parts&... parts) {
  return absl::NotFoundError(StrCat(parts...));
}
template <typename... Parts>
Status AlreadyExists(const Parts&... parts) {
  return absl::AlreadyExistsError(StrCat(parts...));
}
template <typename... Parts>
Status FailedPrecondition(const Parts&... parts) {
  return absl::FailedPreconditionError(StrCat(parts...));
}
template <typename... Parts>
Status OutOfRange(const Parts&... parts) {
  return absl::OutOfRangeError(StrCat(parts...));
}
template <typename... Parts>
Status Unimplemented(const Parts&... parts) {
  return absl::UnimplementedError(StrCat(parts...));
}
template <typename... Parts>
Status Internal(const Parts&... parts) {
  return absl::InternalError(StrCat(parts...));
}
template <typename... Parts>
Status Unavailable(const Parts&... parts) {
  return absl::UnavailableError(StrCat(parts...));
}
template <typename... Parts>
Status DataLoss(const Parts&... parts) {
  return absl::DataLossError(StrCat(parts...));
}
template <typename... Parts>
Status Aborted(const Parts&... parts) {
  return absl::AbortedError(StrCat(parts...));
}
template <typename... Parts>
Status Cancelled(const Parts&... parts) {
  return absl::CancelledError(StrCat(parts...));
}
template <typename... Parts>
Status DeadlineExceeded(const Parts&... parts) {
  return absl::DeadlineExceededError(StrCat(parts...));
}
template <typename... Parts>
Status ResourceExhausted(const Parts&... parts) {
  return absl::ResourceExhaustedError(StrCat(parts...));
}

// `status` with "<where>: " before its message, the code and payloads kept; OK stays OK.
Status Annotate(const Status& status, absl::string_view where);

}  // namespace millrace

// The two macros that return from the caller. `where`-style context: Annotate().
#define MR_RETURN_IF_ERROR(expression)                              \
  do {                                                              \
    if (::absl::Status mr_status = (expression); !mr_status.ok()) { \
      return mr_status;                                             \
    }                                                               \
  } while (false)

#define MR_STATUS_CONCAT_INNER(a, b) a##b
#define MR_STATUS_CONCAT(a, b) MR_STATUS_CONCAT_INNER(a, b)
#define MR_ASSIGN_OR_RETURN(lhs, expression) \
  MR_ASSIGN_OR_RETURN_IMPL(MR_STATUS_CONCAT(mr_status_or_, __LINE__), lhs, expression)
#define MR_ASSIGN_OR_RETURN_IMPL(result, lhs, expression) \
  auto result = (expression);                             \
  if (!result.ok()) return std::move(result).status();    \
  lhs = *std::move(result)

#endif  // CORE_BASE_STATUS_H_
