#include "tools/millrace/devices.h"

#include <set>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "distributed/cluster_spec.h"

namespace millrace {
namespace {

constexpr int kMostTasks = 4096;

DeviceInfo CpuOf(std::string job, int task) {
  DeviceInfo device;
  device.name.job = std::move(job);
  device.name.task = task;
  device.name.type = "CPU";
  device.name.index = 0;
  return device;
}

// "ps=1;worker=2": nullopt-like false if a part is not of that form.
bool ParseCounts(absl::string_view text, std::vector<DeviceInfo>* devices) {
  for (absl::string_view part : absl::StrSplit(text, absl::ByAnyChar(";,"), absl::SkipEmpty())) {
    const std::vector<std::string> halves = absl::StrSplit(part, '=');
    int count = 0;
    if (halves.size() != 2 || !absl::SimpleAtoi(halves[1], &count) || count < 1 ||
        count > kMostTasks) {
      return false;
    }
    const std::string job(absl::StripAsciiWhitespace(halves[0]));
    // Jobs that no device string can name are refused below.
    if (!DeviceName::Parse(StrCat("/job:", job)).ok()) return false;
    for (int task = 0; task < count; ++task) devices->push_back(CpuOf(job, task));
  }
  return !devices->empty();
}

StatusOr<std::vector<DeviceInfo>> ParseNames(absl::string_view text) {
  std::vector<DeviceInfo> devices;
  for (absl::string_view part : absl::StrSplit(text, absl::ByAnyChar(",; "), absl::SkipEmpty())) {
    MR_ASSIGN_OR_RETURN(const DeviceName name, DeviceName::Parse(part));
    if (!name.job || !name.task) {
      return InvalidArgument("device '", part, "' needs job and task: /job:worker/task:0/...");
    }
    DeviceInfo device;
    device.name = name.WithDefaults(CpuOf("", 0).name);
    // "/device:CUDA" alone takes no index from a CPU.
    if (!device.name.index) device.name.index = 0;
    devices.push_back(std::move(device));
  }
  return devices;
}

}  // namespace

StatusOr<std::vector<DeviceInfo>> ParseDevices(absl::string_view text) {
  std::vector<DeviceInfo> devices;
  if (absl::StartsWith(absl::StripLeadingAsciiWhitespace(text), "/")) {
    MR_ASSIGN_OR_RETURN(devices, ParseNames(text));
  } else if (!ParseCounts(text, &devices)) {
    devices.clear();
    const StatusOr<ClusterSpec> spec = ClusterSpec::Parse(text);
    if (!spec.ok()) {
      return InvalidArgument("--devices '", text,
                             "' is neither job=tasks ('ps=1;worker=2') nor a list of device names ",
                             "nor a cluster spec (", spec.status().message(), ")");
    }
    for (const auto& [job, addresses] : spec->jobs()) {
      for (size_t i = 0; i < addresses.size(); ++i) {
        devices.push_back(CpuOf(job, static_cast<int>(i)));
      }
    }
  }
  std::set<std::string> seen;
  for (const DeviceInfo& device : devices) {
    const std::string name = device.name.ToString();
    if (!seen.insert(name).second) return InvalidArgument("device '", name, "' is named twice");
  }
  if (devices.empty()) return InvalidArgument("--devices names no device");
  return devices;
}

}  // namespace millrace
