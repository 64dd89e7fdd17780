#include "distributed/strategy/data_parallel_ps.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "distributed/strategy/sharding_propagation.h"

namespace millrace {
namespace {

constexpr char kColocationPrefix[] = "loc:@";

// One rewrite: walks the single-device graph in topological order and emits, for each node, one
// copy beside the variables or one a replica.
class Rewriter {
 public:
  Rewriter(const DataParallelPsOptions& options, const PrunedGraph& pruned,
           const StepSignature& signature)
      : options_(options),
        source_(pruned.graph),
        pruned_(pruned),
        signature_(signature),
        program_(pruned.graph.shared_ops()),
        copies_(pruned.graph.num_ids()) {}

  StatusOr<Program> Run() {
    MR_RETURN_IF_ERROR(SplitFeeds());
    MR_ASSIGN_OR_RETURN(shardings_, PropagateShardings(source_, given_));
    MR_ASSIGN_OR_RETURN(std::vector<NodeId> order, TopologicalOrder(source_));
    FindPortableNodes(order);
    for (NodeId id : order) {
      const Node& node = *source_.node(id);
      Status status = OncePerPart(id) ? EmitOncePerPart(node) : EmitShared(node);
      MR_RETURN_IF_ERROR(
          Annotate(status, StrCat("splitting ", node.op().name(), " '", node.name(), "'")));
      RecordLayouts(node);
    }
    MR_RETURN_IF_ERROR(MapSignature());
    program_.strategy = StrCat("data_parallel_ps(", parts(), " replicas)");
    return std::move(program_);
  }

 private:
  // Where a source node's outputs are in the program.
  struct Copies {
    NodeId shared = -1;
    std::vector<std::vector<Port>> parts;  // by part, then output; weighted where the rule says so
    std::vector<NodeId> part_nodes;
    absl::flat_hash_map<int, Port> whole;  // by output, of a split or partial one
    std::vector<NodeId> portable;          // by part, of a constant subtree; -1: not made yet
  };

  int parts() const { return static_cast<int>(options_.replica_devices.size()); }
  bool OncePerPart(NodeId id) const { return shardings_[id].OncePerPart(); }
  std::string PartName(int part, const std::string& name) const {
    return StrCat("replica_", part, "/", name);
  }

  // Rows of part `part` of an extent that is a multiple of the batch.
  StatusOr<std::pair<int64_t, int64_t>> Rows(int64_t extent, int part) const {
    if (batch_ <= 0 || extent % batch_ != 0) {
      return InvalidArgument("an extent of ", extent, " cannot be split: it is no multiple of the ",
                             "batch of ", batch_);
    }
    const int64_t unit = extent / batch_;
    return std::make_pair(unit * (batch_ * part / parts()), unit * (batch_ * (part + 1) / parts()));
  }

  bool WantsSplit(const std::string& feed, Port port) const {
    if (source_.shape(port).has_rank() && source_.shape(port).rank() == 0) return false;
    if (options_.split_feeds.empty()) return true;
    const absl::string_view name = absl::StripSuffix(feed, ":0");
    return std::any_of(options_.split_feeds.begin(), options_.split_feeds.end(),
                       [&](const std::string& s) { return absl::StripSuffix(s, ":0") == name; });
  }

  Status SplitFeeds() {
    for (size_t i = 0; i < pruned_.feeds.size(); ++i) {
      const Port port = pruned_.feeds[i];
      if (!WantsSplit(signature_.feeds[i], port)) continue;
      const PartialShape& shape = source_.shape(port);
      if (!shape.has_rank() || !shape.dim_known(0)) {
        return InvalidArgument("feed '", signature_.feeds[i], "' has shape ", shape.ToString(),
                               ": its leading extent must be known to be split over ", parts(),
                               " replicas");
      }
      const int64_t extent = shape.dim(0);
      if (batch_ < 0) batch_ = extent;
      if (extent != batch_) {
        return InvalidArgument("feed '", signature_.feeds[i], "' has ", extent, " rows, but feed '",
                               signature_.feeds[0], "' has ", batch_,
                               ": split feeds must have as many rows as each other");
      }
      if (extent < parts()) {
        return InvalidArgument("feed '", signature_.feeds[i], "' has ", extent,
                               " rows, fewer than the ", parts(), " replicas");
      }
      given_[port] = Sharding::Split(0);
    }
    return absl::OkStatus();
  }

