#include "tests/testing/fake_device.h"

#include <atomic>

namespace millrace::testing {

class FakeDevice::CountingAllocator final : public Allocator {
 public:
  explicit CountingAllocator(int64_t limit) : limit_(limit) {}

  void* Allocate(size_t bytes) override {
    const auto size = static_cast<int64_t>(bytes);
    const int64_t now = in_use_.fetch_add(size) + size;
    void* memory = limit_ > 0 && now > limit_ ? nullptr : HostAllocator().Allocate(bytes);
    if (memory == nullptr) {
      in_use_.fetch_sub(size);
      return nullptr;
    }
    allocations_.fetch_add(1);
    int64_t peak = peak_.load();
    while (now > peak && !peak_.compare_exchange_weak(peak, now)) {
    }
    return memory;
  }

  void Deallocate(void* memory, size_t bytes) override {
    in_use_.fetch_sub(static_cast<int64_t>(bytes));
    HostAllocator().Deallocate(memory, bytes);
  }

  AllocatorStats stats() const override {
    AllocatorStats stats;
    stats.bytes_in_use = in_use_.load();
    stats.peak_bytes_in_use = peak_.load();
    stats.bytes_reserved = in_use_.load();
    stats.allocations = allocations_.load();
    stats.limit = limit_;
    return stats;
  }

 private:
  const int64_t limit_;
  std::atomic<int64_t> in_use_{0};
  std::atomic<int64_t> peak_{0};
  std::atomic<int64_t> allocations_{0};
};

FakeDevice::FakeDevice(absl::string_view name, Scheduler& pool, int64_t memory_limit)
    : pool_(pool), allocator_(std::make_unique<CountingAllocator>(memory_limit)) {
  if (StatusOr<DeviceName> parsed = DeviceName::Parse(name); parsed.ok()) info_.name = *parsed;
  info_.memory_limit = memory_limit;
  info_.description = "fake";
}

FakeDevice::~FakeDevice() = default;

Allocator& FakeDevice::allocator() { return *allocator_; }

int64_t FakeDevice::bytes_in_use() const { return allocator_->stats().bytes_in_use; }

int64_t FakeDevice::allocations() const { return allocator_->stats().allocations; }

}  // namespace millrace::testing
