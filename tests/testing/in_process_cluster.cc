#include "tests/testing/in_process_cluster.h"

#include "core/device/cpu_device.h"
#include "gtest/gtest.h"

namespace millrace::testing {

// A data plane that can be torn off its task at any time, as when its process dies.
class InProcessCluster::Switch final : public DataPlane {
 public:
  explicit Switch(std::shared_ptr<DataPlane> plane) : plane_(std::move(plane)) {}

  void TearOff() {
    std::shared_ptr<DataPlane> torn;
    MutexLock lock(mutex_);
    torn.swap(plane_);
  }

  LinkId Link(const std::string& task, const std::string& address, uint64_t incarnation) override {
    const std::shared_ptr<DataPlane> plane = Get();
    return plane == nullptr ? 0 : plane->Link(task, address, incarnation);
  }
  void Push(LinkId link, const MessageKey& key, Tensor tensor) override {
    if (const auto plane = Get()) plane->Push(link, key, std::move(tensor));
  }
  Status BeginStep(uint64_t session, uint64_t step, TensorSink* sink,
                   std::vector<LinkId> links) override {
    const std::shared_ptr<DataPlane> plane = Get();
    if (plane == nullptr) return Cancelled("the task is dead");
    return plane->BeginStep(session, step, sink, std::move(links));
  }
  void EndStep(uint64_t session, uint64_t step) override {
    if (const auto plane = Get()) plane->EndStep(session, step);
  }
  void EndSession(uint64_t session) override {
    if (const auto plane = Get()) plane->EndSession(session);
  }
  std::vector<LinkCounters> Counters() const override {
    const std::shared_ptr<DataPlane> plane = Get();
    return plane == nullptr ? std::vector<LinkCounters>() : plane->Counters();
  }

 private:
  std::shared_ptr<DataPlane> Get() const {
    MutexLock lock(mutex_);
    return plane_;
  }
  mutable Mutex mutex_;
  std::shared_ptr<DataPlane> plane_ ABSL_GUARDED_BY(mutex_);
};

class InProcessCluster::Factory final : public WorkerFactory {
 public:
  explicit Factory(Wire& wire) : wire_(wire) {}
  std::unique_ptr<WorkerInterface> Connect(const std::string& task,
                                           const std::string& address) override {
    return wire_.ConnectWorker(task, address);
  }

 private:
  Wire& wire_;
};

InProcessCluster::InProcessCluster(InProcessClusterOptions options)
    : options_(std::move(options)),
      wire_(options_.environment, options_.seed, options_.max_delay),
      factory_(std::make_unique<Factory>(wire_)) {
  for (const auto& [job, count] : options_.jobs) {
    std::vector<std::string> addresses;
    for (int i = 0; i < count; ++i) addresses.push_back(StrCat(job, i, ":1"));
    EXPECT_EQ(spec_.AddJob(job, std::move(addresses)), absl::OkStatus());
  }
  for (const auto& [task, address] : spec_.Tasks()) Start(task);
}

InProcessCluster::~InProcessCluster() {
  ShutDown();
  EXPECT_TRUE(drained()) << "run the environment first";
}

std::string InProcessCluster::AddressOf(const std::string& task) const {
  for (const auto& [name, address] : spec_.Tasks()) {
    if (name == task) return address;
  }
  ADD_FAILURE() << "there is no " << task;
  return "";
}

std::unique_ptr<MasterInterface> InProcessCluster::ConnectMaster(const std::string& task) {
  return wire_.ConnectMaster(AddressOf(task));
}

void InProcessCluster::Start(const std::string& task) {
  const std::string address = AddressOf(task);
  const DeviceName name = *DeviceName::Parse(task);
  auto life = std::make_unique<Life>();
  life->incarnation = options_.environment.entropy->Next();
  CpuDeviceOptions device;
  device.job = *name.job;
  device.task = *name.task;
  device.incarnation = life->incarnation;
  life->device = std::move(MakeCpuDevices(device, *options_.environment.scheduler)[0]);
  life->data_plane =
      std::make_unique<Switch>(options_.make_data_plane(task, address, life->incarnation));

  WorkerOptions worker;
  worker.task = task;
  worker.devices = {life->device.get()};
  worker.kernels = options_.kernels;
  worker.ops = options_.ops;
  worker.environment = options_.environment;
  worker.data_plane = life->data_plane.get();
  worker.incarnation = life->incarnation;
  worker.build_version = "test";
  if (options_.adjust_worker) options_.adjust_worker(worker);
  life->worker = std::make_unique<Worker>(std::move(worker));

  MasterOptions master;
  master.task = task;
  master.cluster = spec_;
  master.workers = factory_.get();
  master.own_worker = life->worker.get();
  master.environment = options_.environment;
  master.ops = options_.ops;
  master.kernels = options_.kernels;
  master.build_version = "test";
  if (options_.adjust_master) options_.adjust_master(master);
  life->master = std::make_unique<Master>(std::move(master));

  wire_.Listen(address, life->master.get(), life->worker.get());
  lives_[task] = std::move(life);
}

void InProcessCluster::Kill(const std::string& task) {
  wire_.SetState(AddressOf(task), Wire::State::kGone);
  const auto found = lives_.find(task);
  std::unique_ptr<Life> life = std::move(found->second);
  lives_.erase(found);
  life->data_plane->TearOff();
  End(std::move(life));
}

void InProcessCluster::Stop(const std::string& task) {
  wire_.SetState(AddressOf(task), Wire::State::kSilent);
}

void InProcessCluster::Continue(const std::string& task) {
  wire_.SetState(AddressOf(task), Wire::State::kUp);
}

void InProcessCluster::End(std::unique_ptr<Life> life) {
  *draining_ += 2;
  life->master->Shutdown([count = draining_] { --*count; });
  life->worker->Shutdown([count = draining_] { --*count; });
  // What still runs uses its device: it stays until the end.
  ended_.push_back(std::move(life));
}

void InProcessCluster::ShutDown() {
  while (!lives_.empty()) {
    End(std::move(lives_.begin()->second));
    lives_.erase(lives_.begin());
  }
}

bool InProcessCluster::drained() const { return *draining_ == 0; }

}  // namespace millrace::testing