  // Portable: computed from constants alone, so that each replica can have its own copy.
  void FindPortableNodes(const std::vector<NodeId>& order) {
    portable_.assign(source_.num_ids(), false);
    for (NodeId id : order) {
      const Node& node = *source_.node(id);
      bool portable = !node.op().Has(Trait::kStateful) && !node.op().Has(Trait::kPlaceholder) &&
                      !node.op().Has(Trait::kReadsVariable) && node.control_inputs().empty() &&
                      !node.op().Has(Trait::kVariable) && node.num_outputs() > 0;
      for (Port input : node.inputs()) portable = portable && portable_[input.node];
      portable_[id] = portable;
    }
  }

  // The device of the node in the shared part: what its writer asked for, else the variables'.
  std::string SharedDevice(const Node& node) const {
    return node.requested_device().empty() ? options_.variable_device : node.requested_device();
  }

  static void SetReason(std::string reason, NodeSpec& spec) {
    spec.attrs.Set(kRequestReasonAttr, std::move(reason));
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
    return "";
  }

  NodeSpec SpecOf(const Node& node) const {
    NodeSpec spec;
    spec.op = node.op().name();
    spec.attrs = node.attrs();
    spec.location = node.location();
    return spec;
  }

  // Colocations are kept among copies of one kind; a copy in a replica cannot be where the shared
  // node is.
  void MapColocations(const Node& node, int part, AttrMap& attrs) const {
    const auto* names = [&]() -> const std::vector<std::string>* {
      const AttrValue* value = node.attrs().Find(kColocationAttr);
      return value == nullptr ? nullptr : value->get<std::vector<std::string>>();
    }();
    if (names == nullptr) return;
    std::vector<std::string> kept;
    for (const std::string& entry : *names) {
      if (!absl::StartsWith(entry, kColocationPrefix)) continue;
      const std::string name = entry.substr(sizeof(kColocationPrefix) - 1);
      const Node* other = source_.Find(name);
      if (other == nullptr || OncePerPart(other->id()) != (part >= 0)) continue;
      kept.push_back(StrCat(kColocationPrefix, part >= 0 ? PartName(part, name) : name));
    }
    attrs.Erase(kColocationAttr);
    if (!kept.empty()) attrs.Set(kColocationAttr, std::move(kept));
  }

  Status EmitShared(const Node& node) {
    NodeSpec spec = SpecOf(node);
    spec.name = node.name();
    spec.device = SharedDevice(node);
    if (node.requested_device().empty()) SetReason(SharedReason(node), spec);
    MapColocations(node, /*part=*/-1, spec.attrs);
    for (Port input : node.inputs()) {
      MR_ASSIGN_OR_RETURN(Port port, Whole(input, &node));
      spec.inputs.push_back(port);
    }
    for (NodeId before : node.control_inputs()) AddControls(before, /*part=*/-1, spec);
    MR_ASSIGN_OR_RETURN(copies_[node.id()].shared, program_.graph.AddNode(std::move(spec)));
    CopyShapes(node, copies_[node.id()].shared);
    return absl::OkStatus();
  }

  // The specialised shapes of the source are better than what can be inferred from attributes.
  void CopyShapes(const Node& node, NodeId copy) {
    for (int i = 0; i < node.num_outputs(); ++i) {
      program_.graph.SetOutputShape(Port{copy, i}, node.output_shape(i));
    }
  }

  void AddControls(NodeId before, int part, NodeSpec& spec) const {
    const Copies& copies = copies_[before];
    if (copies.shared >= 0) {
      spec.control_inputs.push_back(copies.shared);
    } else if (part >= 0) {
      spec.control_inputs.push_back(copies.part_nodes[part]);
    } else {
      for (NodeId id : copies.part_nodes) spec.control_inputs.push_back(id);
    }
  }

