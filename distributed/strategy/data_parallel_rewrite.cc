#include "distributed/strategy/data_parallel_rewrite.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/strip.h"
#include "distributed/strategy/batch_feeds.h"
#include "distributed/strategy/replica_nodes.h"
#include "distributed/strategy/sharding_propagation.h"

namespace millrace {
namespace {

constexpr char kColocationPrefix[] = "loc:@";
// In place of a part's number: the copy beside the variables.
constexpr int kShared = -1;

// Where a source node's outputs are in the program.
struct Copies {
  NodeId shared = -1;
  std::vector<std::vector<Port>> parts;  // by part, then output; weighted where the rule says so
  std::vector<NodeId> part_nodes;
  absl::flat_hash_map<int, Port> whole;                              // by output
  absl::flat_hash_map<std::pair<int, int>, std::vector<Port>> rows;  // by output and dimension
};

class Rewriter {
 public:
  Rewriter(const DataParallelPsOptions& options, const PrunedGraph& pruned,
           const StepSignature& signature)
      : options_(options),
        source_(pruned.graph),
        pruned_(pruned),
        signature_(signature),
        program_(pruned.graph.shared_ops()),
        nodes_(options.replica_devices, program_.graph),
        copies_(pruned.graph.num_ids()) {}

  StatusOr<Program> Run() {
    MR_ASSIGN_OR_RETURN(const BatchFeeds feeds,
                        FindBatchFeeds(pruned_, signature_, options_.split_feeds, parts()));
    rows_ = BatchRows(feeds.batch, parts());
    MR_ASSIGN_OR_RETURN(shardings_, PropagateShardings(source_, feeds.shardings));
    MR_ASSIGN_OR_RETURN(const std::vector<NodeId> order, TopologicalOrder(source_));
    ChooseSides(order);
    for (NodeId id : order) {
      const Node& node = *source_.node(id);
      const Status status = Emit(node);
      MR_RETURN_IF_ERROR(
          Annotate(status, StrCat("splitting ", node.op().name(), " '", node.name(), "'")));
      RecordLayouts(node);
    }
    MR_RETURN_IF_ERROR(MapSignature());
    program_.strategy = StrCat("data_parallel_ps(", parts(), " replicas)");
    return std::move(program_);
  }

 private:
  // Which copies of a node there are.
  enum Side : uint8_t {
    kBesideVariables,
    kOncePerPart,
    // Computed from constants alone: a copy wherever one is used.
    kPortable,
  };

  int parts() const { return nodes_.parts(); }
  bool OncePerPart(NodeId id) const { return sides_[id] == kOncePerPart; }

  static bool IsPure(const Node& node) {
    for (Trait trait : {Trait::kStateful, Trait::kPlaceholder, Trait::kVariable,
                        Trait::kReadsVariable, Trait::kWritesVariable}) {
      if (node.op().Has(trait)) return false;
    }
    return node.num_outputs() > 0 && node.control_inputs().empty();
  }

  void ChooseSides(const std::vector<NodeId>& order) {
    sides_.assign(source_.num_ids(), kBesideVariables);
    for (NodeId id : order) {
      const Node& node = *source_.node(id);
      if (shardings_[id].OncePerPart()) {
        sides_[id] = kOncePerPart;
      } else if (IsPure(node)) {
        sides_[id] = SideOfPure(node);
      }
    }
  }

  // Of a node that sees whole values. Where every replica has them anyway, as with what only the
  // shape of a split tensor determines, it is computed there again rather than sent to and fro.
  Side SideOfPure(const Node& node) const {
    bool portable = true;
    for (Port input : node.inputs()) {
      if (sides_[input.node] == kPortable) continue;
      portable = false;
      const bool everywhere = OncePerPart(input.node) && LayoutOf(input) == Sharding::Replicated();
      if (!everywhere) return kBesideVariables;
    }
    if (portable) return kPortable;
    return node.requested_device().empty() ? kOncePerPart : kBesideVariables;
  }

  const Sharding& LayoutOf(Port port) const { return shardings_[port.node].outputs[port.index]; }

  Status Emit(const Node& node) {
    switch (sides_[node.id()]) {
      case kBesideVariables:
        return EmitShared(node);
      case kOncePerPart:
        return EmitOncePerPart(node);
      case kPortable:
        break;  // by its first user
    }
    return absl::OkStatus();
  }

