#include "core/base/pages.h"

#include <sys/mman.h>

#include <cstdint>

namespace millrace {

void* AllocatePages(size_t bytes) {
  // One page more than asked for has an aligned part of the size asked for; the rest goes back.
  if (bytes == 0 || bytes % kHugePage != 0 || bytes > SIZE_MAX / 2) return nullptr;
  const size_t taken = bytes + kHugePage;
  void* memory = mmap(nullptr, taken, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* begin = static_cast<char*>(memory);
  const size_t before = (kHugePage - reinterpret_cast<uintptr_t>(begin) % kHugePage) % kHugePage;
  if (before > 0) munmap(begin, before);
  munmap(begin + before + bytes, kHugePage - before);
  // Only a wish: without huge pages the memory is as good, if slower.
  madvise(begin + before, bytes, MADV_HUGEPAGE);
  return begin + before;
}

void FreePages(void* memory, size_t bytes) { munmap(memory, bytes); }

}  // namespace millrace
