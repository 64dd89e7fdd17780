#ifndef TESTS_DISTRIBUTED_DATA_PLANE_CLUSTER_H_
#define TESTS_DISTRIBUTED_DATA_PLANE_CLUSTER_H_

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/simulation.h"
#include "distributed/data_plane.h"
#include "gtest/gtest.h"
#include "tests/distributed/data_plane/simulated_network.h"

namespace millrace {

// Memory that is counted, and may be short.
class CountingAllocator final : public Allocator {
 public:
  void* Allocate(size_t bytes) override;
  void Deallocate(void* memory, size_t bytes) override;
  AllocatorStats stats() const override { return stats_; }
  void set_limit(int64_t limit) { stats_.limit = limit; }

 private:
  AllocatorStats stats_;
};

// Keeps what a step gets.
class Collector : public TensorSink {
 public:
  using Key = std::tuple<uint64_t, uint64_t, uint32_t, uint32_t>;

  void OnTensor(const MessageKey& key, Tensor tensor, int64_t wire_bytes) override {
    EXPECT_FALSE(ended) << "called after EndStep";
    const Key flat(key.session, key.step, key.frame, key.channel);
    EXPECT_TRUE(tensors.emplace(flat, std::move(tensor)).second) << "the same key twice";
    wire[key.channel] += wire_bytes;
    order.push_back(key.channel);
  }
  void OnLinkDown(const Status& reason) override {
    EXPECT_FALSE(ended) << "called after EndStep";
    downs.push_back(reason);
  }
  bool Has(uint32_t channel) const {
    for (uint32_t seen : order) {
      if (seen == channel) return true;
    }
    return false;
  }
  const Tensor& Get(uint64_t step, uint32_t channel) const {
    return tensors.at(Key(kSession, step, 0, channel));
  }

  static constexpr uint64_t kSession = 77;

  std::map<Key, Tensor> tensors;
  std::vector<uint32_t> order;       // of channels
  std::map<uint32_t, int64_t> wire;  // bytes by channel
  std::vector<Status> downs;
  bool ended = false;
};

// Data planes in one simulated world. Task i is "/job:worker/task:i" at "host<i>:1".
class Cluster {
 public:
  explicit Cluster(int tasks, uint64_t seed = 1, const DataPlaneOptions& limits = {});
  ~Cluster();

  StreamDataPlane& plane(int task) { return *tasks_[task]->plane; }
  CountingAllocator& memory(int task) { return tasks_[task]->memory; }
  LinkId Link(int from, int to);
  // Links `task` to all others.
  std::vector<LinkId> Links(int task);
  // A task that has crashed and come back: nothing of it is left, and it has another incarnation.
  void Restart(int task);
  void Stop(int task);

  static std::string Name(int task);
  static std::string Address(int task);
  uint64_t incarnation(int task) const { return tasks_[task]->incarnation; }

  // Until `done`; false after 10 minutes, or if nothing is left to do.
  bool RunUntil(const std::function<bool()>& done) {
    return world.RunUntil(done, absl::Minutes(10));
  }
  void RunFor(absl::Duration duration) { world.RunFor(duration); }

  // Nothing is queued, buffered or granted anywhere, and what senders hold of windows is what
  // receivers have yet to release.
  void ExpectNothingHeld();

  Simulation world;
  SimulatedNetwork network;

 private:
  struct Task {
    uint64_t incarnation = 0;
    CountingAllocator memory;
    std::unique_ptr<StreamDataPlane> plane;
  };

  const DataPlaneOptions limits_;
  uint64_t next_incarnation_ = 1000;
  std::vector<std::unique_ptr<Task>> tasks_;
};

// `size` bytes that tell where they are from.
Tensor Bytes(int64_t size, uint64_t mark);
bool IsBytes(const Tensor& tensor, int64_t size, uint64_t mark);

}  // namespace millrace

#endif  // TESTS_DISTRIBUTED_DATA_PLANE_CLUSTER_H_
