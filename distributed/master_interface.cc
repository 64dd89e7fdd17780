#include "distributed/master_interface.h"

#include <cstdint>

namespace millrace {
namespace {

// How many bytes the UTF-8 character at the start of `text` has; 0 if there is none.
size_t CharacterLength(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  if (byte(0) < 0x80) return 1;
  const size_t length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Longer than need be, surrogates, or beyond the last code point.
  const bool refused = (byte(0) == 0xe0 && byte(1) < 0xa0) || (byte(0) == 0xed && byte(1) > 0x9f) ||
                       (byte(0) == 0xf0 && byte(1) < 0x90) || (byte(0) == 0xf4 && byte(1) > 0x8f);
  return refused ? 0 : length;
}

// A proto string must be UTF-8, else its receiver refuses the whole response; messages may quote
// bytes from outside.
std::string ToUtf8(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t length = CharacterLength(text);
    if (length == 0) {
      out += '?';
      text.remove_prefix(1);
    } else {
      out.append(text.data(), length);
      text.remove_prefix(length);
    }
  }
  return out;
}

}  // namespace

void SetStatus(const Status& status, StatusMessage* message) {
  message->set_code(static_cast<int>(status.code()));
  message->set_message(ToUtf8(status.message()));
}

Status ToStatus(const StatusMessage& message) {
  if (message.code() == 0) return absl::OkStatus();
  const bool known =
      message.code() > 0 && message.code() <= static_cast<int>(absl::StatusCode::kUnauthenticated);
  return Status(known ? static_cast<absl::StatusCode>(message.code()) : absl::StatusCode::kUnknown,
                message.message());
}

}  // namespace millrace
