#include "core/device/pooled_allocator.h"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "core/base/pages.h"
#include "core/base/thread_pool.h"
#include "core/framework/tensor.h"
#include "gtest/gtest.h"

namespace millrace {
namespace {

ThreadPool::Options Threads(int threads) {
  ThreadPool::Options options;
  options.threads = threads;
  return options;
}

constexpr size_t kMiB = size_t{1} << 20;

// The host's memory, counted, until it has none left.
class CountingSource final : public MemorySource {
 public:
  struct Counts {
    std::atomic<int64_t> taken{0};
    std::atomic<int64_t> given{0};
    std::atomic<int64_t> left{int64_t{1} << 40};
    std::atomic<bool> alive{true};
  };
  explicit CountingSource(Counts* counts) : counts_(counts) {}
  ~CountingSource() override { counts_->alive = false; }
  void* Take(size_t bytes) override {
    if (counts_->left < static_cast<int64_t>(bytes)) return nullptr;
    counts_->left -= static_cast<int64_t>(bytes);
    ++counts_->taken;
    return host_->Take(bytes);
  }
  void Give(void* memory, size_t bytes) override {
    counts_->left += static_cast<int64_t>(bytes);
    ++counts_->given;
    host_->Give(memory, bytes);
  }
  bool IsHostMemory() const override { return true; }
  Status Copy(void* to, const void* from, size_t bytes) override {
    return host_->Copy(to, from, bytes);
  }

 private:
  const std::unique_ptr<MemorySource> host_ = NewHostMemorySource();
  Counts* counts_;
};

PooledAllocator::Ptr NewPool(int64_t limit = 0) {
  return PooledAllocator::Create(limit, NewHostMemorySource());
}

TEST(PooledAllocatorTest, RoundsToClasses) {
  const struct {
    size_t bytes;
    size_t rounded;
  } cases[] = {
      {0, 64},
      {1, 64},
      {64, 64},
      {65, 128},
      {256, 256},
      {257, 320},
      {512, 512},
      {513, 640},
      {1000, 1024},
      {kMiB, kMiB},
      {kMiB + 1, kMiB + kMiB / 4},
      {2 * kMiB - 1, 2 * kMiB},
      {2 * kMiB + 1, 4 * kMiB},
      {5 * kMiB, 6 * kMiB},
      {17 * kMiB, 18 * kMiB},
      {33 * kMiB, 36 * kMiB},
      {size_t{1} << 44, size_t{1} << 44},
      {(size_t{1} << 44) + 1, 0},
      {SIZE_MAX, 0},
  };
  for (const auto& c : cases) EXPECT_EQ(PooledAllocator::RoundedSize(c.bytes), c.rounded);
  for (size_t bytes = 1; bytes < 64 * kMiB; bytes += bytes / 7 + 1) {
    const size_t rounded = PooledAllocator::RoundedSize(bytes);
    EXPECT_GE(rounded, bytes);
    EXPECT_EQ(PooledAllocator::RoundedSize(rounded), rounded);
    EXPECT_EQ(rounded % (rounded < kHugePage ? Allocator::kAlignment : kHugePage), 0U);
    EXPECT_LE(rounded, bytes + std::max({size_t{64}, bytes / 4, bytes > kMiB ? kHugePage : 0}));
  }
}

TEST(PooledAllocatorTest, BlocksOfAllSizesAreAlignedAndWritable) {
  const auto pool = NewPool();
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{100}, kMiB, 2 * kMiB, 5 * kMiB + 3}) {
    void* memory = pool->Allocate(bytes);
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % Allocator::kAlignment, 0U);
    std::memset(memory, 1, bytes);
    pool->Deallocate(memory, bytes);
  }
  EXPECT_EQ(pool->Allocate(SIZE_MAX), nullptr);
  pool->Deallocate(nullptr, 10);
}

TEST(PooledAllocatorTest, ReusesAndAccountsExactly) {
  CountingSource::Counts counts;
  {
    const auto pool = PooledAllocator::Create(0, std::make_unique<CountingSource>(&counts));
    void* a = pool->Allocate(1000);
    void* b = pool->Allocate(100);
    EXPECT_EQ(pool->stats().bytes_in_use, 1024 + 128);
    EXPECT_EQ(pool->stats().bytes_reserved, 1024 + 128);
    pool->Deallocate(a, 1000);
    EXPECT_EQ(pool->stats().bytes_in_use, 128);
    EXPECT_EQ(pool->stats().bytes_reserved, 1024 + 128);
    EXPECT_EQ(pool->Allocate(900), a);  // the same class
    pool->Deallocate(a, 900);
    pool->Deallocate(b, 100);
    const AllocatorStats stats = pool->stats();
    EXPECT_EQ(stats.bytes_in_use, 0);
    EXPECT_EQ(stats.peak_bytes_in_use, 1024 + 128);
    EXPECT_EQ(stats.allocations, 3);
    EXPECT_EQ(stats.limit, 0);
    EXPECT_EQ(counts.taken, 2);
    EXPECT_EQ(counts.given, 0);
  }
  EXPECT_EQ(counts.given, 2);
  EXPECT_FALSE(counts.alive);
}

