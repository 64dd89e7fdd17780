#ifndef CORE_FRAMEWORK_ALLOCATOR_H_
#define CORE_FRAMEWORK_ALLOCATOR_H_

#include <cstddef>
#include <cstdint>

#include "core/base/status.h"

namespace millrace {

struct AllocatorStats {
  int64_t bytes_in_use = 0;
  int64_t peak_bytes_in_use = 0;
  int64_t bytes_reserved = 0;  // taken from the system, in use or kept for reuse
  int64_t allocations = 0;
  int64_t limit = 0;  // 0: none
};

// Memory of one device. Thread-safe. Outlives every buffer that came from it.
class Allocator {
 public:
  static constexpr size_t kAlignment = 64;
  virtual ~Allocator() = default;
  // At least `bytes` bytes, aligned to kAlignment; null if the limit would be passed or the system
  // has no more. Contents are undefined. 0 bytes gives a valid pointer.
  virtual void* Allocate(size_t bytes) = 0;
  // `bytes` as given to Allocate.
  virtual void Deallocate(void* memory, size_t bytes) = 0;
  virtual AllocatorStats stats() const = 0;
  // Whether the processor can read and write this memory.
  virtual bool IsHostMemory() const { return true; }
  // Copies between two places of this memory; on a device in the order of its queue.
  virtual Status Copy(void* to, const void* from, size_t bytes);
};

// malloc, for constants, files and tests; lives as long as the process.
Allocator& HostAllocator();

}  // namespace millrace

#endif  // CORE_FRAMEWORK_ALLOCATOR_H_
