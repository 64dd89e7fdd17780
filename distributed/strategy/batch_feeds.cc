#include "distributed/strategy/batch_feeds.h"

#include <algorithm>

#include "absl/strings/strip.h"

namespace millrace {
namespace {

bool Names(const std::vector<std::string>& feeds, absl::string_view feed) {
  const absl::string_view name = absl::StripSuffix(feed, ":0");
  return std::any_of(feeds.begin(), feeds.end(), [&](const std::string& other) {
    return absl::StripSuffix(other, ":0") == name;
  });
}

// By node: whether all that reads it stores it in variables, as a restore does.
std::vector<bool> FindStored(const Graph& graph) {
  std::vector<bool> is_read(graph.num_ids(), false);
  std::vector<bool> is_computed_with(graph.num_ids(), false);
  for (NodeId id = 0; id < graph.num_ids(); ++id) {
    if (!graph.IsLive(id)) continue;
    for (Port input : graph.node(id)->inputs()) {
      is_read[input.node] = true;
      if (!graph.node(id)->op().Has(Trait::kWritesVariable)) is_computed_with[input.node] = true;
    }
  }
  std::vector<bool> stored(graph.num_ids(), false);
  for (size_t i = 0; i < stored.size(); ++i) stored[i] = is_read[i] && !is_computed_with[i];
  return stored;
}

}  // namespace

StatusOr<BatchFeeds> FindBatchFeeds(const PrunedGraph& pruned, const StepSignature& signature,
                                    const std::vector<std::string>& split_feeds, int parts) {
  BatchFeeds result;
  std::vector<bool> stored;
  if (split_feeds.empty()) stored = FindStored(pruned.graph);
  std::string first;
  for (size_t i = 0; i < pruned.feeds.size(); ++i) {
    const Port port = pruned.feeds[i];
    const std::string& name = signature.feeds[i];
    const PartialShape& shape = pruned.graph.shape(port);
    if (shape.has_rank() && shape.rank() == 0) continue;
    if (split_feeds.empty() ? stored[port.node] : !Names(split_feeds, name)) continue;
    if (!shape.has_rank() || !shape.dim_known(0)) {
      return InvalidArgument("feed '", name, "' has shape ", shape.ToString(),
                             ": its leading extent must be known to be split over ", parts,
                             " replicas");
    }
    const int64_t rows = shape.dim(0);
    if (first.empty()) {
      first = name;
      result.batch = rows;
    }
    if (rows != result.batch) {
      return InvalidArgument("feed '", name, "' has ", rows, " rows, but feed '", first, "' has ",
                             result.batch, ": feeds that are split must have as many rows as each ",
                             "other (split_feeds says which are)");
    }
    if (rows < parts) {
      return InvalidArgument("feed '", name, "' has ", rows, " rows, fewer than the ", parts,
                             " replicas");
    }
    result.shardings[port] = Sharding::Split(0);
  }
  return result;
}

}  // namespace millrace
