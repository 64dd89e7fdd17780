#ifndef CORE_DEVICE_POOLED_ALLOCATOR_H_
#define CORE_DEVICE_POOLED_ALLOCATOR_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "core/base/mutex.h"
#include "core/framework/allocator.h"

namespace millrace {

// Where a pool gets its memory: the host or a CUDA device. Thread-safe.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  // `bytes` as PooledAllocator::RoundedSize gives them, aligned to Allocator::kAlignment; null if
  // there is no more.
  virtual void* Take(size_t bytes) = 0;
  virtual void Give(void* memory, size_t bytes) = 0;
  virtual bool IsHostMemory() const = 0;
  virtual Status Copy(void* to, const void* from, size_t bytes) = 0;
};

// malloc, and pages from the system for blocks of a huge page (2 MiB) or more.
std::unique_ptr<MemorySource> NewHostMemorySource();

// Keeps freed blocks, by size class, for the next request of that class: a training step asks for
// the same sizes again and again. When more is kept than twice what was ever in use at once, all of
// it is given back. Sizes are rounded to classes (to 64 bytes; from 256 bytes on, to a quarter of
// the power of two below; from 2 MiB on, to an eighth of it, 2 MiB at least), and the rounded size
// is what is accounted.
//
// The limit holds for all that is taken from the source, kept blocks included; these are given back
// before a request is refused.
//
//   PooledAllocator::Ptr allocator = PooledAllocator::Create(limit, NewHostMemorySource());
//
// Buffers may outlive the Ptr (a tensor that was fetched, say): the pool ends with the last of
// them. After the Ptr has gone, only Deallocate may be called.
class PooledAllocator final : public Allocator {
 public:
  struct Retire {
    void operator()(PooledAllocator* allocator) const;
  };
  using Ptr = std::unique_ptr<PooledAllocator, Retire>;

  // `limit` in bytes, 0 for none.
  static Ptr Create(int64_t limit, std::unique_ptr<MemorySource> source);

  // The bytes that a request for `bytes` takes; 0 if it is beyond all bounds.
  static size_t RoundedSize(size_t bytes);

  void* Allocate(size_t bytes) override;
  void Deallocate(void* memory, size_t bytes) override;
  AllocatorStats stats() const override;
  bool IsHostMemory() const override { return is_host_; }
  Status Copy(void* to, const void* from, size_t bytes) override;

 private:
  // The kept blocks of one class. A line of its own, so that threads at different classes do not
  // disturb each other.
  struct alignas(128) FreeList {
    mutable Mutex mutex;
    std::vector<void*> blocks ABSL_GUARDED_BY(mutex);
    int64_t allocations ABSL_GUARDED_BY(mutex) = 0;
  };

  PooledAllocator(int64_t limit, std::unique_ptr<MemorySource> source);
  ~PooledAllocator() override;

  // A new block, or null.
  void* TakeFromSource(size_t size);
  void GiveToSource(void* block, size_t size);
  bool Reserve(int64_t size);
  // Gives all kept blocks back to the source.
  void Trim();

  const int64_t limit_;
  const std::unique_ptr<MemorySource> source_;
  const bool is_host_;
  std::vector<FreeList> lists_;
  // Bytes in use, and one for the owner: who brings it to 0 deletes the pool.
  std::atomic<int64_t> held_{1};
  std::atomic<bool> retired_{false};
  std::atomic<int64_t> peak_{0};
  std::atomic<int64_t> reserved_{0};
};

}  // namespace millrace

#endif  // CORE_DEVICE_POOLED_ALLOCATOR_H_
