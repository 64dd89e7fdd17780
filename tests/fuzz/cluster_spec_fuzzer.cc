#include <cstddef>
#include <cstdint>
#include <string>

#include "core/framework/device.h"
#include "distributed/cluster_spec.h"
#include "tests/fuzz/require.h"

namespace millrace::testing {
namespace {

// Any text is a cluster or refused. A cluster's text reads back as it was, and each task's name is
// a device's.
void RunOne(absl::string_view text) {
  const StatusOr<ClusterSpec> spec = ClusterSpec::Parse(text);
  if (!spec.ok()) {
    Require(absl::IsInvalidArgument(spec.status()), "a refusal is InvalidArgument");
    return;
  }
  const StatusOr<ClusterSpec> again = ClusterSpec::Parse(spec->ToString());
  Require(again.ok() && again->jobs() == spec->jobs(), "a cluster's text reads back");
  Require(static_cast<int>(spec->Tasks().size()) == spec->num_tasks(), "tasks are counted");
  for (const auto& [task, address] : spec->Tasks()) {
    const StatusOr<DeviceName> name = DeviceName::Parse(task);
    Require(name.ok() && name->job && name->task, "a task's name is a device's");
    const StatusOr<std::string> found = spec->Address(*name->job, *name->task);
    Require(found.ok() && *found == address, "a task is found by its name");
  }
}

}  // namespace
}  // namespace millrace::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  millrace::testing::RunOne({reinterpret_cast<const char*>(data), size});
  return 0;
}