  // The device of the copy beside the variables: what its writer asked for, else that of the
  // variable which it reads or changes.
  std::string SharedDevice(const Node& node) const {
    if (!node.requested_device().empty()) return node.requested_device();
    if ((node.op().Has(Trait::kReadsVariable) || node.op().Has(Trait::kWritesVariable)) &&
        !node.inputs().empty()) {
      const NodeId handle = copies_[node.inputs()[0].node].shared;
      if (handle >= 0) return program_.graph.node(handle)->requested_device();
    }
    return options_.variable_device;
  }

  static std::string SharedReason(const Node& node) {
    if (node.op().Has(Trait::kVariable)) return "variables live on the parameter server";
    if (node.op().Has(Trait::kReadsVariable)) return "read where the variable lives";
    if (node.op().Has(Trait::kWritesVariable)) return "updated where the variable lives";
    return "sees only whole values, so it runs once, beside the variables";
  }

  // Why the node runs once a replica: the first split or partial tensor that it sees.
  std::string PartReason(const Node& node) const {
    const NodeSharding& sharding = shardings_[node.id()];
    if (node.op().Has(Trait::kPlaceholder)) return "its rows of the batch";
    for (size_t i = 0; i < sharding.inputs.size(); ++i) {
      if (sharding.inputs[i].kind == Sharding::kReplicated) continue;
      return StrCat("reads its part (", sharding.inputs[i].ToString(), ") of '",
                    source_.PortName(node.inputs()[i]), "'");
    }
    for (const Sharding& s : sharding.outputs) {
      if (s.kind != Sharding::kReplicated) return StrCat("makes its part (", s.ToString(), ")");
    }
    for (Port input : node.inputs()) {
      if (!OncePerPart(input.node)) continue;
      return StrCat("reads '", source_.PortName(input), "', which every replica has");
    }
    return "";
  }

  static NodeSpec SpecOf(const Node& node) {
    NodeSpec spec;
    spec.op = node.op().name();
    spec.attrs = node.attrs();
    spec.location = node.location();
    return spec;
  }

  // Colocations are kept among copies of one kind; a copy in a replica cannot be where the shared
  // node is.
  void MapColocations(const Node& node, int part, AttrMap& attrs) const {
    const AttrValue* value = node.attrs().Find(kColocationAttr);
    const auto* names = value == nullptr ? nullptr : value->get<std::vector<std::string>>();
    if (names == nullptr) return;
    std::vector<std::string> kept;
    for (absl::string_view entry : *names) {
      if (!absl::ConsumePrefix(&entry, kColocationPrefix)) continue;
      const Node* other = source_.Find(entry);
      if (other == nullptr || OncePerPart(other->id()) != (part != kShared)) continue;
      kept.push_back(StrCat(kColocationPrefix, part == kShared ? std::string(entry)
                                                               : ReplicaNodes::Name(part, entry)));
    }
    attrs.Erase(kColocationAttr);
    if (!kept.empty()) attrs.Set(kColocationAttr, std::move(kept));
  }

  Status EmitShared(const Node& node) {
    NodeSpec spec = SpecOf(node);
    spec.name = node.name();
    spec.device = SharedDevice(node);
    if (node.requested_device().empty()) SetReason(SharedReason(node), spec);
    MapColocations(node, kShared, spec.attrs);
    for (Port input : node.inputs()) {
      MR_ASSIGN_OR_RETURN(const Port port, Whole(input, &node));
      spec.inputs.push_back(port);
    }
    for (NodeId before : node.control_inputs()) {
      MR_RETURN_IF_ERROR(AddControls(before, kShared, spec));
    }
    MR_ASSIGN_OR_RETURN(copies_[node.id()].shared, program_.graph.AddNode(std::move(spec)));
    // The specialised shapes of the source are better than what attributes tell.
    for (int i = 0; i < node.num_outputs(); ++i) {
      program_.graph.SetOutputShape(Port{copies_[node.id()].shared, i}, node.output_shape(i));
    }
    return absl::OkStatus();
  }

