#ifndef DISTRIBUTED_STRATEGY_REPLICA_NODES_H_
#define DISTRIBUTED_STRATEGY_REPLICA_NODES_H_

#include <string>
#include <utility>
#include <vector>

#include "core/graph/graph.h"

namespace millrace {

// How the rows of a batch are dealt out: contiguous, as evenly as they can be, in the order of the
// replicas. "Extents" are those of dimensions that hold the batch, or a multiple of it.
class BatchRows {
 public:
  BatchRows(int64_t batch, int parts) : batch_(batch), parts_(parts) {}
  int64_t batch() const { return batch_; }
  // [begin, end) of part `part`. InvalidArgument for an extent that is no multiple of the batch.
  StatusOr<std::pair<int64_t, int64_t>> Of(int64_t extent, int part) const;
  // The part's share of the batch, in [0,1].
  double Share(int part) const;

 private:
  int64_t Begin(int part) const { return batch_ * part / parts_; }
  int64_t batch_;
  int parts_;
};

// Makes the nodes that a replicated program has beside copies of its source's: where values are
// cut, weighted, summed and joined. Names are made unique.
class ReplicaNodes {
 public:
  // `graph` outlives this.
  ReplicaNodes(std::vector<std::string> replica_devices, Graph& graph)
      : devices_(std::move(replica_devices)), graph_(graph) {}

  int parts() const { return static_cast<int>(devices_.size()); }
  const std::string& device(int part) const { return devices_[part]; }
  static std::string Name(int part, absl::string_view name) {
    return StrCat("replica_", part, "/", name);
  }

  // A constant on the part's device.
  StatusOr<Port> Constant(absl::string_view name, Tensor value, int part);
  // Rows [begin, end) of `whole` along dimension `dim`, of rank `rank`, for part `part`: cut where
  // the whole value is, so that no more than they are sent.
  StatusOr<Port> Rows(absl::string_view name, Port whole, int rank, int dim,
                      std::pair<int64_t, int64_t> rows, int part);
  // A part's mean times its share of the batch: such terms add up to the mean over the whole.
  StatusOr<Port> Weighted(Port mean, double share, int part);
  // The sum of the parts in their order, so that runs are bit-equal.
  StatusOr<Port> Sum(absl::string_view name, std::vector<Port> parts, NodeSpec where);
  // The parts one after the other along `dim`.
  StatusOr<Port> Join(absl::string_view name, std::vector<Port> parts, int dim, NodeSpec where);

 private:
  // Adds `spec` under the name that is unique; its one output.
  StatusOr<Port> Add(absl::string_view name, NodeSpec spec);
  StatusOr<Port> AddConstant(absl::string_view name, Tensor value, std::string device,
                             std::string reason);

  const std::vector<std::string> devices_;
  Graph& graph_;
};

// Says why the node requests its device.
void SetReason(std::string reason, NodeSpec& spec);

}  // namespace millrace

#endif  // DISTRIBUTED_STRATEGY_REPLICA_NODES_H_
