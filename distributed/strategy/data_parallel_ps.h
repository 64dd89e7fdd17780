#ifndef DISTRIBUTED_STRATEGY_DATA_PARALLEL_PS_H_
#define DISTRIBUTED_STRATEGY_DATA_PARALLEL_PS_H_

#include <memory>
#include <string>
#include <vector>

#include "distributed/strategy/strategy.h"

namespace millrace {

struct DataParallelPsOptions {
  // Where each replica computes: "/job:worker/task:0", ... or "/device:CPU:1".
  std::vector<std::string> replica_devices;
  // Where variables live: "/job:ps" (the placer spreads them over its tasks), "/device:CPU:0".
  std::string variable_device;
  // Feeds to split along dimension 0; empty: every feed of rank 1 or more, but for those that do
  // nothing but go into variables, as in a restore.
  std::vector<std::string> split_feeds;
};

// Synchronous data parallelism over a parameter server (Li et al. 2014; in-graph replication): the
// batch is split over the replicas, each reads the variables, and the sum of the replicas'
// gradients (in rank order, so that runs are bit-equal) is applied once, where the variables are.
//
// As sharding: feeds are split, S(0), along the one axis of a mesh of replicas; variables are
// replicated, B, held once on the parameter server; what the ops' rules make partial, P, is summed
// there. Nodes that see a split or partial tensor run once a replica, under "replica_<p>/", and so
// do those that read only what every replica has already; the others run once, beside the
// variables, except for constants, which are copied to their users.
StatusOr<std::unique_ptr<Strategy>> NewDataParallelPs(DataParallelPsOptions options);

}  // namespace millrace

#endif  // DISTRIBUTED_STRATEGY_DATA_PARALLEL_PS_H_