  Status AddControls(NodeId before, int part, NodeSpec& spec) {
    if (sides_[before] == kPortable) {
      MR_ASSIGN_OR_RETURN(const NodeId copy, PortableCopy(before, part));
      spec.control_inputs.push_back(copy);
      return absl::OkStatus();
    }
    const Copies& copies = copies_[before];
    if (copies.shared >= 0) {
      spec.control_inputs.push_back(copies.shared);
    } else if (part != kShared) {
      spec.control_inputs.push_back(copies.part_nodes[part]);
    } else {
      for (NodeId id : copies.part_nodes) spec.control_inputs.push_back(id);
    }
    return absl::OkStatus();
  }

  Status EmitOncePerPart(const Node& node) {
    const NodeSharding& sharding = shardings_[node.id()];
    std::vector<std::vector<Port>> ports(parts());
    std::vector<NodeId> made;
    for (int part = 0; part < parts(); ++part) {
      NodeSpec spec = SpecOf(node);
      spec.name = ReplicaNodes::Name(part, node.name());
      spec.device = nodes_.device(part);
      SetReason(StrCat("replica ", part, " of ", parts(), ": ", PartReason(node)), spec);
      MapColocations(node, part, spec.attrs);
      if (node.op().Has(Trait::kPlaceholder)) {
        MR_ASSIGN_OR_RETURN(PartialShape local,
                            LocalShape(node.output_shape(0), sharding.outputs[0], part));
        spec.attrs.Set("shape", local);
      }
      for (size_t i = 0; i < node.inputs().size(); ++i) {
        MR_ASSIGN_OR_RETURN(const Port port, Local(node, static_cast<int>(i), part));
        spec.inputs.push_back(port);
      }
      for (NodeId before : node.control_inputs()) {
        MR_RETURN_IF_ERROR(AddControls(before, part, spec));
      }
      MR_ASSIGN_OR_RETURN(const NodeId id, program_.graph.AddNode(std::move(spec)));
      made.push_back(id);
      for (int i = 0; i < node.num_outputs(); ++i) {
        Port port{id, i};
        if (sharding.mean_over_parts[i]) {
          MR_ASSIGN_OR_RETURN(port, nodes_.Weighted(port, rows_.Share(part), part));
        }
        ports[part].push_back(port);
      }
    }
    copies_[node.id()].parts = std::move(ports);
    copies_[node.id()].part_nodes = std::move(made);
    return absl::OkStatus();
  }

  StatusOr<PartialShape> LocalShape(const PartialShape& shape, const Sharding& sharding,
                                    int part) const {
    if (sharding.kind != Sharding::kSplit) return shape;
    std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
    MR_ASSIGN_OR_RETURN(const auto rows, rows_.Of(dims[sharding.dim], part));
    dims[sharding.dim] = rows.second - rows.first;
    return PartialShape::Create(dims);
  }

  // Input `i` of `node` as its copy in `part` needs it.
  StatusOr<Port> Local(const Node& node, int i, int part) {
    const Port source = node.inputs()[i];
    const NodeSharding& sharding = shardings_[node.id()];
    for (const ShardingContext::HostElement& e : sharding.localized) {
      if (e.input == i) return LocalizedOperand(node, i, part);
    }
    const Sharding& want = sharding.inputs[i];
    const Sharding& have = LayoutOf(source);
    if (OncePerPart(source.node) && want == have) {
      return copies_[source.node].parts[part][source.index];
    }
    switch (want.kind) {
      case Sharding::kReplicated:
        return EverywhereOrWhole(source, part);
      case Sharding::kSplit:
        return Rows(source, want.dim, part);
      case Sharding::kPartialSum:
        break;
    }
    return InvalidArgument("input ", i, " is needed as a partial sum, but is ", have.ToString());
  }

  // The whole value: the replica's own copy, if it has one.
  StatusOr<Port> EverywhereOrWhole(Port source, int part) {
    if (sides_[source.node] == kPortable) {
      MR_ASSIGN_OR_RETURN(const NodeId copy, PortableCopy(source.node, part));
      return Port{copy, source.index};
    }
    if (OncePerPart(source.node) && LayoutOf(source) == Sharding::Replicated()) {
      return copies_[source.node].parts[part][source.index];
    }
    return Whole(source, nullptr);
  }