  Status EmitOncePerPart(const Node& node) {
    const NodeSharding& sharding = shardings_[node.id()];
    Copies& copies = copies_[node.id()];
    copies.parts.resize(parts());
    for (int part = 0; part < parts(); ++part) {
      NodeSpec spec = SpecOf(node);
      spec.name = PartName(part, node.name());
      spec.device = options_.replica_devices[part];
      SetReason(StrCat("replica ", part, " of ", parts(), ": ", PartReason(node)), spec);
      MapColocations(node, part, spec.attrs);
      if (node.op().Has(Trait::kPlaceholder)) {
        MR_ASSIGN_OR_RETURN(PartialShape local,
                            LocalShape(node.output_shape(0), sharding.outputs[0], part));
        spec.attrs.Set("shape", local);
      }
      for (size_t i = 0; i < node.inputs().size(); ++i) {
        MR_ASSIGN_OR_RETURN(Port port, Local(node, static_cast<int>(i), part));
        spec.inputs.push_back(port);
      }
      for (NodeId before : node.control_inputs()) AddControls(before, part, spec);
      MR_ASSIGN_OR_RETURN(NodeId id, program_.graph.AddNode(std::move(spec)));
      copies.part_nodes.push_back(id);
      for (int i = 0; i < node.num_outputs(); ++i) {
        Port port{id, i};
        if (sharding.mean_over_parts[i]) {
          MR_ASSIGN_OR_RETURN(port, Weighted(port, part));
        }
        copies.parts[part].push_back(port);
      }
    }
    return absl::OkStatus();
  }

  StatusOr<PartialShape> LocalShape(const PartialShape& shape, const Sharding& sharding,
                                    int part) const {
    if (sharding.kind != Sharding::kSplit) return shape;
    std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
    MR_ASSIGN_OR_RETURN(auto rows, Rows(dims[sharding.dim], part));
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
    const Sharding& have = shardings_[source.node].outputs[source.index];
    if (OncePerPart(source.node) && want == have && want.kind != Sharding::kReplicated) {
      return copies_[source.node].parts[part][source.index];
    }
    Port whole;
    if (portable_[source.node]) {
      MR_ASSIGN_OR_RETURN(NodeId copy, PortableCopy(source.node, part));
      whole = Port{copy, source.index};
    } else {
      MR_ASSIGN_OR_RETURN(whole, Whole(source, nullptr));
    }
    switch (want.kind) {
      case Sharding::kReplicated:
        return whole;
      case Sharding::kSplit:
        return SliceRows(source, whole, want.dim, part);
      case Sharding::kPartialSum:
        break;
    }
    return InvalidArgument("input ", i, " is needed as a partial sum, but is ", have.ToString());
  }

  // A copy of a constant subtree on a replica's device. Depth is that of nested constant
  // expressions, walked with a stack of its own.
  StatusOr<NodeId> PortableCopy(NodeId id, int part) {
    std::vector<NodeId> stack = {id};
    while (!stack.empty()) {
      const NodeId top = stack.back();
      Copies& copies = copies_[top];
      if (copies.portable.empty()) copies.portable.assign(parts(), -1);
      if (copies.portable[part] >= 0) {
        stack.pop_back();
        continue;
      }
      const Node& node = *source_.node(top);
      NodeSpec spec = SpecOf(node);
      spec.name = PartName(part, node.name());
      spec.device = options_.replica_devices[part];
      SetReason(StrCat("replica ", part, "'s own copy of a constant: nothing to send"), spec);
      spec.attrs.Erase(kColocationAttr);
      bool ready = true;
      for (Port input : node.inputs()) {
        const std::vector<NodeId>& made = copies_[input.node].portable;
        if (made.empty() || made[part] < 0) {
          stack.push_back(input.node);
          ready = false;
        } else {
          spec.inputs.push_back(Port{made[part], input.index});
        }
      }
      if (!ready) continue;
      MR_ASSIGN_OR_RETURN(copies.portable[part], program_.graph.AddNode(std::move(spec)));
      stack.pop_back();
    }
    return copies_[id].portable[part];
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
      MR_ASSIGN_OR_RETURN(auto rows, Rows(extent, part));
      if (wide) {
        local.mutable_data<int64_t>()[e.element] = rows.second - rows.first;
      } else {
        local.mutable_data<int32_t>()[e.element] = static_cast<int32_t>(rows.second - rows.first);
      }
    }
    return AddConst(StrCat(PartName(part, node.name()), "/local_", i), std::move(local), part);
  }

  StatusOr<Port> AddConst(const std::string& name, Tensor value, int part) {
    NodeSpec spec;
    spec.name = program_.graph.UniqueName(name);
    spec.op = "Const";
    spec.attrs.Set("dtype", value.dtype());
    spec.attrs.Set("value", std::move(value));
    spec.device = options_.replica_devices[part];
    SetReason(StrCat("a constant that only replica ", part, " uses"), spec);
    MR_ASSIGN_OR_RETURN(NodeId id, program_.graph.AddNode(std::move(spec)));
    return Port{id, 0};
  }