TEST(PooledAllocatorTest, ChangingSizesDoNotPileUp) {
  const auto pool = NewPool();
  for (int round = 0; round < 100; ++round) {
    const size_t bytes = kMiB + round * 100000;  // a new class every few rounds
    pool->Deallocate(pool->Allocate(bytes), bytes);
    const AllocatorStats stats = pool->stats();
    EXPECT_LE(stats.bytes_reserved, 3 * stats.peak_bytes_in_use);
  }
}

TEST(PooledAllocatorTest, TwoPhasesWithSizesOfTheirOwnBothStayWarm) {
  CountingSource::Counts counts;
  const auto pool = PooledAllocator::Create(0, std::make_unique<CountingSource>(&counts));
  for (int round = 0; round < 10; ++round) {
    for (size_t bytes : {size_t{4096}, 8 * kMiB, 6 * kMiB}) {
      pool->Deallocate(pool->Allocate(bytes), bytes);
    }
  }
  EXPECT_EQ(counts.taken, 3);
  EXPECT_EQ(counts.given, 0);
}

TEST(PooledAllocatorTest, TheLimitHoldsAndKeptBlocksYield) {
  const auto pool = NewPool(10 * 1024);
  std::vector<void*> blocks;
  for (int i = 0; i < 10; ++i) blocks.push_back(pool->Allocate(1024));
  for (void* block : blocks) EXPECT_NE(block, nullptr);
  EXPECT_EQ(pool->Allocate(1), nullptr);
  EXPECT_EQ(pool->stats().bytes_in_use, 10 * 1024);
  EXPECT_EQ(pool->stats().allocations, 10);
  for (void* block : blocks) pool->Deallocate(block, 1024);
  EXPECT_EQ(pool->stats().bytes_reserved, 10 * 1024);
  void* large = pool->Allocate(10 * 1024);  // another class: what was kept has to go
  EXPECT_NE(large, nullptr);
  EXPECT_EQ(pool->stats().bytes_reserved, 10 * 1024);
  EXPECT_EQ(pool->Allocate(10 * 1024 + 1), nullptr);
  pool->Deallocate(large, 10 * 1024);
}

TEST(PooledAllocatorTest, KeptBlocksYieldWhenTheSourceIsEmpty) {
  CountingSource::Counts counts;
  counts.left = 1024;
  const auto pool = PooledAllocator::Create(0, std::make_unique<CountingSource>(&counts));
  pool->Deallocate(pool->Allocate(1024), 1024);
  void* block = pool->Allocate(768);
  EXPECT_NE(block, nullptr);
  EXPECT_EQ(pool->Allocate(768), nullptr);
  EXPECT_EQ(pool->stats().bytes_reserved, 768);
  pool->Deallocate(block, 768);
}

TEST(PooledAllocatorTest, BuffersMayOutliveTheOwner) {
  CountingSource::Counts counts;
  Tensor first, second;
  {
    const auto pool = PooledAllocator::Create(0, std::make_unique<CountingSource>(&counts));
    first = Tensor::Allocate(*pool, DType::kFloat, Shape{100}).value();
    second = Tensor::Allocate(*pool, DType::kFloat, Shape{1000}).value();
  }
  first.mutable_data<float>()[99] = 1;
  first = Tensor();
  EXPECT_TRUE(counts.alive);
  second = Tensor();
  EXPECT_FALSE(counts.alive);
  EXPECT_EQ(counts.taken, counts.given);
}

TEST(PooledAllocatorTest, ManyThreadsAtOnce) {
  constexpr int64_t kTasks = 400;
  std::atomic<int> refused{0};
  std::vector<Tensor> kept(kTasks);
  ThreadPool threads(Threads(4));
  {
    const auto pool = NewPool(4 * kMiB);
    threads.ParallelFor(kTasks, 1, [&](int64_t task, int64_t) {
      for (int64_t i = 0; i < 20; ++i) {
        const size_t bytes = 64 * (1 + (task * 7 + i * 13) % 200);
        auto* memory = static_cast<unsigned char*>(pool->Allocate(bytes));
        if (memory == nullptr) {
          ++refused;
          continue;
        }
        std::memset(memory, static_cast<int>(task % 251), bytes);
        for (size_t at = 0; at < bytes; at += 63) EXPECT_EQ(memory[at], task % 251);
        pool->Deallocate(memory, bytes);
      }
      kept[task] = Tensor::Allocate(*pool, DType::kUint8, Shape{64}).value();
    });
    const AllocatorStats stats = pool->stats();
    EXPECT_EQ(stats.bytes_in_use, kTasks * 64);
    EXPECT_LE(stats.bytes_reserved, stats.limit);
    EXPECT_EQ(stats.allocations + refused, kTasks * 21);
  }
  // The last of many threads ends the pool.
  threads.ParallelFor(kTasks, 1, [&](int64_t task, int64_t) { kept[task] = Tensor(); });
}

TEST(PagesTest, AreAlignedZeroedAndChecked) {
  void* memory = AllocatePages(2 * kHugePage);
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % kHugePage, 0U);
  EXPECT_EQ(static_cast<char*>(memory)[2 * kHugePage - 1], 0);
  static_cast<char*>(memory)[0] = 1;
  FreePages(memory, 2 * kHugePage);
  EXPECT_EQ(AllocatePages(0), nullptr);
  EXPECT_EQ(AllocatePages(4096), nullptr);
  EXPECT_EQ(AllocatePages(SIZE_MAX - kHugePage + 1), nullptr);
}

}  // namespace
}  // namespace millrace
