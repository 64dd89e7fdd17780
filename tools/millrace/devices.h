#ifndef TOOLS_MILLRACE_DEVICES_H_
#define TOOLS_MILLRACE_DEVICES_H_

#include <vector>

#include "core/framework/device.h"

namespace millrace {

// The devices that a command line names, in one of three forms:
//   "ps=1;worker=2"                             so many tasks of each job, a CPU device each
//   "ps=h:7000;worker=h:7001,h:7002"            any form of ClusterSpec; a CPU device a task
//   "/job:ps/task:0,/job:worker/task:0/device:CUDA:0"
//                                               names; CPU:0 where no device is named
// InvalidArgument for a name twice, or one that lacks job or task.
StatusOr<std::vector<DeviceInfo>> ParseDevices(absl::string_view text);

}  // namespace millrace

#endif  // TOOLS_MILLRACE_DEVICES_H_
