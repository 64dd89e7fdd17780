#ifndef DISTRIBUTED_STRATEGY_BATCH_FEEDS_H_
#define DISTRIBUTED_STRATEGY_BATCH_FEEDS_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/framework/sharding.h"
#include "core/graph/algorithms.h"

namespace millrace {

// The feeds of a step that hold the batch, to be split along dimension 0.
struct BatchFeeds {
  int64_t batch = -1;  // rows; -1 if there is none
  absl::flat_hash_map<Port, Sharding> shardings;
};

// `split_feeds` as in DataParallelPsOptions. InvalidArgument, naming the feed, for one whose rows
// are unknown, differ from those of the others, or are fewer than the parts.
StatusOr<BatchFeeds> FindBatchFeeds(const PrunedGraph& pruned, const StepSignature& signature,
                                    const std::vector<std::string>& split_feeds, int parts);

}  // namespace millrace

#endif  // DISTRIBUTED_STRATEGY_BATCH_FEEDS_H_
