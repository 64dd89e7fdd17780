#include "distributed/session_setup.h"

#include <set>

#include "absl/strings/str_join.h"

namespace millrace {
namespace {

StatusOr<ClusterSpec> ClusterOf(const SessionSettings& settings, const MasterOptions& options) {
  if (settings.cluster().empty()) return options.cluster;
  StatusOr<ClusterSpec> cluster = ClusterSpec::Parse(settings.cluster());
  if (!cluster.ok()) return Annotate(cluster.status(), "the session's cluster");
  return cluster;
}

// What the cluster calls the master's own task.
StatusOr<std::string> OwnTask(const ClusterSpec& cluster, const std::string& own_address,
                              const MasterOptions& options) {
  if (cluster.empty()) return options.task;
  bool has_name = false;
  for (const auto& [task, address] : cluster.Tasks()) {
    if (!own_address.empty() && address == own_address) return task;
    has_name = has_name || task == options.task;
  }
  if (has_name) return options.task;
  return InvalidArgument("the cluster ", cluster.ToString(), " does not hold its master ",
                         options.task,
                         own_address.empty() ? "" : StrCat(", which is at ", own_address));
}

Status SetPolicy(const SessionSettings& settings, const std::string& own_task,
                 const MasterOptions& options, PlannerOptions* planner) {
  if (settings.policy().empty()) {
    if (planner->placer.default_device == DeviceName()) {
      MR_ASSIGN_OR_RETURN(planner->placer.default_device, DeviceName::Parse(own_task));
    }
    return absl::OkStatus();
  }
  // A policy that is asked for by name has all tasks to choose from.
  planner->placer.default_device = DeviceName();
  planner->policy = nullptr;
  const auto found = options.policies.find(settings.policy());
  if (found != options.policies.end()) {
    planner->policy = found->second;
    return absl::OkStatus();
  }
  if (settings.policy() == "round_robin") return absl::OkStatus();
  std::set<std::string> names = {"round_robin"};
  for (const auto& [name, policy] : options.policies) names.insert(name);
  return InvalidArgument("there is no placement policy '", settings.policy(), "'; there is ",
                         absl::StrJoin(names, ", "));
}

}  // namespace

StatusOr<SessionSetup> MakeSessionSetup(const SessionSettings& settings,
                                        const MasterOptions& options) {
  SessionSetup setup;
  MR_ASSIGN_OR_RETURN(const ClusterSpec cluster, ClusterOf(settings, options));
  const std::string address = options.address ? options.address() : "";
  MR_ASSIGN_OR_RETURN(setup.own_task, OwnTask(cluster, address, options));
  setup.tasks = cluster.Tasks();
  if (setup.tasks.empty()) setup.tasks = {{setup.own_task, address}};
  setup.planner = options.planner;
  setup.planner.placer.soft_placement |= settings.soft_placement();
  MR_RETURN_IF_ERROR(SetPolicy(settings, setup.own_task, options, &setup.planner));
  return setup;
}

}  // namespace millrace
