#ifndef DISTRIBUTED_STRATEGY_SHARDING_PROPAGATION_H_
#define DISTRIBUTED_STRATEGY_SHARDING_PROPAGATION_H_

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/framework/sharding.h"
#include "core/graph/graph.h"

namespace millrace {

// What the sharding rules say of one node.
struct NodeSharding {
  std::vector<Sharding> inputs;  // as the node needs them
  std::vector<Sharding> outputs;
  std::vector<bool> mean_over_parts;  // by output
  std::vector<ShardingContext::HostElement> localized;
  // Whether some input or output is split or partial: the node runs once a part.
  bool OncePerPart() const;
};

// Follows the given shardings (of feeds) through the graph by the ops' rules; what is not reached
// is replicated. By node id. Errors name the node, its op and the rule's reason.
StatusOr<std::vector<NodeSharding>> PropagateShardings(
    const Graph& graph, const absl::flat_hash_map<Port, Sharding>& given);

}  // namespace millrace

#endif  // DISTRIBUTED_STRATEGY_SHARDING_PROPAGATION_H_
