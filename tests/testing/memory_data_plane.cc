#include "tests/testing/memory_data_plane.h"

#include <set>

namespace millrace::testing {

using StepKey = std::pair<uint64_t, uint64_t>;  // session, step

// A step that has begun, or of which something came before.
struct MemoryDataPlanes::Step {
  Mutex mutex;  // held during calls of the sink, so that none comes after EndStep
  TensorSink* sink ABSL_GUARDED_BY(mutex) = nullptr;
  std::vector<std::pair<MessageKey, Tensor>> early ABSL_GUARDED_BY(mutex);

  void Take(const MessageKey& key, Tensor tensor) {
    MutexLock lock(mutex);
    if (sink == nullptr) {
      early.emplace_back(key, std::move(tensor));
    } else {
      sink->OnTensor(key, std::move(tensor), 0);
    }
  }
};

class MemoryDataPlanes::Plane : public std::enable_shared_from_this<Plane> {
 public:
  explicit Plane(MemoryDataPlanes& planes) : planes_(planes) {}

  LinkId Link(const std::string& task, const std::string& address, uint64_t incarnation) {
    MutexLock lock(mutex_);
    links_.push_back({task, address, incarnation});
    return static_cast<LinkId>(links_.size()) - 1;
  }

  void Push(LinkId link, const MessageKey& key, Tensor tensor) {
    Peer peer;
    {
      MutexLock lock(mutex_);
      peer = links_[link];
    }
    planes_.scheduler_.Schedule(
        [self = shared_from_this(), peer, key, tensor = std::move(tensor)]() mutable {
          const std::shared_ptr<Plane> to = self->planes_.Find(peer.address, peer.incarnation);
          if (to != nullptr) {
            to->Receive(key, std::move(tensor));
            return;
          }
          const std::shared_ptr<Step> step = self->Find({key.session, key.step}, /*add=*/false);
          if (step == nullptr) return;
          MutexLock lock(step->mutex);
          if (step->sink != nullptr) {
            step->sink->OnLinkDown(Unavailable("the link to ", peer.task, " is down"));
          }
        });
  }

  Status BeginStep(uint64_t session, uint64_t step, TensorSink* sink) {
    const std::shared_ptr<Step> begun = Find({session, step}, /*add=*/true);
    if (begun == nullptr) return Aborted("step ", step, " has ended");
    MutexLock lock(begun->mutex);
    if (begun->sink != nullptr) return Internal("step ", step, " begins twice");
    begun->sink = sink;
    for (auto& [key, tensor] : begun->early) sink->OnTensor(key, std::move(tensor), 0);
    begun->early.clear();
    return absl::OkStatus();
  }

  void EndStep(const StepKey& key) {
    std::shared_ptr<Step> ended;
    {
      MutexLock lock(mutex_);
      ended_.insert(key);
      const auto found = steps_.find(key);
      if (found == steps_.end()) return;
      ended = std::move(found->second);
      steps_.erase(found);
    }
    MutexLock lock(ended->mutex);
    ended->sink = nullptr;
    ended->early.clear();
  }

  void EndSession(uint64_t session) {
    std::vector<StepKey> keys;
    {
      MutexLock lock(mutex_);
      for (const auto& [key, step] : steps_) {
        if (key.first == session) keys.push_back(key);
      }
    }
    for (const StepKey& key : keys) EndStep(key);
  }

 private:
  struct Peer {
    std::string task;
    std::string address;
    uint64_t incarnation = 0;
  };

  void Receive(const MessageKey& key, Tensor tensor) {
    const std::shared_ptr<Step> step = Find({key.session, key.step}, /*add=*/true);
    if (step != nullptr) step->Take(key, std::move(tensor));
  }

  // Null if it has ended, or is unknown and not to be added.
  std::shared_ptr<Step> Find(const StepKey& key, bool add) {
    MutexLock lock(mutex_);
    if (ended_.contains(key)) return nullptr;
    const auto found = steps_.find(key);
    if (found != steps_.end()) return found->second;
    if (!add) return nullptr;
    return steps_[key] = std::make_shared<Step>();
  }

  MemoryDataPlanes& planes_;
  Mutex mutex_;
  std::vector<Peer> links_ ABSL_GUARDED_BY(mutex_);
  std::map<StepKey, std::shared_ptr<Step>> steps_ ABSL_GUARDED_BY(mutex_);
  std::set<StepKey> ended_ ABSL_GUARDED_BY(mutex_);
};

namespace {

template <typename Plane>
class OwnedPlane final : public DataPlane {
 public:
  explicit OwnedPlane(std::shared_ptr<Plane> plane) : plane_(std::move(plane)) {}
  LinkId Link(const std::string& task, const std::string& address, uint64_t incarnation) override {
    return plane_->Link(task, address, incarnation);
  }
  void Push(LinkId link, const MessageKey& key, Tensor tensor) override {
    plane_->Push(link, key, std::move(tensor));
  }
  Status BeginStep(uint64_t session, uint64_t step, TensorSink* sink,
                   std::vector<LinkId>) override {
    return plane_->BeginStep(session, step, sink);
  }
  void EndStep(uint64_t session, uint64_t step) override { plane_->EndStep({session, step}); }
  void EndSession(uint64_t session) override { plane_->EndSession(session); }
  std::vector<LinkCounters> Counters() const override { return {}; }

 private:
  const std::shared_ptr<Plane> plane_;
};

}  // namespace

std::unique_ptr<DataPlane> MemoryDataPlanes::Create(const std::string& address,
                                                    uint64_t incarnation) {
  const auto plane = std::make_shared<Plane>(*this);
  {
    MutexLock lock(mutex_);
    planes_[{address, incarnation}] = plane;
  }
  return std::make_unique<OwnedPlane<Plane>>(plane);
}

std::shared_ptr<MemoryDataPlanes::Plane> MemoryDataPlanes::Find(const std::string& address,
                                                                uint64_t incarnation) {
  MutexLock lock(mutex_);
  const auto found = planes_.find({address, incarnation});
  return found == planes_.end() ? nullptr : found->second.lock();
}

}  // namespace millrace::testing
