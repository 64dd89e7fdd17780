#include "core/runtime/partitioner.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "core/base/checked_math.h"
#include "core/runtime/update_barrier.h"

namespace millrace {
namespace {

constexpr char kSendOp[] = "_Send";
constexpr char kRecvOp[] = "_Recv";

// Cuts the graph: each node is copied to its device's piece, after its inputs.
class Cut {
 public:
  explicit Cut(const PrunedGraph& pruned) : pruned_(pruned), whole_(pruned.graph) {}

  StatusOr<PartitionedProgram> Run() {
    MR_ASSIGN_OR_RETURN(order_, TopologicalOrder(whole_));
    MR_RETURN_IF_ERROR(MakePieces());
    FindDataChannels();
    for (NodeId id : order_) MR_RETURN_IF_ERROR(CopyNode(*whole_.node(id)));
    MR_RETURN_IF_ERROR(AddSends());
    MR_RETURN_IF_ERROR(AddUpdateBarriers());
    MapSignature();
    return std::move(program_);
  }

 private:
  // A tensor on its way to a device; index -1 stands for a control edge.
  using Crossing = std::pair<Port, int>;

  Status MakePieces() {
    piece_of_node_.assign(whole_.num_ids(), -1);
    copy_of_node_.assign(whole_.num_ids(), -1);
    std::map<std::string, int> pieces;
    for (NodeId id : order_) {
      const DeviceName& device = whole_.node(id)->assigned_device();
      if (!device.IsFull()) {
        return FailedPrecondition("node '", whole_.node(id)->name(),
                                  "' has no device: the graph must be placed before it is cut");
      }
      pieces.try_emplace(device.ToString(), 0);
    }
    int next = 0;
    for (auto& [name, index] : pieces) index = next++;
    program_.partitions.reserve(pieces.size());
    while (program_.partitions.size() < pieces.size()) {
      program_.partitions.push_back(Partition{{}, Graph(whole_.shared_ops()), {}, {}, {}});
      program_.partitions.back().graph.set_library(whole_.library());
    }
    for (NodeId id : order_) {
      const DeviceName& device = whole_.node(id)->assigned_device();
      piece_of_node_[id] = pieces[device.ToString()];
      program_.partitions[piece_of_node_[id]].device = device;
    }
    return absl::OkStatus();
  }

  // A control edge between devices may ride with any tensor of its source: which ones travel must
  // be known first.
  void FindDataChannels() {
    for (NodeId id : order_) {
      for (const Port& input : whole_.node(id)->inputs()) {
        if (piece_of_node_[input.node] == piece_of_node_[id]) continue;
        const std::pair<NodeId, int> way(input.node, piece_of_node_[id]);
        const auto [found, added] = data_way_.try_emplace(way, input.index);
        if (!added) found->second = std::min(found->second, input.index);
      }
    }
  }

  Status CopyNode(const Node& node) {
    const int piece = piece_of_node_[node.id()];
    std::vector<Port> inputs;
    std::vector<NodeId> control_inputs;
    for (const Port& input : node.inputs()) {
      if (piece_of_node_[input.node] == piece) {
        inputs.push_back(Port{copy_of_node_[input.node], input.index});
        continue;
      }
      if (whole_.dtype(input) == DType::kResource) {
        return InvalidArgument("node '", node.name(), "' on ", node.assigned_device().ToString(),
                               " uses the handle '", whole_.PortName(input),
                               "', whose resource is on ",
                               whole_.node(input.node)->assigned_device().ToString());
      }
      MR_ASSIGN_OR_RETURN(const NodeId recv, RecvOf(input, piece));
      inputs.push_back(Port{recv, 0});
    }
    for (NodeId before : node.control_inputs()) {
      NodeId local = copy_of_node_[before];
      if (piece_of_node_[before] != piece) {
        const auto way = data_way_.find({before, piece});
        const int index = way == data_way_.end() ? -1 : way->second;
        MR_ASSIGN_OR_RETURN(local, RecvOf(Port{before, index}, piece));
      }
      control_inputs.push_back(local);
    }
    // A copy: specialised shapes are better than what the node's own inference would find.
    copy_of_node_[node.id()] = program_.partitions[piece].graph.AddCopy(
        node, node.name(), std::move(inputs), std::move(control_inputs));
    return absl::OkStatus();
  }

  // The Recv of what crosses to `piece`, made at its first use. Sends follow when all is copied.
  StatusOr<NodeId> RecvOf(Port source, int piece) {
    const auto found = recv_of_.find(Crossing(source, piece));
    if (found != recv_of_.end()) return found->second;
    const bool control = source.index < 0;
    const Node& node = *whole_.node(source.node);
    Partition& to = program_.partitions[piece];
    Channel channel;
    channel.id = static_cast<ChannelId>(program_.channels.size());
    channel.tensor = control ? StrCat("^", node.name()) : whole_.PortName(source);
    channel.source = node.assigned_device();
    channel.destination = to.device;
    channel.dtype = control ? DType::kUint8 : whole_.dtype(source);
    channel.shape = control ? PartialShape({0}) : whole_.shape(source);

    NodeSpec spec;
    spec.name = to.graph.UniqueName(StrCat(node.name(), "/_recv_", channel.id));
    spec.op = kRecvOp;
    spec.attrs = ChannelAttrs(channel);
    spec.attrs.Set("tensor_type", channel.dtype);
    spec.attrs.Set("shape", channel.shape);
    MR_ASSIGN_OR_RETURN(const NodeId recv, to.graph.AddNode(std::move(spec)));
    to.graph.SetAssignedDevice(recv, to.device);
    to.graph.SetOutputShape(Port{recv, 0}, channel.shape);
    crossings_.push_back({source, piece});
    recv_of_.emplace(Crossing(source, piece), recv);
    program_.channels.push_back(std::move(channel));
    return recv;
  }

