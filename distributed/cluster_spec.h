#ifndef DISTRIBUTED_CLUSTER_SPEC_H_
#define DISTRIBUTED_CLUSTER_SPEC_H_

#include <map>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace millrace {

// The tasks of a cluster and where they listen.
class ClusterSpec {
 public:
  // Any of the three forms: "worker=h:p,h:p;ps=h:p"; a ClusterDef as text proto ('job { name:
  // ...'); TF_CONFIG's JSON ({"cluster": {"worker": [...]}, "task": ...} or the cluster object
  // alone). InvalidArgument names the job, task or address at fault.
  static StatusOr<ClusterSpec> Parse(absl::string_view text);

  // Errors: a job twice, no job, an empty job or address, an address twice.
  Status AddJob(const std::string& job, std::vector<std::string> addresses);

  // Jobs by name.
  const std::map<std::string, std::vector<std::string>>& jobs() const { return jobs_; }
  // NotFound that lists what there is.
  StatusOr<std::string> Address(const std::string& job, int task) const;
  // "/job:ps/task:0" with addresses, ordered by job then task.
  std::vector<std::pair<std::string, std::string>> Tasks() const;
  int num_tasks() const;
  bool empty() const { return jobs_.empty(); }
  std::string ToString() const;  // the first form

 private:
  std::map<std::string, std::vector<std::string>> jobs_;
};

// "/job:ps/task:0"
std::string TaskName(absl::string_view job, int task);

}  // namespace millrace

#endif  // DISTRIBUTED_CLUSTER_SPEC_H_