  // This part's rows of a whole value.
  StatusOr<Port> Rows(Port source, int dim, int part) {
    std::vector<Port>& made = copies_[source.node].rows[{source.index, dim}];
    made.resize(parts());
    if (made[part].node >= 0) return made[part];
    const PartialShape& shape = source_.shape(source);
    if (!shape.has_rank() || !shape.dim_known(dim)) {
      return InvalidArgument("'", source_.PortName(source), "' has shape ", shape.ToString(),
                             ": dimension ", dim, " must be known to be split");
    }
    MR_ASSIGN_OR_RETURN(const auto rows, rows_.Of(shape.dim(dim), part));
    MR_ASSIGN_OR_RETURN(const Port whole, EverywhereOrWhole(source, part));
    MR_ASSIGN_OR_RETURN(const Port cut, nodes_.Rows(source_.node(source.node)->name(), whole,
                                                    shape.rank(), dim, rows, part));
    return copies_[source.node].rows[{source.index, dim}][part] = cut;
  }

  // A copy of a constant subtree on a replica's device, or beside the variables. Depth is that of
  // nested constant expressions, walked with a stack of its own.
  StatusOr<NodeId> PortableCopy(NodeId id, int part) {
    std::vector<NodeId> stack = {id};
    while (!stack.empty()) {
      const Node& node = *source_.node(stack.back());
      if (portable_.contains({node.id(), part})) {
        stack.pop_back();
        continue;
      }
      NodeSpec spec = PortableSpec(node, part);
      bool ready = true;
      for (Port input : node.inputs()) {
        const auto made = portable_.find({input.node, part});
        if (made == portable_.end()) {
          stack.push_back(input.node);
          ready = false;
        } else {
          spec.inputs.push_back(Port{made->second, input.index});
        }
      }
      if (!ready) continue;
      MR_ASSIGN_OR_RETURN(const NodeId copy, program_.graph.AddNode(std::move(spec)));
      portable_[{node.id(), part}] = copy;
      stack.pop_back();
    }
    return portable_[{id, part}];
  }

  NodeSpec PortableSpec(const Node& node, int part) const {
    NodeSpec spec = SpecOf(node);
    spec.attrs.Erase(kColocationAttr);
    if (part == kShared) {
      spec.name = node.name();
      spec.device = SharedDevice(node);
      if (node.requested_device().empty()) SetReason(SharedReason(node), spec);
    } else {
      spec.name = ReplicaNodes::Name(part, node.name());
      spec.device = nodes_.device(part);
      SetReason(StrCat("replica ", part, "'s own copy of a constant: nothing to send"), spec);
    }
    return spec;
  }

  // The host operand `i` with the extents that the rule named replaced by this part's.
  StatusOr<Port> LocalizedOperand(const Node& node, int i, int part) {
    const Tensor* value = source_.ConstantValue(node.inputs()[i]);
    if (value == nullptr) {
      return InvalidArgument("input ", i, " ('", source_.PortName(node.inputs()[i]),
                             "') holds an extent that is split, but its value is not known when ",
                             "the step is planned");
    }
    MR_ASSIGN_OR_RETURN(Tensor local, value->Copy(HostAllocator()));
    for (const ShardingContext::HostElement& e : shardings_[node.id()].localized) {
      if (e.input != i) continue;
      const bool wide = local.dtype() == DType::kInt64;
      const int64_t extent =
          wide ? local.data<int64_t>()[e.element] : local.data<int32_t>()[e.element];
      MR_ASSIGN_OR_RETURN(const auto rows, rows_.Of(extent, part));
      if (wide) {
        local.mutable_data<int64_t>()[e.element] = rows.second - rows.first;
      } else {
        local.mutable_data<int32_t>()[e.element] = static_cast<int32_t>(rows.second - rows.first);
      }
    }
    return nodes_.Constant(StrCat(ReplicaNodes::Name(part, node.name()), "/local_", i),
                           std::move(local), part);
  }

