#include "core/device/pooled_allocator.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

#include "core/base/pages.h"

// Present in a program that AddressSanitizer watches, null in all others. Kept blocks are marked as
// not to be touched, or the pool would hide every use after the end of a tensor.
extern "C" {
void __asan_poison_memory_region(const volatile void* memory, size_t bytes) __attribute__((weak));
void __asan_unpoison_memory_region(const volatile void* memory, size_t bytes) __attribute__((weak));
}

namespace millrace {
namespace {

constexpr size_t kLargest = size_t{1} << 44;
// Powers of two from 2^8 to 2^43, each with room for the classes up to the next, after the four
// classes of 64 to 256 bytes.
constexpr int kFirstPower = 8;
constexpr int kLastPower = 43;
constexpr int kClassesOfPower = 8;
constexpr int kSmallClasses = 4;
constexpr int kClasses = kSmallClasses + (kLastPower - kFirstPower + 1) * kClassesOfPower;

struct SizeClass {
  size_t size;
  int index;
};

// How far apart the classes from `below`, a power of two, to the next one are.
constexpr size_t StepAbove(size_t below) {
  return below < kHugePage ? below / 4 : std::max(below / 8, kHugePage);
}

// REQUIRES: bytes <= kLargest.
SizeClass ClassOf(size_t bytes) {
  bytes = std::max<size_t>(bytes, 1);
  constexpr size_t kUnit = Allocator::kAlignment;
  if (bytes <= kSmallClasses * kUnit) {
    const size_t units = (bytes + kUnit - 1) / kUnit;
    return {units * kUnit, static_cast<int>(units) - 1};
  }
  const size_t below = std::bit_floor(bytes - 1);  // below < bytes <= 2 * below
  const size_t step = StepAbove(below);
  const size_t steps = (bytes - below + step - 1) / step;
  const int power = std::bit_width(below) - 1;
  return {below + steps * step,
          kSmallClasses + (power - kFirstPower) * kClassesOfPower + static_cast<int>(steps) - 1};
}

size_t SizeOfClass(int index) {
  if (index < kSmallClasses) return static_cast<size_t>(index + 1) * Allocator::kAlignment;
  const int power = kFirstPower + (index - kSmallClasses) / kClassesOfPower;
  const auto steps = static_cast<size_t>((index - kSmallClasses) % kClassesOfPower + 1);
  const size_t below = size_t{1} << power;
  return below + steps * StepAbove(below);
}

void Poison(void* memory, size_t bytes) {
  if (__asan_poison_memory_region != nullptr) __asan_poison_memory_region(memory, bytes);
}

void Unpoison(void* memory, size_t bytes) {
  if (__asan_unpoison_memory_region != nullptr) __asan_unpoison_memory_region(memory, bytes);
}

class HostMemorySource final : public MemorySource {
 public:
  void* Take(size_t bytes) override {
    return bytes >= kHugePage ? AllocatePages(bytes)
                              : std::aligned_alloc(Allocator::kAlignment, bytes);
  }
  void Give(void* memory, size_t bytes) override {
    if (bytes >= kHugePage) {
      FreePages(memory, bytes);
    } else {
      std::free(memory);
    }
  }
  bool IsHostMemory() const override { return true; }
  Status Copy(void* to, const void* from, size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<MemorySource> NewHostMemorySource() { return std::make_unique<HostMemorySource>(); }

PooledAllocator::Ptr PooledAllocator::Create(int64_t limit, std::unique_ptr<MemorySource> source) {
  return Ptr(new PooledAllocator(limit, std::move(source)));
}

void PooledAllocator::Retire::operator()(PooledAllocator* allocator) const {
  allocator->retired_.store(true, std::memory_order_relaxed);
  allocator->Trim();
  if (allocator->held_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete allocator;
}

PooledAllocator::PooledAllocator(int64_t limit, std::unique_ptr<MemorySource> source)
    : limit_(limit),
      source_(std::move(source)),
      is_host_(source_->IsHostMemory()),
      lists_(kClasses) {}

PooledAllocator::~PooledAllocator() { Trim(); }

size_t PooledAllocator::RoundedSize(size_t bytes) {
  return bytes > kLargest ? 0 : ClassOf(bytes).size;
}

void* PooledAllocator::Allocate(size_t bytes) {
  if (bytes > kLargest) return nullptr;
  const SizeClass size_class = ClassOf(bytes);
  FreeList& list = lists_[size_class.index];
  void* block = nullptr;
  {
    MutexLock lock(list.mutex);
    ++list.allocations;
    if (!list.blocks.empty()) {
      block = list.blocks.back();
      list.blocks.pop_back();
    }
  }
  if (block == nullptr) block = TakeFromSource(size_class.size);
  if (block == nullptr) {
    MutexLock lock(list.mutex);
    --list.allocations;
    return nullptr;
  }
  const auto size = static_cast<int64_t>(size_class.size);
  const int64_t in_use = held_.fetch_add(size, std::memory_order_relaxed) + size - 1;
  int64_t peak = peak_.load(std::memory_order_relaxed);
  while (in_use > peak && !peak_.compare_exchange_weak(peak, in_use, std::memory_order_relaxed)) {
  }
  if (is_host_) {
    Unpoison(block, bytes);
    Poison(static_cast<char*>(block) + bytes, size_class.size - bytes);
  }
  return block;
}

void PooledAllocator::Deallocate(void* memory, size_t bytes) {
  if (memory == nullptr || bytes > kLargest) return;
  const SizeClass size_class = ClassOf(bytes);
  const auto size = static_cast<int64_t>(size_class.size);
  if (retired_.load(std::memory_order_relaxed)) {
    GiveToSource(memory, size_class.size);
  } else {
    if (is_host_) Poison(memory, size_class.size);
    FreeList& list = lists_[size_class.index];
    {
      MutexLock lock(list.mutex);
      list.blocks.push_back(memory);
    }
    // Sizes that are asked for no more would pile up. All go, as which are cold is not known; what
    // is still asked for comes back at once, and this is rare: as much must be freed in between.
    const int64_t in_use = held_.load(std::memory_order_relaxed) - 1 - size;
    const int64_t kept = reserved_.load(std::memory_order_relaxed) - in_use;
    if (kept > 2 * peak_.load(std::memory_order_relaxed)) Trim();
  }
  // The last step: from here on another thread may delete the pool.
  if (held_.fetch_sub(size, std::memory_order_acq_rel) == size) delete this;
}

AllocatorStats PooledAllocator::stats() const {
  AllocatorStats stats;
  stats.bytes_in_use = held_.load(std::memory_order_relaxed) - 1;
  stats.peak_bytes_in_use = peak_.load(std::memory_order_relaxed);
  stats.bytes_reserved = reserved_.load(std::memory_order_relaxed);
  stats.limit = limit_;
  for (const FreeList& list : lists_) {
    MutexLock lock(list.mutex);
    stats.allocations += list.allocations;
  }
  return stats;
}

Status PooledAllocator::Copy(void* to, const void* from, size_t bytes) {
  return source_->Copy(to, from, bytes);
}

bool PooledAllocator::Reserve(int64_t size) {
  int64_t reserved = reserved_.load(std::memory_order_relaxed);
  do {
    if (limit_ > 0 && size > limit_ - reserved) return false;
  } while (!reserved_.compare_exchange_weak(reserved, reserved + size, std::memory_order_relaxed));
  return true;
}

void* PooledAllocator::TakeFromSource(size_t size) {
  const auto bytes = static_cast<int64_t>(size);
  if (!Reserve(bytes)) {
    if (bytes > limit_) return nullptr;  // kept blocks cannot help
    Trim();
    if (!Reserve(bytes)) return nullptr;
  }
  void* block = source_->Take(size);
  if (block == nullptr) {
    Trim();
    block = source_->Take(size);
  }
  if (block == nullptr) reserved_.fetch_sub(bytes, std::memory_order_relaxed);
  return block;
}

void PooledAllocator::GiveToSource(void* block, size_t size) {
  if (is_host_) Unpoison(block, size);
  source_->Give(block, size);
  reserved_.fetch_sub(static_cast<int64_t>(size), std::memory_order_relaxed);
}

void PooledAllocator::Trim() {
  for (int index = 0; index < kClasses; ++index) {
    std::vector<void*> blocks;
    {
      MutexLock lock(lists_[index].mutex);
      blocks.swap(lists_[index].blocks);
    }
    if (blocks.empty()) continue;
    const size_t size = SizeOfClass(index);
    for (void* block : blocks) GiveToSource(block, size);
  }
}

}  // namespace millrace