  static AttrMap ChannelAttrs(const Channel& channel) {
    AttrMap attrs;
    attrs.Set("channel", static_cast<int64_t>(channel.id));
    attrs.Set("tensor_name", channel.tensor);
    attrs.Set("send_device", channel.source.ToString());
    attrs.Set("recv_device", channel.destination.ToString());
    return attrs;
  }

  Status AddSends() {
    std::vector<NodeId> messages(program_.partitions.size(), -1);
    for (size_t i = 0; i < crossings_.size(); ++i) {
      const Channel& channel = program_.channels[i];
      const Port source = crossings_[i].first;
      const int piece = piece_of_node_[source.node];
      Partition& from = program_.partitions[piece];
      NodeSpec spec;
      spec.name =
          from.graph.UniqueName(StrCat(whole_.node(source.node)->name(), "/_send_", channel.id));
      spec.op = kSendOp;
      spec.attrs = ChannelAttrs(channel);
      spec.attrs.Set("T", channel.dtype);
      if (source.index < 0) {
        if (messages[piece] < 0) {
          MR_ASSIGN_OR_RETURN(messages[piece], AddControlMessage(from));
        }
        spec.inputs = {Port{messages[piece], 0}};
        spec.control_inputs = {copy_of_node_[source.node]};
      } else {
        spec.inputs = {Port{copy_of_node_[source.node], source.index}};
      }
      MR_ASSIGN_OR_RETURN(const NodeId send, from.graph.AddNode(std::move(spec)));
      from.graph.SetAssignedDevice(send, from.device);
    }
    return absl::OkStatus();
  }

  // What a control edge carries to another device: nothing.
  static StatusOr<NodeId> AddControlMessage(Partition& from) {
    NodeSpec spec;
    spec.name = from.graph.UniqueName("control_message");
    spec.op = "Const";
    spec.attrs.Set("dtype", DType::kUint8);
    spec.attrs.Set("value", Tensor::Zeros(DType::kUint8, Shape({0})));
    MR_ASSIGN_OR_RETURN(const NodeId id, from.graph.AddNode(std::move(spec)));
    from.graph.SetAssignedDevice(id, from.device);
    return id;
  }

  Status AddUpdateBarriers() {
    for (const UpdateSet& set : FindUpdateSets(whole_, order_)) {
      const int piece = piece_of_node_[set.updates[0]];
      Partition& on = program_.partitions[piece];
      NodeSpec spec;
      spec.name = on.graph.UniqueName("update_barrier");
      spec.op = "NoOp";
      // The copies' inputs: a producer elsewhere is a Recv here.
      for (NodeId update : set.updates) {
        for (const Port& input : on.graph.node(copy_of_node_[update])->inputs()) {
          if (on.graph.dtype(input) != DType::kResource) spec.control_inputs.push_back(input.node);
        }
      }
      std::sort(spec.control_inputs.begin(), spec.control_inputs.end());
      spec.control_inputs.erase(std::unique(spec.control_inputs.begin(), spec.control_inputs.end()),
                                spec.control_inputs.end());
      MR_ASSIGN_OR_RETURN(const NodeId barrier, on.graph.AddNode(std::move(spec)));
      on.graph.SetAssignedDevice(barrier, on.device);
      for (NodeId update : set.updates) on.graph.AddControlInput(copy_of_node_[update], barrier);
    }
    return absl::OkStatus();
  }

  void MapSignature() {
    const auto map = [&](const std::vector<Port>& ports, auto member) {
      for (size_t i = 0; i < ports.size(); ++i) {
        Partition& piece = program_.partitions[piece_of_node_[ports[i].node]];
        (piece.*member)
            .push_back({static_cast<int>(i), Port{copy_of_node_[ports[i].node], ports[i].index}});
      }
    };
    map(pruned_.feeds, &Partition::feeds);
    map(pruned_.fetches, &Partition::fetches);
    for (NodeId target : pruned_.targets) {
      program_.partitions[piece_of_node_[target]].targets.push_back(copy_of_node_[target]);
    }
  }

  const PrunedGraph& pruned_;
  const Graph& whole_;
  std::vector<NodeId> order_;
  PartitionedProgram program_;
  std::vector<int> piece_of_node_;                             // by id in `whole_`
  std::vector<NodeId> copy_of_node_;                           // by id in `whole_`: id in its piece
  absl::flat_hash_map<std::pair<NodeId, int>, int> data_way_;  // lowest output that travels
  absl::flat_hash_map<Crossing, NodeId> recv_of_;
  std::vector<Crossing> crossings_;  // by channel
};

}  // namespace

int64_t Channel::PredictedBytes() const {
  if (!shape.IsFull() || SizeOf(dtype) == 0) return -1;
  int64_t bytes = static_cast<int64_t>(SizeOf(dtype));
  for (int64_t extent : shape.dims()) {
    if (!CheckedMul(bytes, extent, &bytes)) return -1;
  }
  return bytes;
}

StatusOr<PartitionedProgram> PartitionGraph(const PrunedGraph& pruned) { return Cut(pruned).Run(); }

}  // namespace millrace
