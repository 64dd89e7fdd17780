#ifndef TESTS_TESTING_IN_PROCESS_CLUSTER_H_
#define TESTS_TESTING_IN_PROCESS_CLUSTER_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "distributed/cluster_spec.h"
#include "distributed/master.h"
#include "distributed/worker.h"
#include "tests/testing/wire.h"

namespace millrace::testing {

struct InProcessClusterOptions {
  std::vector<std::pair<std::string, int>> jobs;  // {"ps", 1}, {"worker", 2}
  Environment environment;
  std::shared_ptr<const OpRegistry> ops;
  const KernelRegistry* kernels = nullptr;
  uint64_t seed = 1;
  absl::Duration max_delay = absl::ZeroDuration();  // of a control message, each way
  // The data plane of one life of a task.
  std::function<std::unique_ptr<DataPlane>(const std::string& task, const std::string& address,
                                           uint64_t incarnation)>
      make_data_plane;
  std::function<void(MasterOptions&)> adjust_master;
  std::function<void(WorkerOptions&)> adjust_worker;
};

// Whole tasks (master, worker, data plane, one CPU device each) in this process. They reach each
// other over a Wire; tasks can be killed, started again and stopped.
class InProcessCluster {
 public:
  explicit InProcessCluster(InProcessClusterOptions options);
  // REQUIRES: drained() after ShutDown.
  ~InProcessCluster();

  const ClusterSpec& spec() const { return spec_; }
  Wire& wire() { return wire_; }
  // The master of a task as a remote client sees it.
  std::unique_ptr<MasterInterface> ConnectMaster(const std::string& task);
  // As it is, without a wire. REQUIRES: the task is up.
  Master& master(const std::string& task) { return *lives_.at(task)->master; }
  Worker& worker(const std::string& task) { return *lives_.at(task)->worker; }
  Device& device(const std::string& task) { return *lives_.at(task)->device; }
  uint64_t incarnation(const std::string& task) const { return lives_.at(task)->incarnation; }

  // As SIGKILL: nothing of it is reached any more.
  void Kill(const std::string& task);
  // With nothing left of its earlier life. REQUIRES: it was killed.
  void Start(const std::string& task);
  // As SIGSTOP and SIGCONT.
  void Stop(const std::string& task);
  void Continue(const std::string& task);

  // Ends all tasks. Run the environment until drained().
  void ShutDown();
  bool drained() const;

 private:
  class Switch;
  struct Life {
    uint64_t incarnation = 0;
    std::unique_ptr<Device> device;
    std::unique_ptr<Switch> data_plane;
    std::unique_ptr<Worker> worker;
    std::unique_ptr<Master> master;
  };
  class Factory;

  void End(std::unique_ptr<Life> life);
  std::string AddressOf(const std::string& task) const;

  const InProcessClusterOptions options_;
  ClusterSpec spec_;
  Wire wire_;
  std::unique_ptr<Factory> factory_;
  std::map<std::string, std::unique_ptr<Life>> lives_;
  std::vector<std::unique_ptr<Life>> ended_;
  std::shared_ptr<std::atomic<int>> draining_ = std::make_shared<std::atomic<int>>(0);
};

}  // namespace millrace::testing

#endif  // TESTS_TESTING_IN_PROCESS_CLUSTER_H_
