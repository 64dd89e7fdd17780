#include "distributed/inventory.h"

#include "distributed/device_proto.h"
#include "distributed/task_call.h"

namespace millrace {
namespace {

// Answers that are still to come.
struct Gathering {
  Mutex mutex;
  Inventory inventory ABSL_GUARDED_BY(mutex);
  size_t left ABSL_GUARDED_BY(mutex) = 0;
  absl::AnyInvocable<void(Inventory)> done ABSL_GUARDED_BY(mutex);
};

// The devices as the cluster calls them: a server may have been started under another name.
StatusOr<std::vector<DeviceInfo>> ReadDevices(const std::string& task,
                                              const GetStatusResponse& response) {
  MR_ASSIGN_OR_RETURN(const DeviceName here, DeviceName::Parse(task));
  std::vector<DeviceInfo> devices;
  for (const DeviceAttributes& device : response.device()) {
    MR_ASSIGN_OR_RETURN(DeviceInfo info, DeviceFromProto(device));
    info.name.job = here.job;
    info.name.task = here.task;
    info.incarnation = response.incarnation();
    devices.push_back(std::move(info));
  }
  return devices;
}

}  // namespace

TaskDirectory::TaskDirectory(WorkerFactory* factory, WorkerInterface* own,
                             std::string build_version)
    : factory_(factory),
      own_(own, [](WorkerInterface*) {}),
      build_version_(std::move(build_version)) {}

std::shared_ptr<WorkerInterface> TaskDirectory::Connect(const std::string& task,
                                                        const std::string& address) {
  if (factory_ == nullptr) return nullptr;
  MutexLock lock(mutex_);
  std::weak_ptr<WorkerInterface>& known = connections_[{task, address}];
  std::shared_ptr<WorkerInterface> worker = known.lock();
  if (worker == nullptr) {
    worker = factory_->Connect(task, address);
    known = worker;
  }
  return worker;
}

void TaskDirectory::Gather(std::vector<std::pair<std::string, std::string>> tasks,
                           const std::string& own_task, absl::Duration bound,
                           absl::AnyInvocable<void(Inventory)> done) {
  if (tasks.empty()) {
    done({});
    return;
  }
  const auto gathering = std::make_shared<Gathering>();
  {
    MutexLock lock(gathering->mutex);
    gathering->left = tasks.size();
    gathering->done = std::move(done);
    gathering->inventory.addresses.insert(tasks.begin(), tasks.end());
  }
  for (auto& [task, address] : tasks) {
    std::shared_ptr<WorkerInterface> worker =
        own_ != nullptr && task == own_task ? own_ : Connect(task, address);
    auto on_answer = [gathering, task, address, worker](Status status,
                                                        GetStatusResponse& response) {
      TaskLife life{task, address, response.incarnation(), worker, {}};
      if (status.ok()) {
        StatusOr<std::vector<DeviceInfo>> devices = ReadDevices(task, response);
        status = devices.status();
        if (devices.ok()) life.devices = *std::move(devices);
      }
      Inventory inventory;
      absl::AnyInvocable<void(Inventory)> done;
      {
        MutexLock lock(gathering->mutex);
        if (status.ok()) {
          gathering->inventory.present[task] = std::move(life);
        } else {
          gathering->inventory.absent[task] = status;
        }
        if (--gathering->left > 0) return;
        inventory = std::move(gathering->inventory);
        done = std::move(gathering->done);
      }
      done(std::move(inventory));
    };
    if (worker == nullptr) {
      GetStatusResponse none;
      on_answer(Unavailable(task, " (", address, ") cannot be reached from this master"), none);
      continue;
    }
    GetStatusRequest request;
    request.set_protocol_version(kProtocolVersion);
    request.set_build_version(build_version_);
    CallTask(std::move(worker), task, &WorkerInterface::GetStatus, std::move(request), bound,
             Cancellation(), std::move(on_answer));
  }
}

}  // namespace millrace
