#ifndef PYTHON_FREE_API_PREFETCH_H_
#define PYTHON_FREE_API_PREFETCH_H_

#include <memory>

#include "core/base/scheduler.h"
#include "python_free_api/dataset.h"

namespace millrace {

// Gives the elements of `source`, of which tasks of `scheduler` make up to `elements` (at least 1)
// ahead. Next never waits for a task that has not begun: it makes the element itself, so that a
// busy scheduler, or one that the caller drives, slows it down and no more. The end, and the first
// error, are given again and again. After its destruction nothing uses `source` any more;
// `scheduler` outlives it. One user at a time.
std::unique_ptr<DatasetIterator> PrefetchIterator(std::unique_ptr<DatasetIterator> source,
                                                  int elements, Scheduler& scheduler);

}  // namespace millrace

#endif  // PYTHON_FREE_API_PREFETCH_H_
