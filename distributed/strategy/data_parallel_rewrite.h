#ifndef DISTRIBUTED_STRATEGY_DATA_PARALLEL_REWRITE_H_
#define DISTRIBUTED_STRATEGY_DATA_PARALLEL_REWRITE_H_

#include "distributed/strategy/data_parallel_ps.h"

namespace millrace {

// The rewrite behind NewDataParallelPs: walks the single-device graph in topological order and
// emits, for each node, one copy beside the variables or one a replica.
StatusOr<Program> RewriteDataParallel(const DataParallelPsOptions& options,
                                      const PrunedGraph& pruned, const StepSignature& signature);

}  // namespace millrace

#endif  // DISTRIBUTED_STRATEGY_DATA_PARALLEL_REWRITE_H_
