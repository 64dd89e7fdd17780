#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/framework/device.h"
#include "tests/fuzz/require.h"

namespace millrace::testing {
namespace {

bool Same(const DeviceName& a, const DeviceName& b) { return a.Matches(b) && b.Matches(a); }

// Any text is a name or refused. A name's text reads back as it was and has no blanks, so that it
// can stand in a graph's text.
StatusOr<DeviceName> ParseAndCheck(absl::string_view text) {
  const StatusOr<DeviceName> name = DeviceName::Parse(text);
  if (!name.ok()) {
    Require(absl::IsInvalidArgument(name.status()), "a refusal is InvalidArgument");
    return name;
  }
  Require(text.find_first_of(" \t\r\n#") == absl::string_view::npos, "no blanks are in a name");
  const StatusOr<DeviceName> again = DeviceName::Parse(name->ToString());
  Require(again.ok() && Same(*again, *name), "a name's text reads back");
  return name;
}

// Two lines, two names: what both say does not depend on which is first, and fits both.
void RunOne(absl::string_view text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const StatusOr<DeviceName> a = ParseAndCheck(text.substr(0, end));
  const StatusOr<DeviceName> b = ParseAndCheck(text.substr(std::min(end + 1, text.size())));
  if (!a.ok() || !b.ok()) return;
  const StatusOr<DeviceName> both = a->Combine(*b);
  const StatusOr<DeviceName> swapped = b->Combine(*a);
  Require(both.ok() == swapped.ok(), "whether names agree does not depend on their order");
  if (!both.ok()) return;
  Require(Same(*both, *swapped), "what both say does not depend on their order");
  Require(both->Matches(*a) && both->Matches(*b), "what both say fits both");
}

}  // namespace
}  // namespace millrace::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  millrace::testing::RunOne({reinterpret_cast<const char*>(data), size});
  return 0;
}
