#include "tests/distributed/data_plane/cluster.h"

#include <utility>

namespace millrace {
namespace {

uint8_t Pattern(uint64_t mark, int64_t i) {
  return static_cast<uint8_t>((mark * 0x9e3779b97f4a7c15u >> 32) + static_cast<uint64_t>(i) * 7);
}

}  // namespace

void* CountingAllocator::Allocate(size_t bytes) {
  const auto size = static_cast<int64_t>(bytes);
  if (stats_.limit > 0 && stats_.bytes_in_use + size > stats_.limit) return nullptr;
  stats_.bytes_in_use += size;
  stats_.peak_bytes_in_use = std::max(stats_.peak_bytes_in_use, stats_.bytes_in_use);
  ++stats_.allocations;
  return HostAllocator().Allocate(bytes);
}

void CountingAllocator::Deallocate(void* memory, size_t bytes) {
  stats_.bytes_in_use -= static_cast<int64_t>(bytes);
  HostAllocator().Deallocate(memory, bytes);
}

Cluster::Cluster(int tasks, uint64_t seed, const DataPlaneOptions& limits)
    : world(seed), network(world.environment(), seed), limits_(limits) {
  for (int i = 0; i < tasks; ++i) {
    tasks_.push_back(std::make_unique<Task>());
    Restart(i);
  }
}

Cluster::~Cluster() {
  for (const std::unique_ptr<Task>& task : tasks_) task->plane = nullptr;
  world.RunFor(absl::Hours(1));
}

void Cluster::Restart(int task) {
  Stop(task);
  StreamDataPlaneOptions options;
  options.environment = world.environment();
  options.streams = &network;
  options.allocator = &tasks_[task]->memory;
  options.incarnation = tasks_[task]->incarnation = next_incarnation_++;
  options.task = Name(task);
  options.build_version = "test";
  options.limits = limits_;
  tasks_[task]->plane = StreamDataPlane::Create(options);
  network.Listen(Address(task), tasks_[task]->plane.get());
}

void Cluster::Stop(int task) {
  network.Listen(Address(task), nullptr);
  tasks_[task]->plane = nullptr;
}

std::string Cluster::Name(int task) { return StrCat("/job:worker/task:", task); }
std::string Cluster::Address(int task) { return StrCat("host", task, ":1"); }

LinkId Cluster::Link(int from, int to) {
  return plane(from).Link(Name(to), Address(to), incarnation(to));
}

std::vector<LinkId> Cluster::Links(int task) {
  std::vector<LinkId> links;
  for (int other = 0; other < static_cast<int>(tasks_.size()); ++other) {
    if (other != task) links.push_back(Link(task, other));
  }
  return links;
}

void Cluster::ExpectNothingHeld() {
  int64_t used = 0;
  int64_t unsent = 0;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    const StreamDataPlane::Usage usage = tasks_[i]->plane->usage();
    EXPECT_EQ(usage.steps, 0) << "task " << i;
    EXPECT_EQ(usage.queued_tensors, 0) << "task " << i;
    EXPECT_EQ(usage.queued_bytes, 0) << "task " << i;
    EXPECT_EQ(usage.eager_held, 0) << "task " << i;
    EXPECT_EQ(usage.credit_outstanding, 0) << "task " << i;
    EXPECT_EQ(usage.offers, 0) << "task " << i;
    EXPECT_EQ(usage.early_bytes, 0) << "task " << i;
    used += usage.eager_used;
    unsent += usage.eager_unsent;
  }
  EXPECT_EQ(used, unsent);
}

Tensor Bytes(int64_t size, uint64_t mark) {
  Tensor tensor = Tensor::Zeros(DType::kUint8, Shape({size}));
  for (int64_t i = 0; i < size; ++i) tensor.mutable_data<uint8_t>()[i] = Pattern(mark, i);
  return tensor;
}

bool IsBytes(const Tensor& tensor, int64_t size, uint64_t mark) {
  if (tensor.dtype() != DType::kUint8 || tensor.shape() != Shape({size})) return false;
  for (int64_t i = 0; i < size; ++i) {
    if (tensor.data<uint8_t>()[i] != Pattern(mark, i)) return false;
  }
  return true;
}

}  // namespace millrace