  // This part's rows of a whole value.
  StatusOr<Port> SliceRows(Port source, Port whole, int dim, int part) {
    const PartialShape& shape = source_.shape(source);
    if (!shape.has_rank() || !shape.dim_known(dim)) {
      return InvalidArgument("'", source_.PortName(source), "' has shape ", shape.ToString(),
                             ": dimension ", dim, " must be known to be split");
    }
    MR_ASSIGN_OR_RETURN(auto rows, Rows(shape.dim(dim), part));
    std::vector<int32_t> begin(shape.rank(), 0);
    std::vector<int32_t> size(shape.rank(), -1);
    begin[dim] = static_cast<int32_t>(rows.first);
    size[dim] = static_cast<int32_t>(rows.second - rows.first);
    const Shape vector{static_cast<int64_t>(shape.rank())};
    const std::string base = PartName(part, source_.node(source.node)->name());
    MR_ASSIGN_OR_RETURN(Port begin_port, AddConst(StrCat(base, "/rows/begin"),
                                                  Tensor::Of<int32_t>(vector, begin), part));
    MR_ASSIGN_OR_RETURN(Port size_port, AddConst(StrCat(base, "/rows/size"),
                                                 Tensor::Of<int32_t>(vector, size), part));
    NodeSpec spec;
    spec.name = program_.graph.UniqueName(StrCat(base, "/rows"));
    spec.op = "Slice";
    spec.inputs = {whole, begin_port, size_port};
    spec.device = options_.replica_devices[part];
    SetReason(StrCat("replica ", part, " of ", parts(), ": its rows of a whole value"), spec);
    MR_ASSIGN_OR_RETURN(NodeId id, program_.graph.AddNode(std::move(spec)));
    return Port{id, 0};
  }

  // A part's mean times its share of the batch: such terms add up to the mean over the whole.
  StatusOr<Port> Weighted(Port port, int part) {
    const double weight =
        static_cast<double>(batch_ * (part + 1) / parts() - batch_ * part / parts()) / batch_;
    const DType dtype = program_.graph.dtype(port);
    if (dtype != DType::kFloat && dtype != DType::kDouble) {
      return InvalidArgument("a mean of dtype ", Name(dtype), " cannot be split");
    }
    const std::string base = program_.graph.node(port.node)->name();
    MR_ASSIGN_OR_RETURN(Port share,
                        AddConst(StrCat(base, "/share"),
                                 dtype == DType::kFloat ? Tensor::Scalar(static_cast<float>(weight))
                                                        : Tensor::Scalar(weight),
                                 part));
    NodeSpec spec;
    spec.name = program_.graph.UniqueName(StrCat(base, "/weighted"));
    spec.op = "Mul";
    spec.inputs = {port, share};
    spec.device = options_.replica_devices[part];
    SetReason(StrCat("replica ", part, " of ", parts(), ": its mean times its share of the batch"),
              spec);
    MR_ASSIGN_OR_RETURN(NodeId id, program_.graph.AddNode(std::move(spec)));
    return Port{id, 0};
  }

  // The whole value of a source port. A split or partial one is put together once, where its first
  // user `user` (may be null) updates a variable, else beside the variables.
  StatusOr<Port> Whole(Port source, const Node* user) {
    Copies& copies = copies_[source.node];
    if (copies.shared >= 0) return Port{copies.shared, source.index};
    auto found = copies.whole.find(source.index);
    if (found != copies.whole.end()) return found->second;
    const Sharding& have = shardings_[source.node].outputs[source.index];
    const std::string& name = source_.node(source.node)->name();
    NodeSpec spec;
    spec.device = options_.variable_device;
    SetReason(StrCat("put together from ", parts(), " replicas, beside the variables"), spec);
    for (int part = 0; part < parts(); ++part) {
      spec.inputs.push_back(copies.parts[part][source.index]);
    }
    if (user != nullptr && user->op().Has(Trait::kWritesVariable)) {
      const Node& handle = *source_.node(user->inputs()[0].node);
      spec.attrs.Set(kColocationAttr,
                     std::vector<std::string>{StrCat(kColocationPrefix, handle.name())});
    }
    switch (have.kind) {
      case Sharding::kReplicated:
        // Every replica has it: the first one's will do.
        return spec.inputs[0];
      case Sharding::kPartialSum:
        spec.op = "AddN";
        spec.name = program_.graph.UniqueName(StrCat(name, "/sum_over_replicas"));
        break;
      case Sharding::kSplit: {
        NodeSpec axis;
        axis.name = program_.graph.UniqueName(StrCat(name, "/join/axis"));
        axis.op = "Const";
        axis.attrs = {{"dtype", DType::kInt32}, {"value", Tensor::Scalar<int32_t>(have.dim)}};
        axis.device = options_.variable_device;
        SetReason("the axis along which the replicas' rows are joined", axis);
        MR_ASSIGN_OR_RETURN(NodeId axis_id, program_.graph.AddNode(std::move(axis)));
        spec.op = "ConcatV2";
        spec.name = program_.graph.UniqueName(StrCat(name, "/join"));
        spec.inputs.push_back(Port{axis_id, 0});
        break;
      }
    }
    MR_ASSIGN_OR_RETURN(NodeId id, program_.graph.AddNode(std::move(spec)));
    copies.whole[source.index] = Port{id, 0};
    return Port{id, 0};
  }

