#ifndef CORE_RUNTIME_PARTITIONER_H_
#define CORE_RUNTIME_PARTITIONER_H_

#include <string>
#include <vector>

#include "core/framework/exchange.h"
#include "core/graph/algorithms.h"

namespace millrace {

// One (tensor, destination device) pair of a program.
struct Channel {
  ChannelId id = 0;    // dense from 0
  std::string tensor;  // port name, or "^node" for a control edge
  DeviceName source;
  DeviceName destination;
  DType dtype = DType::kInvalid;
  PartialShape shape;
  // Bytes a step, as predicted from the static shape; -1 if not known. Payload only.
  int64_t PredictedBytes() const;
};

// The piece of a step that runs on one device.
struct Partition {
  DeviceName device;
  Graph graph;
  // Ports of this piece for feeds, fetches and targets; index: position in the step's signature.
  struct Feed {
    int index;
    Port port;
  };
  std::vector<Feed> feeds;
  std::vector<Feed> fetches;
  std::vector<NodeId> targets;
};

struct PartitionedProgram {
  std::vector<Partition> partitions;  // by device name
  std::vector<Channel> channels;
};

// Cuts a placed graph into one piece a device: one Send/Recv pair for each (tensor, destination
// device) however many consumers; control edges across devices become empty messages. Then, on each
// task, updates of variables (Trait::kOptimizerUpdate, kWritesVariable) that take gradients are
// made to wait for all inputs of all updates of that device: a step that fails earlier leaves no
// torn set.
StatusOr<PartitionedProgram> PartitionGraph(const PrunedGraph& pruned);

}  // namespace millrace

#endif  // CORE_RUNTIME_PARTITIONER_H_
