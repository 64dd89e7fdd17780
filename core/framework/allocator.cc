#include "core/framework/allocator.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

namespace millrace {
namespace {

// Far above any host's memory, and well below where rounding up could overflow.
constexpr size_t kLargestRequest = size_t{1} << 44;

class MallocAllocator final : public Allocator {
 public:
  void* Allocate(size_t bytes) override {
    if (bytes > kLargestRequest) return nullptr;
    const size_t rounded = Round(bytes);
    void* memory = std::aligned_alloc(kAlignment, rounded);
    if (memory == nullptr) return nullptr;
    allocations_.fetch_add(1, std::memory_order_relaxed);
    const auto size = static_cast<int64_t>(rounded);
    const int64_t now = in_use_.fetch_add(size, std::memory_order_relaxed) + size;
    int64_t peak = peak_.load(std::memory_order_relaxed);
    while (now > peak && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
    }
    return memory;
  }

  void Deallocate(void* memory, size_t bytes) override {
    if (memory == nullptr) return;
    in_use_.fetch_sub(static_cast<int64_t>(Round(bytes)), std::memory_order_relaxed);
    std::free(memory);
  }

  AllocatorStats stats() const override {
    AllocatorStats stats;
    stats.bytes_in_use = in_use_.load(std::memory_order_relaxed);
    stats.peak_bytes_in_use = peak_.load(std::memory_order_relaxed);
    stats.bytes_reserved = stats.bytes_in_use;
    stats.allocations = allocations_.load(std::memory_order_relaxed);
    return stats;
  }

 private:
  static size_t Round(size_t bytes) {
    return (std::max<size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  }

  std::atomic<int64_t> in_use_{0};
  std::atomic<int64_t> peak_{0};
  std::atomic<int64_t> allocations_{0};
};

}  // namespace

Status Allocator::Copy(void* to, const void* from, size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
  return absl::OkStatus();
}

Allocator& HostAllocator() {
  // Never destroyed: tensors of static storage duration may outlive main.
  static MallocAllocator& allocator = *new MallocAllocator;
  return allocator;
}

}  // namespace millrace
