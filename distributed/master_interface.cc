#include "distributed/master_interface.h"

namespace millrace {

void SetStatus(const Status& status, StatusMessage* message) {
  message->set_code(static_cast<int>(status.code()));
  // Messages may quote bytes from outside; a proto string holds UTF-8 only.
  message->set_message(std::string(status.message()));
}

Status ToStatus(const StatusMessage& message) {
  if (message.code() == 0) return absl::OkStatus();
  const bool known = message.code() > 0 &&
                     message.code() <= static_cast<int>(absl::StatusCode::kUnauthenticated);
  return Status(known ? static_cast<absl::StatusCode>(message.code()) : absl::StatusCode::kUnknown,
                message.message());
}

}  // namespace millrace
