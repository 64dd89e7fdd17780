#include "core/framework/device.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace millrace {
namespace {

bool IsName(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.';
  });
}

// A part as it is written: "task:1" is {"task", "1"}.
struct Part {
  absl::string_view key;
  absl::string_view value;
};

// "*" leaves the part open. False if malformed or given twice. (SimpleAtoi alone would take blanks
// and a sign.)
bool ReadNumber(absl::string_view text, std::optional<int>& number) {
  if (text == "*") return true;
  int value = 0;
  if (number || !std::all_of(text.begin(), text.end(), absl::ascii_isdigit) ||
      !absl::SimpleAtoi(text, &value)) {
    return false;
  }
  number = value;
  return true;
}

bool ReadType(absl::string_view text, std::optional<std::string>& type) {
  if (text == "*") return true;
  if (type || !IsName(text)) return false;
  type = absl::AsciiStrToUpper(text);
  if (*type == "GPU") type = "CUDA";
  return true;
}

bool ReadPart(Part part, DeviceName& name, std::optional<int>& replica) {
  if (part.key == "job") {
    if (part.value == "*") return true;
    if (name.job || !IsName(part.value)) return false;
    name.job = std::string(part.value);
    return true;
  }
  if (part.key == "replica") return ReadNumber(part.value, replica) && replica.value_or(0) == 0;
  if (part.key == "task") return ReadNumber(part.value, name.task);
  if (part.key == "device") {
    const std::pair<absl::string_view, absl::string_view> device =
        absl::StrSplit(part.value, absl::MaxSplits(':', 1));
    const bool has_index = device.first.size() < part.value.size();
    return ReadType(device.first, name.type) &&
           (!has_index || ReadNumber(device.second, name.index));
  }
  // The short form: "cpu:0".
  return ReadType(part.key, name.type) && ReadNumber(part.value, name.index);
}

}  // namespace

StatusOr<DeviceName> DeviceName::Parse(absl::string_view text) {
  DeviceName name;
  std::optional<int> replica;
  absl::string_view rest = text;
  absl::ConsumePrefix(&rest, "/");
  if (rest.empty() && text.size() <= 1) return name;
  for (absl::string_view part : absl::StrSplit(rest, '/')) {
    const size_t colon = part.find(':');
    if (colon == absl::string_view::npos ||
        !ReadPart({part.substr(0, colon), part.substr(colon + 1)}, name, replica)) {
      return InvalidArgument("'", text, "' is not a device: '", part,
                             "' is malformed or out of place; write for example "
                             "/job:worker/task:0/device:CPU:0");
    }
  }
  return name;
}

std::string DeviceName::ToString() const {
  std::string text = TaskString();
  if (type || index) {
    absl::StrAppend(&text, "/device:", type.value_or("*"), ":", index ? StrCat(*index) : "*");
  }
  return text;
}

std::string DeviceName::TaskString() const {
  std::string text;
  if (job) absl::StrAppend(&text, "/job:", *job);
  if (task) absl::StrAppend(&text, "/task:", *task);
  return text;
}

bool DeviceName::Matches(const DeviceName& pattern) const {
  return (!pattern.job || pattern.job == job) && (!pattern.task || pattern.task == task) &&
         (!pattern.type || pattern.type == type) && (!pattern.index || pattern.index == index);
}

DeviceName DeviceName::WithDefaults(const DeviceName& other) const {
  DeviceName merged = *this;
  if (!merged.job) merged.job = other.job;
  if (!merged.task) merged.task = other.task;
  // The default CPU:0 says nothing of which CUDA device is meant.
  const bool same_type = !type || !other.type || type == other.type;
  if (!merged.type) merged.type = other.type;
  if (!merged.index && same_type) merged.index = other.index;
  return merged;
}

StatusOr<DeviceName> DeviceName::Combine(const DeviceName& other) const {
  const auto agree = [](const auto& a, const auto& b) { return !a || !b || *a == *b; };
  if (!agree(job, other.job) || !agree(task, other.task) || !agree(type, other.type) ||
      !agree(index, other.index)) {
    return InvalidArgument("devices '", ToString(), "' and '", other.ToString(),
                           "' contradict each other");
  }
  return WithDefaults(other);
}

}  // namespace millrace
