#ifndef CORE_BASE_PAGES_H_
#define CORE_BASE_PAGES_H_

#include <cstddef>

// Memory straight from the operating system, for allocators of large blocks.
namespace millrace {

// What huge pages are made of; sizes and addresses below are multiples of it.
inline constexpr size_t kHugePage = size_t{2} << 20;

// Zeroed memory, on huge pages where the system has them; none is taken before it is touched. Null
// if there is no more. REQUIRES: `bytes` is a multiple of kHugePage, and not 0.
void* AllocatePages(size_t bytes);
// Gives back what AllocatePages gave. REQUIRES: the same `bytes`.
void FreePages(void* memory, size_t bytes);

}  // namespace millrace

#endif  // CORE_BASE_PAGES_H_