  // The whole value of a source port. A split or partial one is put together once, where its first
  // user `user` (may be null) updates a variable, else beside the variables.
  StatusOr<Port> Whole(Port source, const Node* user) {
    if (sides_[source.node] == kPortable) {
      MR_ASSIGN_OR_RETURN(const NodeId copy, PortableCopy(source.node, kShared));
      return Port{copy, source.index};
    }
    Copies& copies = copies_[source.node];
    if (copies.shared >= 0) return Port{copies.shared, source.index};
    const auto found = copies.whole.find(source.index);
    if (found != copies.whole.end()) return found->second;
    std::vector<Port> pieces;
    for (const std::vector<Port>& part : copies.parts) pieces.push_back(part[source.index]);
    NodeSpec where;
    where.device = options_.variable_device;
    SetReason(StrCat("put together from ", parts(), " replicas, beside the variables"), where);
    if (user != nullptr && user->op().Has(Trait::kWritesVariable)) {
      const Node& handle = *source_.node(user->inputs()[0].node);
      where.device = SharedDevice(*user);
      where.attrs.Set(kColocationAttr,
                      std::vector<std::string>{StrCat(kColocationPrefix, handle.name())});
    }
    const std::string& name = source_.node(source.node)->name();
    const Sharding& have = LayoutOf(source);
    Port whole = pieces[0];  // of what every replica has, the first one's will do
    if (parts() > 1 && have.kind == Sharding::kPartialSum) {
      MR_ASSIGN_OR_RETURN(whole, nodes_.Sum(name, std::move(pieces), std::move(where)));
    } else if (parts() > 1 && have.kind == Sharding::kSplit) {
      MR_ASSIGN_OR_RETURN(whole, nodes_.Join(name, std::move(pieces), have.dim, std::move(where)));
    }
    return copies.whole[source.index] = whole;
  }

  void RecordLayouts(const Node& node) {
    for (int i = 0; i < node.num_outputs(); ++i) {
      const Port port{node.id(), i};
      program_.layouts.push_back({source_.PortName(port), LayoutOf(port),
                                  node.op().Has(Trait::kVariable) ? SharedDevice(node) : ""});
    }
  }

  Status MapSignature() {
    Program::StepLoop loop;
    loop.name = "step";
    for (size_t i = 0; i < pruned_.feeds.size(); ++i) {
      MR_ASSIGN_OR_RETURN(Program::Feed feed, MapFeed(signature_.feeds[i], pruned_.feeds[i]));
      for (const Program::Feed::Piece& piece : feed.pieces) {
        loop.signature.feeds.push_back(piece.port);
      }
      program_.feeds.push_back(std::move(feed));
    }
    for (const Port& fetch : pruned_.fetches) {
      MR_ASSIGN_OR_RETURN(const Port port, Whole(fetch, nullptr));
      program_.fetches.push_back(program_.graph.PortName(port));
      loop.signature.fetches.push_back(program_.fetches.back());
    }
    for (NodeId target : pruned_.targets) {
      // As a control input is: all copies.
      NodeSpec copies;
      MR_RETURN_IF_ERROR(AddControls(target, kShared, copies));
      for (NodeId id : copies.control_inputs) {
        loop.signature.targets.push_back(program_.graph.node(id)->name());
      }
    }
    program_.loops.push_back(std::move(loop));
    return absl::OkStatus();
  }

  StatusOr<Program::Feed> MapFeed(const std::string& logical, Port port) const {
    Program::Feed feed;
    feed.logical = logical;
    const Copies& copies = copies_[port.node];
    if (copies.shared >= 0) {
      feed.pieces.push_back({program_.graph.PortName(Port{copies.shared, port.index}), 0, 0});
      return feed;
    }
    feed.dim = LayoutOf(port).dim;
    for (int part = 0; part < parts(); ++part) {
      MR_ASSIGN_OR_RETURN(const auto rows, rows_.Of(rows_.batch(), part));
      feed.pieces.push_back(
          {program_.graph.PortName(copies.parts[part][port.index]), rows.first, rows.second});
    }
    return feed;
  }

  const DataParallelPsOptions& options_;
  const Graph& source_;
  const PrunedGraph& pruned_;
  const StepSignature& signature_;
  Program program_;
  ReplicaNodes nodes_;
  BatchRows rows_{-1, 1};
  std::vector<NodeSharding> shardings_;
  std::vector<Side> sides_;
  std::vector<Copies> copies_;
  absl::flat_hash_map<std::pair<NodeId, int>, NodeId> portable_;  // by source node and part
};

}  // namespace

StatusOr<Program> RewriteDataParallel(const DataParallelPsOptions& options,
                                      const PrunedGraph& pruned, const StepSignature& signature) {
  return Rewriter(options, pruned, signature).Run();
}

}  // namespace millrace