  void RecordLayouts(const Node& node) {
    for (int i = 0; i < node.num_outputs(); ++i) {
      program_.layouts.push_back({source_.PortName(Port{node.id(), i}),
                                  shardings_[node.id()].outputs[i],
                                  node.op().Has(Trait::kVariable) ? SharedDevice(node) : ""});
    }
  }

  Status MapSignature() {
    Program::StepLoop loop;
    loop.name = "step";
    for (size_t i = 0; i < pruned_.feeds.size(); ++i) {
      const Port port = pruned_.feeds[i];
      Program::Feed feed;
      feed.logical = signature_.feeds[i];
      const Copies& copies = copies_[port.node];
      if (copies.shared >= 0) {
        feed.pieces.push_back({program_.graph.PortName(Port{copies.shared, port.index}), 0, 0});
      } else {
        feed.dim = shardings_[port.node].outputs[port.index].dim;
        for (int part = 0; part < parts(); ++part) {
          MR_ASSIGN_OR_RETURN(auto rows, Rows(batch_, part));
          feed.pieces.push_back(
              {program_.graph.PortName(copies.parts[part][port.index]), rows.first, rows.second});
        }
      }
      for (const Program::Feed::Piece& piece : feed.pieces) {
        loop.signature.feeds.push_back(piece.port);
      }
      program_.feeds.push_back(std::move(feed));
    }
    for (const Port& fetch : pruned_.fetches) {
      MR_ASSIGN_OR_RETURN(Port port, Whole(fetch, nullptr));
      program_.fetches.push_back(program_.graph.PortName(port));
      loop.signature.fetches.push_back(program_.fetches.back());
    }
    for (NodeId target : pruned_.targets) {
      const Copies& copies = copies_[target];
      if (copies.shared >= 0) {
        loop.signature.targets.push_back(program_.graph.node(copies.shared)->name());
      }
      for (NodeId id : copies.part_nodes) {
        loop.signature.targets.push_back(program_.graph.node(id)->name());
      }
    }
    program_.loops.push_back(std::move(loop));
    return absl::OkStatus();
  }

  const DataParallelPsOptions& options_;
  const Graph& source_;
  const PrunedGraph& pruned_;
  const StepSignature& signature_;
  Program program_;
  int64_t batch_ = -1;
  absl::flat_hash_map<Port, Sharding> given_;
  std::vector<NodeSharding> shardings_;
  std::vector<Copies> copies_;
  std::vector<bool> portable_;
};

class DataParallelPs final : public Strategy {
 public:
  explicit DataParallelPs(DataParallelPsOptions options) : options_(std::move(options)) {}
  std::string name() const override { return "data_parallel_ps"; }
  StatusOr<Program> Rewrite(const PrunedGraph& pruned,
                            const StepSignature& signature) const override {
    return Rewriter(options_, pruned, signature).Run();
  }

 private:
  const DataParallelPsOptions options_;
};

}  // namespace

StatusOr<std::unique_ptr<Strategy>> NewDataParallelPs(DataParallelPsOptions options) {
  if (options.replica_devices.empty()) {
    return InvalidArgument("data parallelism needs at least one replica device");
  }
  for (const std::string& device : options.replica_devices) {
    MR_RETURN_IF_ERROR(DeviceName::Parse(device).status());
  }
  MR_RETURN_IF_ERROR(DeviceName::Parse(options.variable_device).status());
  return std::unique_ptr<Strategy>(std::make_unique<DataParallelPs>(std::move(options)));
}

}  // namespace millrace
