#include "core/base/status.h"

#include "absl/strings/cord.h"

namespace millrace {

Status Annotate(const Status& status, absl::string_view where) {
  if (status.ok()) return status;
  Status annotated(status.code(), StrCat(where, ": ", status.message()));
  status.ForEachPayload([&annotated](absl::string_view url, const absl::Cord& payload) {
    annotated.SetPayload(url, payload);
  });
  return annotated;
}

}  // namespace millrace
